// The resources that the units in a process share, and calls to third-party code.

import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { callSafely, createHost } from '../../../src/actors/runtime/host.ts';
import { plain, type Effect } from '../../../src/actors/runtime/hosting.ts';
import {
  activities,
  deadline,
  effect,
  stopActivity,
  type Deadline,
} from '../../../src/machines/index.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { hosted } from '../../support/hosted.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const hostWith = (onError: (error: unknown, where: string) => void, inspect?: () => void) =>
  createHost({ environment: simulatedEnvironment(), journal: memoryJournal(), onError, inspect });

describe('code of the app', () => {
  test('causes an error report that says where it threw or rejected', async () => {
    const reports: unknown[] = [];
    const host = hostWith((error, where) => reports.push([where, (error as Error).message]));
    callSafely(host, 'one', () => {
      throw new Error('thrown');
    });
    callSafely(host, 'two', async () => {
      throw new Error('rejected');
    });
    await Promise.resolve();
    await Promise.resolve();
    expect(reports).toEqual([
      ['one', 'thrown'],
      ['two', 'rejected'],
    ]);
  });

  test('does not cause another error when it throws in onError', () => {
    const host = hostWith(() => {
      throw new Error('worse');
    });
    expect(() => host.report(new Error('bad'), 'here')).not.toThrow();
  });

  test('does not cause another error when it rejects in onError or throws in onIgnored', async () => {
    const where: string[] = [];
    const host = createHost({
      environment: simulatedEnvironment(),
      journal: memoryJournal(),
      // An unhandled rejection would fail the run.
      onError(_, place) {
        where.push(place);
        return Promise.reject(new Error('worse')) as unknown as undefined;
      },
      onIgnored() {
        throw new Error('broken');
      },
    });
    expect(() => host.ignored('unit', 'actor', { type: 'late' })).not.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(where).toEqual(['onIgnored']);
  });

  test('does not stop the actor when it throws in an inspector', () => {
    const reports: string[] = [];
    const host = hostWith(
      (_, where) => reports.push(where),
      () => {
        throw new Error('the inspector is broken');
      },
    );
    const actor = hosted(counter, {}, () => {}, host.actors);
    actor.send({ type: 'count' });
    expect(actor.snapshot.context.count).toBe(1);
    expect(reports.length).toBeGreaterThan(0);
    expect(new Set(reports)).toEqual(new Set(['inspect']));
  });
});

const counter = setup({
  types: { context: {} as { count: number }, events: {} as { type: 'count' } | { type: 'stop' } },
  actions: {
    ...activities<Deadline>(),
    say: effect<{ count: number }>(),
    add: assign({ count: ({ context }) => context.count + 1 }),
  },
}).createMachine({
  context: { count: 0 },
  initial: 'on',
  states: {
    on: {
      entry: { type: 'startActivity', params: deadline('due', 7, 'd') },
      exit: stopActivity('deadline', 'd'),
      on: {
        count: { actions: ['add', { type: 'say', params: ({ context }) => context }] },
        stop: 'off',
      },
    },
    off: {},
  },
});

describe('a hosted machine', () => {
  const none = () => {};

  test('HOST-2: posts its effects in order without executing them', () => {
    const posted: Effect[] = [];
    const actor = hosted(counter, {}, (effect) => posted.push(effect));
    actor.send({ type: 'count' });
    actor.send({ type: 'stop' });
    expect(posted).toEqual([
      { kind: 'start', name: 'deadline', id: 'd', input: { dueAt: 7, event: 'due' } },
      { kind: 'do', name: 'say', params: { count: 1 } },
      { kind: 'stop', name: 'deadline', id: 'd' },
    ]);
  });

  test('posts only to its own mailbox, even alongside another instance of the same machine', () => {
    const boxes: string[][] = [[], []];
    const actors = boxes.map((box) => hosted(counter, {}, ({ name }) => box.push(name)));
    actors[1]?.send({ type: 'count' });
    expect(boxes).toEqual([['deadline'], ['deadline', 'say']]);
  });

  test('HOST-3: continues from a snapshot without posting effects again', () => {
    const first = hosted(counter, {}, none);
    first.send({ type: 'count' });
    const posted: Effect[] = [];
    const box = (effect: Effect) => posted.push(effect);
    const second = hosted(counter, { snapshot: plain(first.snapshot) }, box);
    expect(second.snapshot.context.count).toBe(1);
    expect(posted).toEqual([]);
  });

  test('keeps its state when an action throws, and does not affect the next machine', () => {
    const broken = setup({
      actions: {
        say: effect<object>(),
        fail: () => {
          throw new Error('broken');
        },
      },
    }).createMachine({ on: { go: { actions: ['fail', { type: 'say', params: {} }] } } });
    const posted: Effect[] = [];
    const actor = hosted(broken, {}, (effect) => posted.push(effect));
    const before = actor.snapshot;
    expect(() => actor.send({ type: 'go' })).toThrow('broken');
    expect(actor.snapshot).toBe(before);
    const next = hosted(counter, {}, none);
    next.send({ type: 'count' });
    expect(posted).toEqual([]);
  });

  test('restores its context without traversing it', () => {
    const { value, context } = hosted(counter, {}, none).snapshot;
    let looks = 0;
    const long = new Proxy(['one', 'two'], {
      get: (target, key) => ((looks += 1), Reflect.get(target, key)),
      ownKeys: (target) => ((looks += 1), Reflect.ownKeys(target)),
    });
    const snapshot = { value, context: { ...context, long } } as never;
    const second = hosted(counter, { snapshot }, none);
    second.send({ type: 'count' });
    expect(second.snapshot.context).toMatchObject({ count: 1 });
    expect(looks).toBe(0);
  });
});

test.each([0, -1, Number.NaN, 'many' as never])(
  'a runtime refuses maxTotalActive = %s',
  (maxTotalActive) => {
    expect(() => createRuntime({ environment: simulatedEnvironment(), maxTotalActive })).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringContaining('maxTotalActive'),
      }),
    );
  },
);

test('refuses a runtime limit that is not an integer', () => {
  expect(() => createRuntime({ environment: simulatedEnvironment(), maxTotalActive: 1.5 })).toThrow(
    expect.objectContaining({ name: 'ConfigurationError' }),
  );
});
