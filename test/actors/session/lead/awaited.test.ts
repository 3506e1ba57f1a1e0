// An app waits for an idle session and for the next result.

import { describe, expect, test } from 'vitest';
import {
  CancelledError,
  createRuntime,
  memoryJournal,
  TextSession,
  type SessionResult,
} from '../../../../src/index.ts';
import { scriptedModel, simulatedEnvironment } from '../../../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../../../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../../../support/text-talk.ts';
import { voiceTalk } from '../../../support/voice-talk.ts';

/** Works for this long, and then reports it. */
function working(
  subagents: Readonly<Record<string, number>>,
  options: TalkOptions = {},
): ReturnType<typeof textTalk> {
  const environment = simulatedEnvironment();
  const work = (ms: number) => () =>
    new Promise((resolve) => environment.scheduler.schedule(() => resolve('done'), ms));
  return textTalk({
    environment,
    ...options,
    subagents: Object.fromEntries(
      Object.entries(subagents).map(([name, ms]) => [
        name,
        {
          script: steps(calls(['work']), say(`The ${name} is ready.`)),
          config: { tools: { work: simpleTool(work(ms)) } },
        },
      ]),
    ),
  });
}

/** Records when a promise settles. */
function watched<T>(promise: Promise<T>) {
  const seen: { value?: T; error?: unknown; isSettled: boolean } = { isSettled: false };
  promise.then(
    (value) => Object.assign(seen, { value, isSettled: true }),
    (error: unknown) => Object.assign(seen, { error, isSettled: true }),
  );
  return seen;
}

