// Freezes the stories of test/support/frozen-stories.ts as journals of this version: `node test/corpus/freeze.ts
// <number>` writes `stories-<number>.json`, and the same entries in the formats of `sqliteJournal` (`.journal`) and
// `postgresJournal` (`.sql`). The program overwrites no file.

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { postgresJournal } from '../../src/adapters/postgres-journal/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { freezeStories, frozenScope } from '../support/frozen-stories.ts';
import { findPostgres } from '../support/postgres/find-postgres.ts';
import setUpPostgres, { connectionTo } from '../support/postgres/global-setup.ts';

const [number = ''] = process.argv.slice(2);
const path = (ending: string): string =>
  new URL(`stories-${number}.${ending}`, import.meta.url).pathname;
if (!/^[0-9]+$/.test(number) || existsSync(path('json')))
  throw new Error(`Expected a number that is not taken, got "${number}"`);

const environment = nodeEnvironment();
const stories = await freezeStories();
const entries = stories.flatMap((story) =>
  // One journal holds all stories; the scope separates them.
  story.entries.map((entry) => ({ ...entry, scope: frozenScope(story) })),
);

const file = sqliteJournal({ path: path('journal'), environment });
for (const entry of entries) await file.append(entry);
file.close();

let host = '';
const stop = await setUpPostgres({
  provide: (_: string, folder: string) => {
    host = folder;
  },
} as unknown as TestProject);
const schema = `stories_${number}`;
const database = await postgresJournal({ connection: connectionTo(host), environment, schema });
for (const story of stories) await database.claim?.(frozenScope(story));
for (const entry of entries) await database.append(entry);
for (const story of stories) await database.release?.(frozenScope(story));
await database.close();
const { user, database: name } = connectionTo(host);
const dump = execFileSync(
  join(findPostgres() ?? '', 'pg_dump'),
  ['-h', host, '-U', user, `--schema=${schema}`, '--inserts', '--no-owner', name],
  { encoding: 'utf8' },
);
await stop();
// Commands of psql are not SQL, and comments carry no data.
const statements = dump.split('\n').filter((line) => line !== '' && !/^(?:\\|--)/.test(line));
writeFileSync(path('sql'), `${statements.join('\n')}\n`);
writeFileSync(path('json'), `${JSON.stringify(stories)}\n`);
process.stdout.write(`${stories.length} journals, ${entries.length} entries\n`);
