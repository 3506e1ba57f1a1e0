// A process that claims a scope and appends to it until it is killed or refused. Prints each entry as soon as it is
// written, and the reason why the process ends: `node writer.ts <host> <schema> <lease in ms>`.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';

const [host = '', schema = '', leaseMs = ''] = process.argv.slice(2);
const [scope, unit] = ['scope', 'unit'];
const journal = await postgresJournal({
  connection: { host, user: 'offstage', database: 'postgres' },
  environment: nodeEnvironment(),
  schema,
  leaseMs: Number(leaseMs),
});
try {
  await journal.claim(scope);
  for (let seq = (await journal.read({ scope })).length + 1; ; seq += 1) {
    await journal.append({
      scope,
      unit,
      seq,
      at: seq,
      actor: 'subagent',
      definitionVersion: 1,
      event: { type: 'model.responded', by: process.pid } as { type: string },
    });
    process.stdout.write(`${seq}\n`);
  }
} catch (error) {
  const { code, retryable } = error as { code: string; retryable?: boolean };
  process.stdout.write(`${code} ${retryable}\n`);
}
await journal.close();
