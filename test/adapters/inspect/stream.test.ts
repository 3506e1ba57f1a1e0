// The record of actors, and when viewers receive it: crashes, names, bounds and failures.

import { describe, expect, test, vi } from 'vitest';
import {
  assign,
  createActor,
  createMachine,
  fromCallback,
  setup,
  type InspectionEvent,
} from 'xstate';
import { createInspector, type InspectorMessage } from '../../../src/adapters/inspect/index.ts';
import type { InspectorOptions } from '../../../src/adapters/inspect/inspector.ts';
import { redactWords } from '../../../src/adapters/inspect/shown-value.ts';
import { InspectionStream } from '../../../src/adapters/inspect/stream.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { seen } from './support/receiver.ts';
import { stamped, startQuestion, startSession, startSubagent } from './support/ride.ts';

async function watched(options: Partial<InspectorOptions> = {}) {
  const environment = simulatedEnvironment();
  const view = seen();
  const { inspect, stop } = await createInspector({
    environment,
    to: { mode: 'sink', send: view.take },
    ...options,
  });
  return { environment, view, inspect, stop };
}

/** Creates only a stream, for viewers that behave differently. */
function bare(options: { maxQueuedLines?: number; maxEndedActors?: number } = {}) {
  const environment = simulatedEnvironment();
  const errors: [unknown, string][] = [];
  const stream = new InspectionStream({
    environment,
    redact: redactWords,
    maxBytes: 65_536,
    maxQueuedLines: 1_000,
    maxEndedActors: 100,
    flushMs: 50,
    onError: (error, where) => errors.push([error, where]),
    ...options,
  });
  return { environment, stream, errors };
}

function viewer(isReady = () => true) {
  const view = seen();
  return {
    view,
    isReady,
    send: ({ message }: { message: InspectorMessage }) => view.take(message),
  };
}

const lamp = createMachine({
  id: 'lamp',
  initial: 'off',
  states: { off: { on: { TOGGLE: 'on' } }, on: { on: { TOGGLE: 'off' } } },
});

const fragile = setup({
  types: { events: {} as { type: 'BREAK' } },
  actions: {
    fail: () => {
      throw new Error('what the user said');
    },
  },
}).createMachine({ id: 'fragile', on: { BREAK: { actions: 'fail' } } });

