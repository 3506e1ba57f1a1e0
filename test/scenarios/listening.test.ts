// How an app follows a text session, and how that affects deliveries: which ways of following count as the user, what
// happens to a delivery without an acknowledgement, and that it does not delay other deliveries.
import {
  clientMessages,
  receiveClientMessage,
  type ClientMessage,
} from '../../src/compat/index.ts';
import { describe, expect, test } from 'vitest';
import type { SessionEvent, TextPart } from '../../src/index.ts';
import { textLife, world } from '../support/crashes.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

type Talk = ReturnType<typeof textTalk>;

const TWO: TalkOptions = {
  consolidation: 'off',
  subagents: {
    first: { script: () => say('The first is ready.') },
    second: { script: () => say('The second is ready.') },
  },
};

/** The ids of the deliveries that a follower received. Cards are marked. */
interface Follower {
  readonly got: string[];
  leave(): void;
}

const inPart = (part: TextPart): readonly string[] => {
  if (part.type === 'text.done' && part.deliveryId !== null) return [part.deliveryId];
  if (part.type === 'delivery.card') return [`card ${part.deliveryId}`];
  return part.type === 'question.asked' ? [part.requestId] : [];
};

function reader(
  session: Talk['session'],
  until: (part: TextPart) => boolean = () => false,
): Follower {
  const got: string[] = [];
  const parts = session.read();
  void (async () => {
    for await (const part of parts) {
      got.push(...inPart(part));
      if (until(part)) break;
    }
  })();
  return { got, leave: () => void parts.return(undefined) };
}

function client(session: Talk['session'], acknowledges: boolean): Follower {
  const got: string[] = [];
  const acknowledge = (message: ClientMessage): void => {
    if (message.type !== 'transcript' && message.type !== 'delivery.card') return;
    const { deliveryId } = message;
    if (deliveryId === undefined) return;
    got.push(message.type === 'transcript' ? deliveryId : `card ${deliveryId}`);
    if (acknowledges) void receiveClientMessage(session, { type: 'delivery.shown', deliveryId });
  };
  const subscription = clientMessages(session).subscribe(acknowledge);
  return { got, leave: () => subscription.unsubscribe() };
}

/** An app that shows deliveries in its own way. */
function listener(session: Talk['session']): Follower {
  const got: string[] = [];
  const leave = session.listen();
  const subscription = session.events.subscribe((event) => {
    const { deliveryId } = event.type === 'transcript.changed' ? event.item : {};
    if (deliveryId === undefined || got.includes(deliveryId)) return;
    got.push(deliveryId);
    session.shown(deliveryId);
  });
  return {
    got,
    leave() {
      subscription.unsubscribe();
      leave();
    },
  };
}

function observer(session: Talk['session']): Follower {
  const got: string[] = [];
  const subscription = session.parts.subscribe((part) => got.push(...inPart(part)));
  return { got, leave: () => subscription.unsubscribe() };
}

/** Follows the events but does not listen to deliveries. */
function tracer(session: Talk['session']): Follower {
  const subscriptions = [session.events.subscribe(), session.store.subscribe(() => {})];
  return { got: [], leave: () => subscriptions.forEach((one) => one.unsubscribe()) };
}

interface Way {
  readonly way: string;
  readonly follow: (session: Talk['session']) => readonly Follower[];
  /** The final state of two results, and how often each one is passed on. */
  readonly state: 'delivered' | 'pending';
  readonly given: number;
  readonly warns: boolean;
}

const ways: readonly Way[] = [
  { way: 'parts', follow: (s) => [observer(s)], state: 'delivered', given: 1, warns: false },
  { way: 'a reader', follow: (s) => [reader(s)], state: 'delivered', given: 1, warns: false },
  {
    way: 'a client that acknowledges',
    follow: (s) => [client(s, true)],
    state: 'delivered',
    given: 1,
    warns: false,
  },
  {
    way: 'a client that does not',
    follow: (s) => [client(s, false)],
    state: 'pending',
    given: 1,
    warns: false,
  },
  {
    way: 'events, as a listener that calls shown',
    follow: (s) => [listener(s)],
    state: 'delivered',
    given: 1,
    warns: false,
  },
  { way: 'events and store', follow: (s) => [tracer(s)], state: 'pending', given: 0, warns: true },
  { way: 'nothing', follow: () => [], state: 'pending', given: 0, warns: true },
  {
    way: 'parts, and a reader that is never read',
    follow: (s) => {
      s.read();
      return [observer(s)];
    },
    state: 'delivered',
    given: 1,
    warns: false,
  },
  {
    way: 'a client that does not acknowledge, and a reader',
    follow: (s) => [client(s, false), reader(s)],
    state: 'delivered',
    given: 1,
    warns: false,
  },
  {
    way: 'a tracer, and a client that acknowledges',
    follow: (s) => [tracer(s), client(s, true)],
    state: 'delivered',
    given: 1,
    warns: false,
  },
];

