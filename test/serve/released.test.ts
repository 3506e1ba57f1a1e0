// Servers keep no reference to sessions and chats that are over.

import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatHandler } from '../../src/ai-sdk-ui/index.ts';
import { createRuntime, memoryJournal, type TextSession } from '../../src/index.ts';
import { createSessionPool, type SessionPool } from '../../src/entries/journal.ts';
import { rideSession, served } from './support/served.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** A pool that reports which of its sessions are still in memory and how many listeners its signal has. */
function watchedPool() {
  const runtime = createRuntime({ journal: memoryJournal() });
  const sessions: WeakRef<TextSession>[] = [];
  let signal: AbortSignal | null = null;
  const pool = createSessionPool({
    runtime,
    idleMs: 1,
    open: (sessionId) => {
      const session = rideSession({ sessionId, runtime });
      sessions.push(new WeakRef(session));
      return session;
    },
  });
  onTestFinished(() => pool.close());
  const watched: SessionPool<TextSession> = {
    ...pool,
    get awakeCount() {
      return pool.awakeCount;
    },
    use: (sessionId, use) =>
      pool.use(sessionId, (session, draining) => {
        signal = draining;
        return use(session, draining);
      }),
  };
  return {
    pool: watched,
    opened: () => sessions.length,
    listeners: () => (signal ? getEventListeners(signal, 'abort').length : null),
    async left(): Promise<number> {
      while (pool.awakeCount > 0) await new Promise((resolve) => setImmediate(resolve));
      // In the meantime, the last sockets close. Reading a weak reference keeps its target alive until the end of the
      // turn.
      let there = sessions.length;
      for (let turn = 0; turn < 20 && there > 0; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        collect();
        there = sessions.filter((each) => each.deref() !== undefined).length;
      }
      return there;
    },
  };
}

describe('a pool behind `serve`', () => {
  it.each(['websocket', 'stream'] as const)(
    'releases its sessions and listeners after its clients have left (%s)',
    async (transport) => {
      const watched = watchedPool();
      const { client, web } = await served({
        pool: watched.pool,
        authorize: ({ sessionId }) => ({ sessionId: sessionId ?? '', user: 'ann', role: 'user' }),
        limits: { resumeMs: 1 },
      });
      for (const session of ['s_1', 's_2', 's_3']) {
        const ann = client({ session, transport });
        await ann.it.send('hello');
        ann.it.close();
      }
      while (web.size.sessions > 0) await new Promise((resolve) => setImmediate(resolve));
      expect(await watched.left()).toBe(0);
      expect([watched.opened(), watched.listeners()]).toEqual([3, 0]);
      expect(web.size).toEqual({ clients: 0, sessions: 0 });
    },
  );
});

describe('a pool behind `chatHandler`', () => {
  it('releases its sessions after the responses have ended', async () => {
    const watched = watchedPool();
    const handle = chatHandler({
      pool: watched.pool,
      authorize: (request) => ({
        sessionId: request.headers.get('x-session') ?? '',
        user: 'ann',
      }),
    });
    for (const session of ['s_1', 's_2', 's_3']) {
      const response = await handle(
        new Request('http://app.example/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-session': session },
          body: JSON.stringify({
            id: 'c1',
            trigger: 'submit-message',
            messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
          }),
        }),
      );
      expect(await response.text()).toContain('[DONE]');
    }
    expect(await watched.left()).toBe(0);
    expect(watched.opened()).toBe(3);
  });
});
