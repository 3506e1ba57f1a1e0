// SOURCE-3: whichever command looks at it, a place that is no journal, or one that cannot be used, is told in the same words, with
// the same exit status.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { inspectFor } from '../../src/cli/inspect/inspect.ts';
import { replay } from '../../src/cli/replay/replay.ts';
import { sessions } from '../../src/cli/sessions/sessions.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { entry } from '../../src/testing/journal-conformance/case.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-places-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

const whole = at('whole.db');
const journal = sqliteJournal({ path: whole, environment: simulatedEnvironment() });
for (let seq = 1; seq < 200; seq += 1) await journal.append(entry(seq));
journal.close();
const bytes = readFileSync(whole);

writeFileSync(at('half.db'), bytes.subarray(0, bytes.length / 2));
writeFileSync(at('newer.db'), bytes);
const newer = new DatabaseSync(at('newer.db'));
newer.exec('PRAGMA user_version = 1000');
newer.close();
symlinkSync(at('loop.db'), at('loop.db'));
symlinkSync('/dev/null', at('device.db'));

const unused = (): never => {
  throw new Error('It serves nothing');
};
const calls = [
  [sessions, 'ls', '--journal'],
  [replay],
  [inspectFor(unused), '--port', '0', '--journal'],
] as const;

test.each([
  ['half.db', 1, 'is damaged'],
  ['newer.db', 1, 'a newer version of Offstage'],
  ['loop.db', 2, 'it cannot be read (ELOOP)'],
  ['device.db', 2, 'it is no file, but a pipe or a device'],
  ['whole.db/below', 2, 'there is no such file'],
  ['postgres', 1, 'ECONNREFUSED'],
])('%s', async (name, wanted, says) => {
  const place = name === 'postgres' ? 'postgres://127.0.0.1:1/app' : at(name);
  for (const [command, ...args] of calls) {
    let complained = '';
    const status = await command.run(
      [...args, place],
      () => {},
      (text) => {
        complained += text;
      },
    );
    expect([command.name, status]).toEqual([command.name, wanted]);
    expect(complained).toContain(says);
    expect(complained).toContain(name === 'postgres' ? '127.0.0.1:1' : name);
  }
});
