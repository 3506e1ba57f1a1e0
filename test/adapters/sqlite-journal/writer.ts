// A process that appends to a journal until it is killed or fails. Prints each entry as soon as it is written: `node
// writer.ts <path> <unit>`.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';

const [path = '', unit = 'unit'] = process.argv.slice(2);
try {
  const journal = sqliteJournal({ path, environment: nodeEnvironment() });
  for (let seq = journal.read({ unit }).length + 1; ; seq += 1) {
    await journal.append({
      scope: 'ses',
      unit,
      seq,
      at: seq,
      actor: 'subagent',
      definitionVersion: 1,
      event: { type: 'model.responded', text: 'x'.repeat(200) } as { type: string },
    });
    process.stdout.write(`${seq}\n`);
  }
} catch (error) {
  const { code, message } = error as { code: string; message: string };
  process.stdout.write(`${code}: ${message}\n`);
}
