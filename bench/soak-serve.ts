// `npm run soak:serve`: 10,000 sessions of a pool on SQLite. A client on 127.0.0.1 opens each over `serve`, says
// something and leaves. Hibernated sessions must leave nothing in memory. The bench prints heap and handles after each
// tenth; growth by more than a fifth since the second tenth is an error.
//
//   npm run soak:serve -- --sessions 1000    a quick look

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connect } from '../src/client/index.ts';
import { createRuntime, TextSession } from '../src/index.ts';
import { createSessionPool } from '../src/entries/journal.ts';
import { nodeEnvironment } from '../src/adapters/node/index.ts';
import { sqliteJournal } from '../src/adapters/sqlite-journal/index.ts';
import { serve } from '../src/serve/index.ts';
import { deskApp } from './lib/desk.ts';
import { heapBytes, until } from './lib/process.ts';
import { model, text } from './lib/workload.ts';

const { values } = parseArgs({ options: { sessions: { type: 'string' } } });
const SESSIONS = Number(values.sessions ?? 10_000);
const AT_A_TIME = 50;
const MOST_GROWTH = 1.2;
/** The tolerance for handles, whose number varies. */
const MOST_HANDLES = 10;

const folder = mkdtempSync(join(tmpdir(), 'offstage-soak-'));
const environment = nodeEnvironment();
const journal = sqliteJournal({
  path: join(folder, 'journal'),
  environment,
  synchronous: 'normal',
});
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
const subagents = model(() => [text('It is booked.')]);
const pool = createSessionPool({
  runtime,
  open: (sessionId) => new TextSession({ runtime, sessionId, ...deskApp(subagents) }),
  idleMs: 1,
});
const web = serve({
  pool,
  authorize: ({ sessionId, token }) =>
    sessionId === null || token === null ? null : { sessionId, user: token, role: 'user' },
  // No client returns.
  limits: { resumeMs: 1 },
});
const http = createServer((request, response) => web.handle(request, response));
http.on('upgrade', (request, socket, head) => {
  if (!web.upgrade(request, socket, head)) socket.destroy();
});
http.listen(0, '127.0.0.1');
await once(http, 'listening');
const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/offstage`;

/** Visits a session over a WebSocket or a stream, alternately. */
async function visit(session: string, index: number): Promise<void> {
  const transport = index % 2 === 0 ? 'websocket' : 'stream';
  const client = connect({ url, session, transport, token: `user of ${session}` });
  await client.send('errands 1');
  client.close();
}

interface Left {
  readonly heap: number;
  readonly handles: number;
}

let early: Left | null = null;
for (let done = AT_A_TIME; done <= SESSIONS; done += AT_A_TIME) {
  await Promise.all(
    Array.from({ length: AT_A_TIME }, (_, index) => visit(`ses_${done}_${index}`, index)),
  );
  await until(() => pool.awakeCount === 0 && web.size.sessions === 0, 'all sessions asleep');
  const tenth = (10 * done) / SESSIONS;
  if (!Number.isInteger(tenth)) continue;
  const now = { heap: await heapBytes(), handles: process.getActiveResourcesInfo().length };
  console.log(JSON.stringify({ sessions: done, ...now }));
  if (tenth === 2) early = now;
  for (const what of ['heap', 'handles'] as const)
    if (early && now[what] > MOST_GROWTH * early[what] + MOST_HANDLES)
      throw new Error(`Expected ${what} to stay what it was, ${early[what]}; it is ${now[what]}`);
}
await web.close();
http.closeAllConnections();
http.close();
await pool.close();
journal.close();
rmSync(folder, { recursive: true });
