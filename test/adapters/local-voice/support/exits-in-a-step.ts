// A program that exits during a step of a thread. Its exit code is 7 if the step was done by then.

import { SpeechThread } from '../../../../src/adapters/local-voice/speech/built-in-engine.ts';

const [begun, , done, mostMs] = [0, 1, 2, 3];
const steps = new Int32Array(new SharedArrayBuffer(16));
steps[mostMs] = 200;
const thread = new SpeechThread('transcriber', new URL('fragile-worker.ts', import.meta.url));
await thread.start();
thread
  .call('transcribe', { samples: new Int16Array(steps.buffer), sampleRateHz: 16_000 })
  .catch(() => {});
while (Atomics.load(steps, begun) === 0) await new Promise((turn) => setImmediate(turn));
process.on('exit', () => {
  process.exitCode = Atomics.load(steps, done) === 1 ? 7 : 1;
});
process.exit();
