// Many pages watch one text session through `offstage/serve`, each over a WebSocket: the cost of a change of the
// session for each page, and the memory of a page. The floor is a bare server that sends the same text to the same
// sockets.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { WebSocketServer } from 'ws';
import { TextSession } from '../../src/index.ts';
import { serve } from '../../src/serve/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { heapBytes, until } from '../lib/process.ts';

const WARM_UP = 20;
const UPDATES = 100;

interface Site {
  readonly http: Server;
  /** Changes the state that all pages show. */
  change(): void;
}

async function measure(n: number, site: Site): Promise<Numbers> {
  site.http.listen(0, '127.0.0.1');
  await once(site.http, 'listening');
  const url = `ws://127.0.0.1:${(site.http.address() as AddressInfo).port}/offstage`;
  const counts = new Int32Array(new SharedArrayBuffer(12));
  const before = await heapBytes();
  const worker = new Worker(new URL('../clients-worker.ts', import.meta.url), {
    workerData: { url, clients: n, counts },
  });
  await until(() => Atomics.load(counts, 0) === n, `${n} clients`);
  const heap = ((await heapBytes()) - before) / n;
  const change = async (): Promise<void> => {
    const frames = Atomics.load(counts, 1);
    site.change();
    await until(() => Atomics.load(counts, 1) >= frames + n, 'an update at each client');
  };
  for (let update = 0; update < WARM_UP; update += 1) await change();
  const frames = Atomics.load(counts, 1);
  const bytes = Atomics.load(counts, 2);
  // Waiting for the clients turns the event loop, which takes time but is no work, so it is not measured.
  let cpu = 0;
  for (let update = 0; update < UPDATES; update += 1) {
    const begun = process.threadCpuUsage();
    site.change();
    await new Promise((resolve) => setTimeout(resolve, 60));
    const { user, system } = process.threadCpuUsage(begun);
    cpu += user + system;
  }
  await until(() => Atomics.load(counts, 1) >= frames + UPDATES * n, 'the last update');
  const numbers = {
    heap,
    bytes: (Atomics.load(counts, 2) - bytes) / (UPDATES * n),
    cpu: cpu / (UPDATES * n),
  };
  await worker.terminate();
  return numbers;
}

async function offstage(n: number): Promise<Numbers> {
  const session = new TextSession({
    model: scriptedModel([{ text: 'Hello.' }]),
    agents: [{ name: 'desk', instructions: 'You are at the desk.' }],
  });
  const web = serve({
    session: () => session,
    authorize: () => ({ sessionId: session.id, user: 'ann', role: 'watcher' }),
    limits: { clients: n + 1, clientsPerUser: n + 1 },
  });
  const http = createServer(web.handle);
  http.on('upgrade', (request, socket, head) => {
    if (!web.upgrade(request, socket, head)) socket.destroy();
  });
  let shown: string | null = null;
  let count = 0;
  return measure(n, {
    http,
    change() {
      if (shown !== null) session.dismiss(shown);
      shown = session.notifyBackground(`Notice ${(count += 1)}`);
    },
  });
}

/** About the text that Offstage sends when one notice arrives and one leaves. */
const UPDATE = JSON.stringify({
  type: 'state',
  seq: 123_456,
  patch: { deliveries: 'x'.repeat(1320) },
});

async function floor(n: number): Promise<Numbers> {
  const http = createServer();
  const sockets = new WebSocketServer({ server: http });
  sockets.on('connection', (socket) => socket.once('message', () => socket.send(UPDATE)));
  return measure(n, {
    http,
    change() {
      for (const socket of sockets.clients) socket.send(UPDATE);
    },
  });
}

export const clients: Measurement = {
  contenders: { offstage, floor },
  sizes: [100, 1000],
  repetitions: 3,
  lines: [
    { figure: 'client_update_bytes', unit: 'bytes', number: 'bytes', floor: null, goal: null },
    { figure: 'client_update_cpu', unit: 'us', number: 'cpu', floor: 'floor', goal: null },
    { figure: 'client_heap', unit: 'bytes', number: 'heap', floor: 'floor', goal: null },
  ],
};
