// The dialogues that go wrong today, and how, by stage. A run that finds another one fails, and so does a run in
// which one of these goes right: its line goes then. `npm run dialogues -- --write` renews the file.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Fault } from './judge.ts';

/** The stages on which it goes wrong, and the kinds of faults there. */
export type Known = Readonly<Record<string, Readonly<Record<string, readonly Fault[]>>>>;

const file = new URL('known.json', import.meta.url);

export const known = JSON.parse(readFileSync(file, 'utf8')) as Known;

export function knownFaults(name: string, stage: string): readonly Fault[] {
  return known[name]?.[stage] ?? [];
}

/** Writes the faults of these runs over those that were known of the same stages. */
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
  // Lists on one line, as the formatter wants them.
  const json = JSON.stringify(table, null, 2).replace(
    /\[\s+([^\]]*?)\s+\]/g,
    (_, list: string) => `[${list.replace(/\s+/g, ' ')}]`,
  );
  writeFileSync(file, `${json}\n`);
}
