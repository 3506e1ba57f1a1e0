// A thread that replaces the user's device: it starts to speak at random times, and reports when.

import { parentPort, workerData } from 'node:worker_threads';

const { times } = workerData as { times: number };

for (let time = 0; time < times; time += 1) {
  await new Promise((resolve) => {
    setTimeout(resolve, 15 + 20 * Math.random());
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of a thread has no origin
  parentPort?.postMessage(performance.timeOrigin + performance.now());
}
