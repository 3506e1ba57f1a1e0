// A process that holds sessions, for the suite of homes: `node node.ts <options as JSON>`. Prints its address.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { createRuntime, memoryJournal, TextSession, type Journal } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { serve } from '../../../src/serve/index.ts';
import { homeConformanceAgents } from '../../suites/homes/index.ts';
import type { HomeNode } from './stage.ts';

const { store, tellUrl, port, fault } = JSON.parse(process.argv[2] ?? '') as HomeNode;
const http = createServer();
// Clients of an earlier process reconnect at once, before the journal is open.
const { promise: whenServing, resolve: serving } =
  Promise.withResolvers<ReturnType<typeof serve>>();
http.on('request', (request, response) => {
  void whenServing.then((web) =>
    web.handle(request, response, () => {
      // A session that is being unloaded counts as awake.
      response.end(String(pool.awakeCount > 0));
    }),
  );
});
http.on('upgrade', (...upgrade) => void whenServing.then((web) => web.upgrade(...upgrade)));
http.listen(port, '127.0.0.1');
await once(http, 'listening');
const address = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
const environment = nodeEnvironment();
const tell = async (what: string): Promise<void> => {
  await fetch(tellUrl, { method: 'POST', body: what });
};

/** Plants a fault in the journal to check that the suite finds it. */
function withFault(journal: Journal): Journal {
  return new Proxy(journal, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (fault === 'claims nothing' && (name === 'claim' || name === 'release')) return undefined;
      if (fault === 'stores no time' && name === 'wakeTimes')
        return { set: () => undefined, earliest: () => [] };
      if (fault === 'cuts what is long' && name === 'append')
        return (entry: Parameters<Journal['append']>[0]) =>
          JSON.stringify(entry.event).length > 200_000 ? undefined : journal.append(entry);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const opened =
  fault === 'keeps nothing'
    ? memoryJournal()
    : 'path' in store
      ? sqliteJournal({ path: store.path, environment })
      : await postgresJournal({ ...store, environment, address });
const runtime = createRuntime({
  environment,
  journal: withFault(opened),
  snapshots: { trim: true },
});
const agents = homeConformanceAgents(tell);
const sessions: TextSession[] = [];
const pool = createSessionPool({
  runtime,
  idleMs: 50,
  lookMs: fault === 'never looks' ? Infinity : 200,
  open(sessionId) {
    const session = new TextSession({ sessionId, runtime, ...agents });
    sessions.push(session);
    return session;
  },
  onError: () => {},
});
if (fault !== 'never looks') await pool.start();
const web = serve({
  pool,
  authorize: ({ token, sessionId }) =>
    token !== null && sessionId !== null ? { sessionId, user: token, role: 'user' } : null,
  locate: (_sessionId, holder) =>
    fault === 'sends nobody on' || !holder?.address ? null : `${holder.address}/offstage`,
  limits: { resumeMs: 50, clientsPerUser: 50 },
  onError: () => {},
});
serving(web);
process.once('SIGTERM', () => {
  void (async () => {
    if (fault === 'closes sessions') for (const session of sessions) await session.close();
    await web.close();
    await pool.drain({ withinMs: 5_000 });
    if ('close' in opened) await opened.close();
    process.exit(0);
  })();
});
process.stdout.write(`${address}\n`);
