// A thread that replaces many pages: each page has a WebSocket, says hello, and reads. The thread counts the frames
// in shared memory, so that counting costs the server nothing.

import { workerData } from 'node:worker_threads';
import { WebSocket } from 'ws';

const { url, clients, counts } = workerData as {
  readonly url: string;
  readonly clients: number;
  /** The clients that have received the first state, the frames since then, and their bytes. */
  readonly counts: Int32Array;
};

for (let client = 0; client < clients; client += 1) {
  const socket = new WebSocket(url, ['offstage.v1']);
  socket.once('open', () =>
    socket.send(JSON.stringify({ type: 'hello', v: 1, client: `c${client}` })),
  );
  socket.once('message', () => {
    Atomics.add(counts, 0, 1);
    socket.on('message', (data: Buffer) => {
      Atomics.add(counts, 1, 1);
      Atomics.add(counts, 2, data.length);
    });
  });
  // A burst of upgrades would measure the accept queue of the socket.
  if (client % 50 === 49) await new Promise((resolve) => socket.once('message', resolve));
}
