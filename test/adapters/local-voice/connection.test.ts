// The health of a connection: pings, and back-pressure from a client that does not read.

import { describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { startHarness } from './support/harness.ts';
import { WireClient } from './support/wire-client.ts';

const KEEP_ALIVE_MS = 20_000;
const POLL_MS = 20;

/** Real time, except that tasks with a delay of `heldMs` run only on request. */
function holding(heldMs: number) {
  const environment = nodeEnvironment();
  const held: (() => void)[] = [];
  let wake = (): void => undefined;
  const scheduler: Environment['scheduler'] = {
    ...environment.scheduler,
    schedule(task, delayMs) {
      if (delayMs !== heldMs) return environment.scheduler.schedule(task, delayMs);
      held.push(task);
      wake();
      return () => undefined;
    },
  };
  return {
    environment: { ...environment, scheduler },
    /** Waits for the next such task and returns it. */
    async take(): Promise<() => void> {
      for (;;) {
        const task = held.shift();
        if (task !== undefined) return task;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

describe('keep-alive', () => {
  test('keeps a client that answers pings', async () => {
    const { environment, take } = holding(KEEP_ALIVE_MS);
    const { connect } = await startHarness({ environment });
    const client = await connect();
    for (let beat = 0; beat < 3; beat += 1) {
      const pinged = new Promise((resolve) => {
        client.socket.once('ping', resolve);
      });
      (await take())();
      await pinged;
      // The pong is sent before this message.
      await client.fence();
    }
  });

  test('drops a client that has not answered a ping by the next one', async () => {
    const { environment, take } = holding(KEEP_ALIVE_MS);
    const { address } = await startHarness({ environment });
    const headers = { authorization: `Bearer ${address.apiKey}` };
    const client = new WireClient(address.url, { headers, autoPong: false });
    await client.next('session.created');
    (await take())();
    (await take())();
    expect((await client.closed()).code).toBe(1006);
  });
});

describe('a client that does not read', () => {
  test('pauses synthesis, so that no audio accumulates in memory', async () => {
    const sentences = Array.from({ length: 1_000 }, (_, at) => `This is sentence number ${at}. `);
    const { environment, take } = holding(POLL_MS);
    const { connect, speech } = await startHarness({
      environment,
      answers: [[sentences.join('')]],
    });
    const client = await connect();
    client.send({ type: 'response.create' });
    await client.next('response.output_audio.delta');
    client.socket.pause();
    // The server waits and checks again later.
    const lookAgain = await take();
    const spoken = speech.spoken.length;
    expect(spoken).toBeLessThan(sentences.length);
    // The client has read nothing in the meantime, so the server keeps waiting.
    lookAgain();
    client.socket.resume();
    client.send({ type: 'response.cancel' });
    expect((await client.next('response.done'))['response'].status).toBe('cancelled');
    expect(speech.spoken.length).toBe(spoken);
  });
});