describe('STREAM-1: the cost of inspection', () => {
  test('does not convert or send anything until the interval is over', async () => {
    const { environment, view, inspect } = await watched();
    const get = vi.fn<() => string>(() => 'x');
    const actor = createActor(lamp, { id: 'lamp', inspect }).start();
    actor.send({
      type: 'TOGGLE',
      payload: Object.defineProperty({}, 'a', { enumerable: true, get }),
    });
    expect([view.messages.length, get.mock.calls.length]).toEqual([0, 0]);
    await environment.advance(49);
    expect(view.messages).toEqual([]);
    await environment.advance(1);
    expect(get).toHaveBeenCalledTimes(1);
    expect(view.snapshots('lamp').map(({ snapshot }) => snapshot.value)).toEqual(['off', 'on']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('shows the initial state of an actor that started and ended within one interval', async () => {
    const { environment, view, inspect } = await watched();
    const subagent = startSubagent(inspect);
    subagent.send(stamped({ type: 'subagent.cancel' as const, reason: 'user' }));
    await environment.advance(50);
    expect(view.actor('ses_1/sub_1')?.snapshot).toMatchObject({
      status: 'active',
      value: 'spawning',
    });
  });

  test('reports a malformed inspection event without throwing', async () => {
    const { stream, errors } = bare();
    stream.inspect({ type: '@xstate.event' } as unknown as InspectionEvent);
    expect(errors).toHaveLength(1);
  });

  test('sends waiting messages on `stop`, but nothing afterwards', async () => {
    const { environment, view, inspect, stop } = await watched();
    const actor = createActor(lamp, { id: 'lamp', inspect }).start();
    await stop();
    expect(view.snapshots('lamp')).toHaveLength(1);
    actor.send({ type: 'TOGGLE' });
    await environment.advance(1000);
    expect(view.snapshots('lamp')).toHaveLength(1);
    await stop();
  });

  test('sends a burst in slices, so that the event loop can run', async () => {
    const { environment, view, inspect } = await watched();
    const actor = createActor(lamp, { id: 'lamp', inspect }).start();
    for (let index = 0; index < 1000; index += 1) actor.send({ type: 'TOGGLE' });
    const sizes: number[] = [];
    const slices = vi.spyOn(environment.scheduler, 'yieldThen').mockImplementation((task) => {
      sizes.push(view.messages.length);
      setImmediate(task);
    });
    await environment.advance(50);
    await view.until(({ events }) => events('lamp').length === 1001);
    expect(slices.mock.calls.length).toBeGreaterThan(50);
    expect(sizes[0]).toBeLessThan(50);
    expect(view.events('lamp')).toHaveLength(1001);
  });
});

describe('STREAM-3: a machine that throws', () => {
  test('appears as failed, even though XState does not report a snapshot of it', async () => {
    const { environment, view, inspect } = await watched();
    const actor = createActor(fragile, { id: 'fragile', inspect });
    actor.subscribe({ error() {} });
    actor.start();
    actor.send({ type: 'BREAK' });
    await environment.advance(50);
    expect(view.snapshots('fragile').at(-1)?.snapshot).toMatchObject({
      status: 'error',
      error: { type: 'Error', message: '[redacted 18 chars]' },
    });
  });
});

describe('ACTOR-REGISTRY-1, ACTOR-REGISTRY-2: names', () => {
  test('reuses the name of the previous invocation for the next one', async () => {
    const { environment, view, inspect } = await watched();
    const machine = setup({ actors: { wait: fromCallback(() => {}) } }).createMachine({
      id: 'm',
      initial: 'a',
      states: {
        a: { invoke: { id: 'wait', src: 'wait' }, on: { AGAIN: { target: 'a', reenter: true } } },
      },
    });
    const actor = createActor(machine, { id: 'm', inspect }).start();
    actor.send({ type: 'AGAIN' });
    actor.send({ type: 'AGAIN' });
    await environment.advance(50);
    expect(view.ids).toEqual(['m', 'm/wait']);
    expect(view.snapshots('m/wait').at(-1)?.snapshot.status).toBe('active');
    expect(view.actor('m/wait')?.parentId).toBe('m');
    actor.stop();
    await environment.advance(50);
    expect(view.snapshots('m/wait').at(-1)?.snapshot.status).toBe('stopped');
  });

  test('distinguishes two live actors with the same id, and frees the second name afterwards', async () => {
    const { environment, view, inspect } = await watched();
    const first = createActor(lamp, { id: 'lamp', inspect }).start();
    const second = createActor(lamp, { id: 'lamp', inspect }).start();
    second.send({ type: 'TOGGLE' });
    await environment.advance(50);
    expect(view.ids).toEqual(['lamp', `lamp#${second.sessionId}`]);
    expect(view.events('lamp').map(({ event }) => event.type)).toEqual(['xstate.init']);
    first.stop();
    createActor(lamp, { id: 'lamp', inspect }).start();
    await environment.advance(50);
    expect(view.ids).toHaveLength(2);
    expect(view.snapshots('lamp').map(({ snapshot }) => snapshot.status)).toEqual([
      'active',
      'stopped',
      'active',
    ]);
  });

  test('attaches an actor to its nearest known parent, or makes it a root', async () => {
    const { environment, view, inspect } = await watched();
    startSubagent(inspect, 'sub_1', 'nobody');
    startSession(inspect, 'ses_2');
    startQuestion(inspect, 'a/b/c', undefined, 'ses_2');
    await environment.advance(50);
    expect(view.actor('nobody/sub_1')).toMatchObject({
      parentId: undefined,
      rootId: 'nobody/sub_1',
    });
    expect(view.actor('ses_2/question:a/b/c')).toMatchObject({ parentId: 'ses_2', name: 'c' });
  });

  test("identifies an event's sender by the sender's name in the tree", async () => {
    const { environment, view, inspect } = await watched();
    const child = setup({ types: { events: {} as { type: 'PING' } } }).createMachine({
      id: 'child',
    });
    const parent = setup({ actors: { child } }).createMachine({
      id: 'parent',
      invoke: { id: 'child', src: 'child' },
      on: {
        GO: { actions: ({ self }) => self.getSnapshot().children['child']?.send({ type: 'PING' }) },
      },
    });
    createActor(parent, { id: 'ses_1/sub_1', inspect }).start();
    await environment.advance(50);
    expect(view.events('ses_1/sub_1/child')[0]).toMatchObject({
      sourceId: 'ses_1/sub_1',
      event: { type: 'xstate.init' },
    });
  });

  test('shows the actors of a running system from their next event', async () => {
    const { environment, view, inspect } = await watched();
    const actor = createActor(lamp, { id: 'lamp' }).start();
    actor.system.inspect(inspect);
    actor.send({ type: 'TOGGLE' });
    await environment.advance(50);
    expect(view.actor('lamp')?.snapshot.value).toBe('off');
    expect(view.snapshots('lamp').map(({ snapshot }) => snapshot.value)).toEqual(['on']);
  });
});

describe('ACTOR-REGISTRY-3: ended actors', () => {
  test('appear to a late viewer only if they are among the latest', async () => {
    const { environment, stream } = bare({ maxEndedActors: 3 });
    startSession(stream.inspect);
    for (let index = 0; index < 10; index += 1)
      createActor(lamp, { id: `ses_1/sub_${index}`, inspect: stream.inspect })
        .start()
        .stop();
    const late = viewer();
    stream.attach(late);
    await environment.advance(50);
    expect(late.view.ids).toEqual(['ses_1', 'ses_1/sub_7', 'ses_1/sub_8', 'ses_1/sub_9']);
  });
});

describe('VIEWER-QUEUE-1, VIEWER-QUEUE-2: a viewer that is too slow', () => {
  test('misses some of the history, but is informed, and receives the latest state of every actor', async () => {
    const { environment, stream } = bare({ maxQueuedLines: 100 });
    let isReady = false;
    const slow = viewer(() => isReady);
    const quick = viewer();
    stream.attach(slow);
    stream.attach(quick);
    const session = startSession(stream.inspect);
    const actor = createActor(lamp, { id: 'lamp', inspect: stream.inspect }).start();
    for (let index = 0; index < 1001; index += 1) {
      actor.send({ type: 'TOGGLE' });
      if (index % 20 === 0) await environment.advance(50);
    }
    session.stop();
    isReady = true;
    await environment.advance(100);
    const { view } = slow;
    expect(view.ids.toSorted()).toEqual(['lamp', 'ses_1']);
    expect(view.snapshots('lamp').at(-1)?.snapshot.value).toBe('on');
    expect(view.snapshots('ses_1').at(-1)?.snapshot.status).toBe('stopped');
    const missed = view.messages
      .filter((message) => message.type === '@xstate.event')
      .map(({ event }) => event)
      .filter(({ type }) => type === 'offstage.inspect.gap')
      .reduce((sum, { droppedLines }) => sum + (droppedLines as number), 0);
    const told = view.messages.filter(
      (message) => !('event' in message && message.event.type === 'offstage.inspect.gap'),
    ).length;
    expect(view.messages.length).toBeLessThanOrEqual(110);
    expect(told + missed).toBe(quick.view.messages.length);
  });
});

test('VIEWER-QUEUE-1: does not fill the queue when an actor is invoked repeatedly', async () => {
  const { environment, stream } = bare({ maxQueuedLines: 100 });
  let isReady = false;
  const slow = viewer(() => isReady);
  stream.attach(slow);
  const machine = setup({ actors: { wait: fromCallback(() => {}) } }).createMachine({
    id: 'm',
    initial: 'a',
    states: {
      a: { invoke: { id: 'wait', src: 'wait' }, on: { AGAIN: { target: 'a', reenter: true } } },
    },
  });
  const actor = createActor(machine, { id: 'm', inspect: stream.inspect }).start();
  for (let index = 0; index < 1000; index += 1) actor.send({ type: 'AGAIN' });
  isReady = true;
  await environment.advance(100);
  expect(slow.view.messages.length).toBeLessThan(220);
  expect(slow.view.messages[0]).toMatchObject({ type: '@xstate.actor', sessionId: 'm' });
  expect(slow.view.ids).toEqual(['m', 'm/wait']);
  expect(slow.view.snapshots('m/wait').at(-1)?.snapshot.status).toBe('active');
});

describe('STREAM-4: a viewer that fails', () => {
  test('gets removed without affecting the actors or other viewers', async () => {
    const { environment, stream, errors } = bare();
    const good = viewer();
    const send = vi.fn<() => void>(() => {
      throw new Error('broken pipe');
    });
    stream.attach({ isReady: () => true, send });
    stream.attach({
      isReady: () => {
        throw new Error('no state');
      },
      send: () => {},
    });
    stream.attach(good);
    const actor = createActor(lamp, { id: 'lamp', inspect: stream.inspect }).start();
    await environment.advance(50);
    actor.send({ type: 'TOGGLE' });
    await environment.advance(50);
    expect(send).toHaveBeenCalledTimes(1);
    expect(errors.map(([error, where]) => [(error as Error).message, where])).toEqual([
      ['broken pipe', 'inspector viewer'],
      ['no state', 'inspector viewer'],
    ]);
    expect(good.view.snapshots('lamp')).toHaveLength(2);
  });
});

test('omits the machine from a snapshot that is stored in a context', async () => {
  const { environment, view, inspect } = await watched({ redact: false });
  const child = createActor(lamp).start();
  const keeper = createMachine({
    id: 'keeper',
    context: { kept: null as unknown },
    on: { KEEP: { actions: assign({ kept: ({ event }) => event['snapshot'] as unknown }) } },
  });
  const actor = createActor(keeper, { id: 'keeper', inspect }).start();
  actor.send({ type: 'KEEP', snapshot: child.getSnapshot() });
  await environment.advance(50);
  expect(view.snapshots('keeper').at(-1)?.snapshot.context).toEqual({
    kept: { status: 'active', value: 'off', context: {} },
  });
});
