// A thread that replaces one open page of the inspector: on each message it makes the requests of the page's
// script.

import { parentPort, workerData } from 'node:worker_threads';

const { base, token, session } = workerData as {
  readonly base: string;
  readonly token: string;
  readonly session: string;
};

async function ask(path: string): Promise<unknown> {
  const answer = await fetch(`${base}/api/${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error(JSON.stringify(body));
  return body;
}

let has = 0;
async function poll(): Promise<void> {
  await ask('machines');
  const { entries } = (await ask(`entries?session=${session}&after=${has}`)) as {
    entries: readonly unknown[];
  };
  has += entries.length;
  if (entries.length > 0) await ask(`at?session=${session}&entry=${has}&id=session`);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of a thread has no origin
  parentPort?.postMessage(has);
}

parentPort?.on('message', () => void poll());