describe.each(ways)('a session followed by $way', ({ follow, state: expected, given, warns }) => {
  test('delivers two results once each without delay, with the same acknowledgement', async () => {
    const { session, type, state, events, environment } = textTalk(TWO);
    await session.start();
    const followers = follow(session);
    await type('use first and second');
    // No delivery is repeated or delayed, even long after every deadline.
    await environment.advance(3_600_000);
    const { deliveries } = state();
    expect(deliveries.map((one) => one.state)).toEqual([expected, expected]);
    expect(deliveries.map(({ attempts }) => attempts)).toEqual([1, 1]);
    expect(deliveries.map(({ card }) => card)).toEqual(
      [expected, expected].map((one) => one === 'pending'),
    );
    for (const { got } of followers)
      if (got.length > 0)
        expect(got).toEqual(deliveries.map(({ deliveryId }) => deliveryId).slice(0, 2 * given));
    const warnings = events.filter(
      (event) => event.type === 'error.reported' && event.code === 'NOBODY_LISTENS',
    );
    expect(warnings).toHaveLength(Number(warns));
  });

  test('turns an unacknowledged delivery into a card, which the next client can acknowledge', async () => {
    const { session, type, state, environment } = textTalk(TWO);
    await session.start();
    follow(session);
    await type('use first and second');
    await environment.advance(10_000);
    const ids = state().deliveries.map(({ deliveryId }) => deliveryId);
    const late = observer(session);
    await environment.settle();
    expect(late.got).toEqual(expected === 'pending' ? ids.map((id) => `card ${id}`) : []);
    expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
    // No other follower receives the deliveries.
    const later = [observer(session), reader(session), client(session, true)];
    await environment.settle();
    expect(later.flatMap(({ got }) => got)).toEqual([]);
  });
});

describe('a reader', () => {
  test.each(['breaks off', 'throws'])('does not acknowledge a result if it %s', async (how) => {
    const { session, type, state, environment } = textTalk(TWO);
    await session.start();
    const gone = reader(session, (part) => {
      if (part.type !== 'text.done' || part.deliveryId === null) return false;
      if (how === 'throws')
        throw Object.assign(new Error('The socket is closed'), { isMeant: true });
      return true;
    });
    const failed: unknown[] = [];
    const onFailed = (error: unknown): void => void failed.push(error);
    process.on('unhandledRejection', onFailed);
    await type('use first and second');
    process.off('unhandledRejection', onFailed);
    expect(gone.got).toHaveLength(1);
    // The other delivery was also reported, although no time has passed.
    expect(state().deliveries).toMatchObject([
      { state: 'pending', card: true, attempts: 1 },
      { state: 'pending', card: true, attempts: 1 },
    ]);
    const next = reader(session);
    await environment.settle();
    expect(next.got).toEqual(state().deliveries.map(({ deliveryId }) => `card ${deliveryId}`));
    expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
  });

  test('counts a result when the reader requests the next part, but does not wait for a busy reader', async () => {
    const { session, type, state, environment } = textTalk(TWO);
    await session.start();
    const parts = session.read();
    await type('use first and second');
    let part = (await parts.next()).value;
    while (part && inPart(part).length === 0) part = (await parts.next()).value ?? undefined;
    await environment.advance(100_000);
    expect(state().deliveries).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
    const rest: string[] = [];
    void (async () => {
      for await (const more of parts) rest.push(...inPart(more));
    })();
    await environment.settle();
    expect(rest).toEqual([state().deliveries[1]?.deliveryId]);
    expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
  });
});

describe('a question without a listener', () => {
  const asking: TalkOptions = {
    consolidation: 'off',
    subagents: {
      ride: {
        script: steps(calls(['ask_user', { question: 'Economy or Premium?' }]), say('Booked.')),
        config: { interactive: true },
      },
      report: { script: () => say('The report is ready.') },
    },
  };

  test('does not delay results and is presented again to the next client', async () => {
    const { session, type, state, environment, question } = textTalk(asking);
    await session.start();
    await type('use ride and report');
    await environment.advance(10_000);
    expect(state().deliveries.find(({ kind }) => kind === 'result')).toMatchObject({
      state: 'pending',
      attempts: 1,
    });
    expect(question()).toMatchObject({ state: 'presenting' });
    const late = observer(session);
    await environment.settle();
    expect(late.got).toContain(question()?.requestId);
    expect(question()).toMatchObject({ state: 'open', dueAt: environment.clock.now() + 120_000 });
    await type('Premium, please');
    expect(question()).toMatchObject({ state: 'answered' });
    expect(late.got.filter((id) => id === question()?.requestId)).toHaveLength(1);
  });

  test('accepts an answer when a client reports the question as shown or the user types', async () => {
    const { session, type, environment, question } = textTalk(asking);
    await session.start();
    client(session, true);
    await type('use ride');
    session.questionShown(question()?.requestId ?? '');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'open' });
    await type('Premium, please');
    expect(question()).toMatchObject({ state: 'answered', answer: 'Premium, please' });
  });
});

