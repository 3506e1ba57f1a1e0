// A keep-alive on an event loop that the test drives: first timers, then the socket's input, then the tasks that waited
// for it.

import { describe, expect, it } from 'vitest';
import { createKeepAlive } from '../../../src/adapters/socket/keep-alive.ts';

function begun() {
  const seen: string[] = [];
  let timer: (() => void) | null = null;
  const turns: (() => void)[] = [];
  const keepAlive = createKeepAlive({
    scheduler: {
      schedule(task) {
        timer = task;
        return () => {
          timer = null;
        };
      },
      yieldThen: (task) => void turns.push(task),
    },
    intervalMs: 100,
    ping: () => seen.push('ping'),
    onSilence: () => seen.push('silence'),
  });
  keepAlive.start();
  const turn = (inTheSocket = () => {}): void => {
    const due = timer;
    timer = null;
    due?.();
    inTheSocket();
    for (const task of turns.splice(0)) task();
  };
  return { keepAlive, seen, turn };
}

describe('createKeepAlive', () => {
  it('reports a lost peer only once if nothing has arrived between two pings', () => {
    const { seen, turn } = begun();
    for (let each = 0; each < 5; each += 1) turn();
    expect(seen).toEqual(['ping', 'silence']);
  });

  it('counts an answer even if a blocked event loop reads it only after the timers have fired', () => {
    const { keepAlive, seen, turn } = begun();
    turn();
    turn(() => keepAlive.heard());
    turn(() => keepAlive.heard());
    expect(seen).toEqual(['ping', 'ping', 'ping']);
  });

  it('does nothing once stopped, even in the middle of an event loop turn', () => {
    const { keepAlive, seen, turn } = begun();
    turn();
    turn(() => keepAlive.stop());
    turn();
    expect(seen).toEqual(['ping']);
  });
});
