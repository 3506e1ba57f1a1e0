// A thread with both ends of `sessions` voice sessions: the users' devices, and the voice models. The measured code
// runs between them; this thread takes every time, with one clock.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { WebSocket, WebSocketServer } from 'ws';
import { FRAME_MS } from './lib/voice-frames.ts';
import type { PeersData, PeersMessage } from './lib/voice-stage.ts';
import { noSamples, Talk } from './lib/voice-talk.ts';

const { sessions, devicePort, warmUpMs, measuredMs } = workerData as PeersData;

const tell = (message: PeersMessage): void => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of a thread has no origin
  parentPort?.postMessage(message);
};
const cpuMicroseconds = (): number => {
  const { user, system } = process.threadCpuUsage();
  return user + system;
};

const models = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
await once(models, 'listening');
const { port } = models.address() as AddressInfo;

const samples = noSamples();
const talks: Talk[] = [];
for (let number = 0; number < sessions; number += 1) {
  const modelUrl = encodeURIComponent(`ws://127.0.0.1:${port}/v1/realtime`);
  const device = new WebSocket(`ws://127.0.0.1:${devicePort}/?model=${modelUrl}`, {
    perMessageDeflate: false,
  });
  const [model] = (await once(models, 'connection')) as [WebSocket];
  talks.push(new Talk(device, model, samples));
}

/** The frames of the sessions are spread evenly over the 20 ms, like those of independent users. */
function tickForEver(): void {
  const begin = performance.now();
  const stepMs = FRAME_MS / sessions;
  let steps = 0;
  const tick = (): void => {
    const now = performance.now();
    while (begin + steps * stepMs <= now) {
      talks[steps % sessions]?.tick();
      steps += 1;
    }
    setTimeout(tick, Math.ceil(begin + steps * stepMs - now));
  };
  tick();
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

tickForEver();
for (const talk of talks) {
  void talk.converse();
  // The conversations also start at different times.
  await pause(Math.min(100, 3000 / sessions));
}
await pause(warmUpMs);
for (const list of Object.values(samples)) list.length = 0;
tell({ type: 'begun', cpuMicroseconds: cpuMicroseconds() });
await pause(measuredMs);
tell({ type: 'ended', cpuMicroseconds: cpuMicroseconds(), samples });
