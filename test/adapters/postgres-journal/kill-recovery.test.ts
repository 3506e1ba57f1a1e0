// A busy voice session on PostgreSQL: after each SIGKILL, another process takes over the session once the dead
// process's lease has expired.

import { killedOften } from '../../support/kill-recovery/killed-often.ts';
import { connection, newSchema, open } from './support.ts';

const server = { connection, schema: newSchema() };

killedOften({
  kills: Number(process.env['KILLS'] ?? 20),
  env: { KILL_POSTGRES: JSON.stringify({ ...server, leaseMs: 300 }) },
  read: async () => (await open(server)).read(),
});