describe('a delivery across two processes', () => {
  test.each(['crash', 'hibernate'] as const)(
    'a %s: shows a result as a card only once if it was already shown',
    async (how) => {
      const of = world();
      const before = textLife(of, TWO);
      await before.session.start();
      client(before.session, false);
      await before.type('use first and second');
      if (how === 'hibernate') expect(await before.session.hibernate()).toBe(true);
      before.kill();
      await of.environment.advance(10_000);

      const after = textLife(of, TWO);
      await after.session.start();
      const screen = client(after.session, false);
      await of.environment.advance(10_000);
      const ids = after.state().deliveries.map(({ deliveryId }) => deliveryId);
      expect(ids).toHaveLength(2);
      expect(screen.got).toEqual(ids.map((id) => `card ${id}`));
      const late = observer(after.session);
      await of.environment.settle();
      expect(late.got).toEqual(ids.map((id) => `card ${id}`));
      expect(after.state().deliveries.map(({ state }) => state)).toEqual([
        'delivered',
        'delivered',
      ]);
      // The lead agent did not report the results again.
      expect(after.state().transcript.filter(({ text }) => text.startsWith('Told'))).toHaveLength(
        2,
      );
    },
  );
});

describe('TEXT-LEAD-5: the warning about a missing listener', () => {
  const warned = (events: readonly SessionEvent[]): number =>
    events.filter((event) => event.type === 'error.reported' && event.code === 'NOBODY_LISTENS')
      .length;

  test('does not appear after a client has left', async () => {
    const { session, type, state, events, environment } = textTalk(TWO);
    await session.start();
    session.listen()();
    await type('use first and second');
    await environment.advance(3_600_000);
    expect(state().deliveries.map(({ card }) => card)).toEqual([true, true]);
    expect(warned(events)).toBe(0);
  });

  test('does not appear after a process that had a client is killed', async () => {
    const of = world();
    const before = textLife(of, TWO);
    await before.session.start();
    before.session.listen();
    await before.type('use first');
    before.kill();
    await of.environment.advance(10_000);
    const after = textLife(of, TWO);
    const events: SessionEvent[] = [];
    after.session.events.subscribe((event) => events.push(event));
    await after.session.start();
    after.session.notifyBackground('Something new');
    await of.environment.advance(3_600_000);
    expect(after.state().deliveries.map(({ state }) => state)).toContain('pending');
    expect(warned(events)).toBe(0);
  });
});

test('OUTBOX-9: ends the oldest delivery already shown when the outbox exceeds its limit', async () => {
  const { session, state, environment } = textTalk({ limits: { maxDeliveries: 2 } });
  await session.start();
  client(session, false);
  for (const text of ['one', 'two', 'three']) {
    session.notifyBackground(text);
    await environment.advance(1000);
  }
  expect(state().deliveries.map((one) => [one.text, one.state, one.grade])).toEqual([
    ['one', 'delivered', 'told'],
    ['two', 'pending', null],
    ['three', 'pending', null],
  ]);
});

test('lets a client acknowledge results together or one by one if they were delivered together', async () => {
  const { session, type, state, environment } = textTalk({ ...TWO, consolidation: 'batch' });
  await session.start();
  const messages: ClientMessage[] = [];
  clientMessages(session).subscribe((message) => messages.push(message));
  await type('use first and second');
  const told = messages.find((one) => one.type === 'transcript' && one.deliveryId !== undefined);
  const ids = state().deliveries.map(({ deliveryId }) => deliveryId);
  expect(told).toMatchObject({ deliveryIds: ids });
  expect(messages.filter(({ type: of }) => of === 'delivery.card')).toEqual([]);
  session.shown(ids[0] ?? '');
  await environment.settle();
  expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'pending']);
  session.shown((told as { deliveryId: string }).deliveryId);
  await environment.settle();
  expect(state().deliveries.map((one) => [one.state, one.grade])).toEqual([
    ['delivered', 'shown'],
    ['delivered', 'shown'],
  ]);
});
