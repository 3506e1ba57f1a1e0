// The dialogues that currently fail, and their faults by stage. A run fails if another dialogue fails, and also if a
// listed dialogue succeeds, whose line must then be removed. `npm run dialogues -- --write` rewrites the file.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Fault } from './judge.ts';

/** By dialogue: the stages on which it fails, and the kinds of faults. */
export type Known = Readonly<Record<string, Readonly<Record<string, readonly Fault[]>>>>;

const file = new URL('known.json', import.meta.url);

export const known = JSON.parse(readFileSync(file, 'utf8')) as Known;

export function knownFaults(name: string, stage: string): readonly Fault[] {
  return known[name]?.[stage] ?? [];
}

/** Overwrites the list of known faults for each stage in these runs. */
export function writeKnown(
  runs: readonly {
    readonly name: string;
    readonly stage: string;
    readonly faults: readonly Fault[];
  }[],
): void {
  const table: Record<string, Record<string, readonly Fault[]>> = Object.fromEntries(
    Object.entries(known).map(([name, row]) => [name, { ...row }]),
  );
  for (const { name, stage, faults } of runs) {
    const row = (table[name] ??= {});
    if (faults.length > 0) row[stage] = [...new Set(faults)].toSorted();
    else delete row[stage];
    if (Object.keys(row).length === 0) delete table[name];
  }
  // Keeps each list on one line, as the formatter does.
  const json = JSON.stringify(table, null, 2).replace(
    /\[\s+([^\]]*?)\s+\]/g,
    (_, list: string) => `[${list.replace(/\s+/g, ' ')}]`,
  );
  writeFileSync(file, `${json}\n`);
}