describe('idle', () => {
  test('rejects before the start, and resolves after the session has closed', async () => {
    const { session, environment } = working({});
    await expect(session.idle()).rejects.toMatchObject({ code: 'SESSION_NOT_ACTIVE' });
    await session.start();
    const closed = session.close();
    await environment.advance(60_000);
    await closed;
    await session.idle();
  });

  test('resolves regardless of the delay, even if the last entry is a snapshot', async () => {
    for (let turns = 1; turns <= 8; turns += 1) {
      const environment = simulatedEnvironment();
      const memory = memoryJournal();
      let snapshots = 0;
      const later = (left: number): Promise<void> =>
        new Promise((resolve) =>
          environment.scheduler.yieldThen(() =>
            left === 0 ? resolve() : void later(left - 1).then(resolve),
          ),
        );
      const runtime = createRuntime({
        environment,
        snapshots: { afterEntries: 3 },
        journal: {
          read: (query) => memory.read(query),
          append(entry) {
            if (entry.event.type !== 'session.snapshot') return memory.append(entry);
            snapshots += 1;
            return later(turns).then(() => memory.append(entry));
          },
        },
      });
      const session = new TextSession({
        runtime,
        model: scriptedModel({ otherwise: () => ({ text: 'Yes.' }) }),
        agents: [{ name: 'assistant', instructions: 'Help.' }],
      });
      session.parts.subscribe();
      await session.start();
      for (let said = 1; said <= 20; said += 1) {
        await session.sendText('Hello?');
        const idle = watched(session.idle());
        await environment.settle();
        expect([turns, said, idle.isSettled]).toEqual([turns, said, true]);
      }
      expect(snapshots).toBeGreaterThan(5);
    }
  });

  test('waits for subagents and for the delivery of their results', async () => {
    const { session, type, environment, state } = working({ report: 10_000 });
    await session.start();
    session.parts.subscribe();
    await type('use report');
    const idle = watched(session.idle());
    await environment.advance(9_999);
    expect(idle.isSettled).toBe(false);
    await environment.advance(1);
    expect(idle.isSettled).toBe(true);
    expect(state().deliveries).toMatchObject([{ state: 'delivered' }]);
  });

  test('resolves immediately in an idle session, even with an undelivered card', async () => {
    const { session, type, environment } = working({ report: 1 });
    await session.start();
    await type('use report');
    await environment.advance(1000);
    const idle = watched(session.idle());
    await environment.settle();
    expect(idle.isSettled).toBe(true);
  });

  test('does not wait for the user, because a session with a presented question counts as idle', async () => {
    const { start, type, session, environment, question } = textTalk({
      subagents: {
        ride: {
          script: steps(calls(['ask_user', { question: 'Which class?' }]), say('Booked.')),
          config: { interactive: true },
        },
      },
    });
    await start();
    await session.sendText('use ride');
    await session.idle();
    expect(question()?.state).toBe('open');
    await type('Premium, please');
    await session.idle();
    expect(session.subagents.list()[0]?.state).toBe('completed');
    expect(environment.pendingTimers).toBe(0);
  });

  test('waits for the reply to a message that was just sent', async () => {
    const { session, start, said } = textTalk();
    await start();
    await session.sendText('Hello');
    await session.idle();
    expect(said()).toEqual(['You said: Hello']);
  });

  test('rejects when the session ends or its signal aborts', async () => {
    const { session, start, type, close } = textTalk({
      subagents: {
        report: { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } },
      },
    });
    await start();
    await type('use report');
    const controller = new AbortController();
    const broken = watched(session.idle({ signal: controller.signal }));
    const idle = watched(session.idle());
    controller.abort();
    await close();
    expect(broken.error).toBeInstanceOf(CancelledError);
    expect(idle).toMatchObject({ isSettled: true });
    await session.idle();
    await expect(session.idle({ timeoutMs: 5 } as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});

describe('nextResult', () => {
  const words = ({ text, said, state }: SessionResult): unknown => [text, said?.slice(0, 5), state];

  test('AWAITED-2: returns a result, which then counts as heard', async () => {
    const { session, environment, events } = working({ report: 5000 });
    await session.start();
    await session.sendText('use report');
    const next = watched(session.nextResult());
    await environment.advance(10_000);
    expect(next.value && words(next.value)).toEqual(['The report is ready.', 'Told:', 'delivered']);
    expect(events.filter(({ type }) => type === 'error.reported')).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  });

  test.each(['off', 'batch'] as const)(
    'AWAITED-1: returns each result once, in order of delivery (consolidation: %s)',
    async (consolidation) => {
      const talk = working({ a: 1000, b: 2000, c: 3000 }, { consolidation });
      const { session, environment } = talk;
      await session.start();
      await session.sendText('use a and b and c');
      const first = watched(session.nextResult());
      const second = watched(session.nextResult());
      await environment.advance(10_000);
      // The result was delivered before the app waited for it.
      const third = watched(session.nextResult());
      const fourth = watched(session.nextResult());
      await environment.settle();
      expect([first, second, third].map(({ value }) => value?.text)).toEqual([
        'The a is ready.',
        'The b is ready.',
        'The c is ready.',
      ]);
      expect(fourth.isSettled).toBe(false);
      expect(talk.state().deliveries.map(({ state }) => state)).toEqual([
        'delivered',
        'delivered',
        'delivered',
      ]);
    },
  );

  test('selects a result by its subagent or its call', async () => {
    const { session, environment } = working({ a: 1000, b: 2000 }, { consolidation: 'off' });
    await session.start();
    await session.sendText('use a and b');
    await environment.settle();
    const [a, b] = session.subagents.list();
    const ofB = watched(session.nextResult({ subagentId: b?.id ?? '' }));
    const ofA = watched(session.nextResult({ callId: a?.callId ?? '' }));
    await environment.advance(10_000);
    expect(ofB.value?.text).toBe('The b is ready.');
    expect(ofA.value?.text).toBe('The a is ready.');
  });

  test('rejects if the result will never arrive because its subagent was cancelled', async () => {
    const { session, environment } = working({ a: 100_000 });
    await session.start();
    await session.sendText('use a');
    await environment.settle();
    const [a] = session.subagents.list();
    const ofA = watched(session.nextResult({ subagentId: a?.id ?? '' }));
    const ofAny = watched(session.nextResult());
    session.subagents.cancel(a?.id ?? '');
    await environment.advance(10_000);
    expect(ofA.error).toMatchObject({ code: 'NO_RESULT' });
    expect(String(ofA.error)).toContain('was cancelled');
    // Another result may follow.
    expect(ofAny.isSettled).toBe(false);
  });

  test('AWAITED-3: rejects when the session ends or its signal aborts', async () => {
    const { session, start, close } = textTalk();
    await start();
    const controller = new AbortController();
    const broken = watched(session.nextResult({ signal: controller.signal }));
    const next = watched(session.nextResult());
    controller.abort();
    await close();
    expect(broken.error).toMatchObject({ code: 'CANCELLED', reason: 'the wait was broken off' });
    expect(next.error).toMatchObject({ code: 'CANCELLED', reason: 'the session has ended' });
    await expect(session.nextResult()).rejects.toMatchObject({ code: 'CANCELLED' });
    await expect(session.nextResult({ of: 'x' } as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});

test('settles idle and nextResult in a voice session once the result has been heard', async () => {
  const { session, start, use, pause, asked, speak, environment } = voiceTalk({
    subagents: { report: { script: () => say('Sales are up.') } },
  });
  await start();
  await use('report');
  const idle = watched(session.idle());
  const next = watched(session.nextResult());
  await pause();
  expect(asked()).toContain('Sales are up.');
  expect([idle.isSettled, next.isSettled]).toEqual([false, false]);
  await speak('Sales are up.');
  await environment.advance(1000);
  expect(next.value).toMatchObject({ text: 'Sales are up.', state: 'delivered', grade: 'played' });
  expect(idle.isSettled).toBe(true);
});
