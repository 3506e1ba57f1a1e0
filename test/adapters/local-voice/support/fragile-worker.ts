// The inside of a speech thread that counts its calls and dies when asked to.

import { parentPort } from 'node:worker_threads';
import type { ThreadRequest } from '../../../../src/adapters/local-voice/speech/thread-protocol.ts';

let calls = 0;
parentPort?.on('message', ({ id, call }: ThreadRequest) => {
  calls += 1;
  if (call === 'detect') process.exit(3);
  if (call === 'synthesize') return;
  if (call === 'forget') throw new Error('a bug');
  parentPort?.postMessage({ type: 'answer', id, value: `call ${calls}` }, []);
});
parentPort?.postMessage({ type: 'ready' }, []);
