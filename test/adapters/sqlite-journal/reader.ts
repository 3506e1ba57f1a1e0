// A process that opens a journal read-only and prints the number of its entries: `node reader.ts <file>`.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';

const [path = ''] = process.argv.slice(2);
try {
  const journal = sqliteJournal({ path, environment: nodeEnvironment(), readOnly: true });
  process.stdout.write(`${journal.read().length} entries\n`);
  journal.close();
} catch (error) {
  const { code, message } = error as Error & { readonly code: string };
  process.stdout.write(`${code}: ${message}\n`);
}
