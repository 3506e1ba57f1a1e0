// The inside of a speech thread that counts its calls and dies on request. Shared samples are the steps of a running
// model (started, may continue, done), with its duration in milliseconds.

import { parentPort, workerData } from 'node:worker_threads';
import { tellEnd } from '../../../../src/adapters/local-voice/speech/exit-guard.ts';
import type {
  ThreadEnding,
  ThreadRequest,
  ThreadStart,
} from '../../../../src/adapters/local-voice/speech/thread-protocol.ts';

tellEnd((workerData as ThreadStart).ended);
let calls = 0;
parentPort?.on('message', (message: ThreadRequest | ThreadEnding) => {
  if (message.call === 'end') process.exit(0);
  const { id, call, argument } = message;
  calls += 1;
  if (call === 'transcribe' && argument.samples.buffer instanceof SharedArrayBuffer) {
    const [begun, goOn, done, mostMs] = [0, 1, 2, 3];
    const steps = new Int32Array(argument.samples.buffer);
    Atomics.store(steps, begun, 1);
    Atomics.wait(steps, goOn, 0, steps[mostMs]);
    Atomics.store(steps, done, 1);
    return;
  }
  if (call === 'detect') process.exit(3);
  if (call === 'synthesize') return;
  if (call === 'forget') throw new Error('a bug');
  parentPort?.postMessage({ type: 'answer', id, value: `call ${calls}` }, []);
});
parentPort?.postMessage({ type: 'ready' }, []);
