import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal, type SqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { runJournalConformance } from './support/run-journal-conformance.ts';

for (const synchronous of ['full', 'normal'] as const)
  runJournalConformance({
    name: `sqliteJournal, ${synchronous}`,
    offers: ['scopes', 'readAfter', 'trim', 'forget', 'reopen', 'wakeTimes', 'desk'],
    open() {
      const folder = mkdtempSync(join(tmpdir(), 'offstage-journal-'));
      const opened: SqliteJournal[] = [];
      const open = (name: string): SqliteJournal => {
        const path = join(folder, name);
        const journal = sqliteJournal({ path, environment: nodeEnvironment(), synchronous });
        opened.push(journal);
        return journal;
      };
      return {
        journal: open('a'),
        // A process that starts after a crash finds the data that is on the disk at this moment.
        reopen() {
          for (const suffix of ['', '-wal'])
            if (existsSync(join(folder, `a${suffix}`)))
              copyFileSync(join(folder, `a${suffix}`), join(folder, `b${suffix}`));
          return open('b');
        },
        close() {
          for (const journal of opened) journal.close();
          rmSync(folder, { recursive: true });
        },
      };
    },
  });
