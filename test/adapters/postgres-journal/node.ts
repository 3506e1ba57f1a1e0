// A process that serves the sessions in a PostgreSQL journal: `node node.ts <host> <schema> <lease in ms>`. Prints its
// address. It redirects the client if another process owns the session.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { createRuntime, TextSession } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { serve } from '../../../src/serve/index.ts';
import { rideConfig, rideScript } from '../../support/ride.ts';
import { agentsOf, castOf, configsOf, type TalkOptions } from '../../support/text-talk.ts';

const [host = '', schema = '', leaseMs = ''] = process.argv.slice(2);
const http = createServer();
http.listen(0, '127.0.0.1');
await once(http, 'listening');
const address = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
const environment = nodeEnvironment();
const runtime = createRuntime({
  environment,
  journal: await postgresJournal({
    connection: { host, user: 'offstage', database: 'postgres' },
    environment,
    schema,
    leaseMs: Number(leaseMs),
    address,
  }),
});
const talk: TalkOptions = {
  subagents: {
    book_ride: {
      script: rideScript,
      config: { tools: rideConfig.tools ?? {}, interactive: true },
    },
  },
};
const pool = createSessionPool({
  runtime,
  open: (sessionId) =>
    new TextSession({
      sessionId,
      runtime,
      model: castOf(talk),
      agents: agentsOf(talk),
      subagentConfigs: configsOf(talk),
    }),
});
await pool.start();
const web = serve({
  pool,
  authorize: ({ token }) => (token ? { sessionId: 's_1', user: token, role: 'user' } : null),
  locate: (_sessionId, holder) =>
    holder?.address === undefined || holder.address === null ? null : `${holder.address}/offstage`,
  onError: () => {},
});
http.on('request', (request, response) => web.handle(request, response));
http.on('upgrade', web.upgrade);
process.stdout.write(`${address}/offstage\n`);
