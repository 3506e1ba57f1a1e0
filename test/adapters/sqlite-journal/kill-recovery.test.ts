// A busy voice session on a journal in a file is killed fifty times with SIGKILL.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { killedOften } from '../../support/kill-recovery/killed-often.ts';
import { journalIn } from '../../support/kill-recovery/world.ts';

killedOften({
  kills: Number(process.env['KILLS'] ?? 50),
  env: {},
  read(folder) {
    const journal = sqliteJournal({ path: journalIn(folder), environment: nodeEnvironment() });
    const entries = journal.read();
    journal.close();
    return entries;
  },
});
