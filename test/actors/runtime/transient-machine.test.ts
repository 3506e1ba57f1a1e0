// A machine without a journal: its effects are immediate, its deadlines are timers, and nothing of it is left after it
// stops.

import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { TransientMachine } from '../../../src/actors/runtime/transient-machine.ts';
import {
  activities,
  deadline,
  effect,
  stopActivity,
  type Deadline,
} from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

type Fact =
  | { readonly type: 'begin' | 'break' }
  | { readonly type: 'late'; readonly dueAt: number };

interface Effects {
  readonly ring: { readonly at: number };
}

/** Fires at that time unless it has been stopped. */
const bell = setup({
  types: {
    input: {} as { readonly dueAt: number },
    context: {} as { readonly dueAt: number },
    events: {} as Fact,
  },
  actions: { ...activities<Deadline>(), ring: effect<{ readonly at: number }>() },
}).createMachine({
  context: ({ input }) => ({ dueAt: input.dueAt }),
  initial: 'off',
  states: {
    off: { on: { begin: 'on' } },
    on: {
      entry: {
        type: 'startActivity',
        params: ({ context }) => deadline('late', context.dueAt, 'bell'),
      },
      exit: stopActivity('deadline', 'bell'),
      on: {
        break: 'off',
        late: {
          target: 'off',
          actions: { type: 'ring', params: ({ event }) => ({ at: event.dueAt }) },
        },
      },
    },
  },
});

function hung(isBackground = false) {
  const environment = simulatedEnvironment();
  const host = createHost({ environment, journal: memoryJournal() });
  const done: unknown[] = [];
  const dueAt = environment.clock.now() + 1000;
  const machine = new TransientMachine<typeof bell, Fact, Effects>(bell, 'bell', host, {
    input: { dueAt },
    isBackground,
    handlers: { ring: (params) => done.push(['ring', params]) },
  });
  return { environment, machine, done, dueAt };
}

describe('a machine without a journal', () => {
  test('executes its effects and fires its deadlines', async () => {
    const { environment, machine, done, dueAt } = hung();
    machine.send({ type: 'begin' });
    await environment.advance(999);
    expect(done).toEqual([]);
    await environment.advance(1);
    expect(done).toEqual([['ring', { at: dueAt }]]);
  });

  test('ignores a cancelled deadline', async () => {
    const { environment, machine, done } = hung();
    machine.send({ type: 'begin' });
    machine.send({ type: 'break' });
    expect(environment.pendingTimers).toBe(0);
    await environment.advance(10_000);
    expect(done).toEqual([]);
  });

  test('clears its deadlines when stopped, and ignores later events', async () => {
    const { environment, machine, done } = hung();
    machine.send({ type: 'begin' });
    machine.stop();
    expect([machine.isOver, environment.pendingTimers]).toEqual([true, 0]);
    machine.send({ type: 'break' });
    expect(machine.snapshot.value).toBe('on');
    await environment.advance(10_000);
    expect(done).toEqual([]);
  });

  test('keeps the process alive for its deadlines unless they run in the background', () => {
    const timers = [true, false].map((isBackground) => {
      const { environment, machine } = hung(isBackground);
      machine.send({ type: 'begin' });
      return [environment.backgroundTimers, environment.pendingTimers];
    });
    expect(timers).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });
});
