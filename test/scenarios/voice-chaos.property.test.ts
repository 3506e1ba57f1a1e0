// A voice conversation in which anything may happen at any time: the parties talk over each other, connections drop,
// clients leave, subagents ask, fail and are cancelled, and lead agents change. The promises hold at every moment. Once
// all parties behave, everything that is due is spoken.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { memoryJournal, type Journal } from '../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type SimulatedEnvironment,
} from '../../src/testing/index.ts';
import type { TransportCapabilities } from '../../src/voice/connection/transport.ts';
import {
  BY_ITSELF,
  DELEGATES,
  FakeTransport,
  type FakeConnection,
  type Spoken,
} from '../support/fake-transport.ts';
import { PassingTransport } from '../support/passing-transport.ts';
import {
  recordsOfSessions,
  expectFromJournal,
  refolded,
  writtenJournal,
} from '../support/refolded-records.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { backgroundTool } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];

const subagents = {
  quick: { script: () => say('Quick is done.') },
  late: { script: () => say('Late is done.'), pending: null },
  fails: { script: () => ({ error: new Error('it broke') }) },
  asks: {
    script: ({ results }: { results: readonly unknown[] }) =>
      (results[0] as { userResponse?: string } | undefined)?.userResponse === undefined
        ? calls(['ask_user', { question: 'Economy or Premium?', options }])
        : say('Asked and done.'),
    config: { interactive: true, maxSteps: 20, maxInputRetries: 10 },
  },
} as const;

const words = [
  'economy',
  'the second one',
  'what time is it?',
  'wait',
  'banana',
  'yes',
  '',
  'no thanks, tell me more',
];

type Talk = ReturnType<typeof voiceTalk>;

/** The user's device, which plays audio in order and drops it on request. */
function loudspeaker({ session }: Talk) {
  let queue: { itemId: string; ms: number; played: number }[] = [];
  session.audioOut.subscribe(({ itemId = '', samples }) => {
    const ms = samples.length / 24;
    const known = queue.find((item) => item.itemId === itemId);
    if (known) known.ms += ms;
    else queue.push({ itemId, ms, played: 0 });
  });
  session.events.subscribe(({ type }) => {
    if (type !== 'playout.clear') return;
    const [current] = queue;
    queue = [];
    if (current) session.playout.next({ itemId: current.itemId, playedMs: current.played });
  });
  return (ms: number): void => {
    const [current] = queue;
    if (!current) return;
    current.played = Math.min(current.ms, current.played + ms);
    session.playout.next({ itemId: current.itemId, playedMs: current.played });
    if (current.played >= current.ms) queue.shift();
  };
}

/** The speech that the voice model started unprompted while it was unknown whom the user was addressing. */
class Unasked {
  readonly violations: string[] = [];
  readonly #undecided = new Set<string>();
  readonly #forbidden = new Set<string>();
  readonly #heard = new Set<string>();

  constructor({ session }: Talk) {
    session.audioOut.subscribe(({ itemId = '' }) => {
      // HELD-SPEECH-1: held speech is released once or not at all.
      if (this.#heard.has(itemId)) this.violations.push(`${itemId} was heard twice`);
      // TURNS-7, HELD-SPEECH-2: the user never hears a reply to an utterance that was meant for a subagent.
      if (this.#forbidden.has(itemId)) this.violations.push(`${itemId} was for somebody else`);
      this.#heard.add(itemId);
    });
  }

  get heard(): ReadonlySet<string> {
    return new Set(this.#heard);
  }

  /** The user is speaking, or the words are still unknown, while a question has the floor. */
  began(itemId: string): void {
    if (this.#heard.has(itemId)) this.violations.push(`${itemId} was heard before it was known`);
    else this.#undecided.add(itemId);
  }

  /** The words were for the subagent that asked. `heard`: the items that the user heard before the words were known. */
  overheard(heard: ReadonlySet<string>): void {
    for (const itemId of this.#undecided) {
      if (heard.has(itemId)) continue;
      if (this.#heard.has(itemId)) this.violations.push(`${itemId} was heard all the same`);
      this.#forbidden.add(itemId);
    }
    this.#undecided.clear();
  }

  decided(): void {
    this.#undecided.clear();
  }

  /** Drops the items from an earlier connection. */
  moved(): void {
    this.#undecided.clear();
    this.#forbidden.clear();
    this.#heard.clear();
  }
}

/** The voice model, which gives one response at a time and ends it on request. */
class Model {
  #connection: FakeConnection | null = null;
  #response: Spoken | null = null;
  #cancelled = 0;
  calls = 0;

  sync(connection: FakeConnection): void {
    if (this.#connection === connection) return;
    this.#connection = connection;
    this.#response = null;
    this.#cancelled = 0;
  }

  /** Returns the requests that have been neither answered nor refused. RESPONSES-1: never two. */
  get outstanding(): number {
    return (this.#connection?.openRequests.length ?? 0) + (this.#response ? 1 : 0);
  }

  begin(ms: number): void {
    if (this.#response || !this.#connection?.openRequests.length) return;
    this.#response = this.#connection.begin('Some words to say.', ms);
  }

  /** Answers unprompted, which makes pending requests lapse. Returns the item. */
  beginByItself(ms: number): string | null {
    if (this.#response || !this.#connection) return null;
    this.#response = this.#connection.beginByItself('Some words of my own.', ms);
    this.#connection.lapse();
    return this.#response.itemId;
  }

  callByItself(name: string): void {
    if (this.#response || !this.#connection) return;
    this.calls += 1;
    const response = this.#connection.beginByItself('', 0);
    this.#connection.lapse();
    this.#connection.events.next({
      type: 'tool.called',
      callId: `call_${this.calls}`,
      name,
      arguments: '{}',
      responseId: response.responseId,
    });
    response.end();
  }

  changed(status: 'working' | 'idle'): void {
    this.#connection?.events.next({ type: 'model.changed', status });
  }

  delegate(): void {
    this.calls += 1;
    const delegationId = `delegation_${this.calls}`;
    this.#connection?.events.next({ type: 'delegation.created', delegationId });
  }

  end(status: 'completed' | 'failed' | 'cancelled' = 'completed'): void {
    const response = this.#response;
    this.#response = null;
    response?.end(status);
  }

  call(name: string): void {
    if (this.#response || !this.#connection?.openRequests.length) return;
    this.calls += 1;
    this.#connection.call({ callId: `call_${this.calls}`, name, arguments: '{}' });
  }

  /** Handles a cancellation after a short delay, as a wire does. */
  obey(): void {
    const cancels = this.#connection?.of('response.cancel').length ?? 0;
    if (cancels <= this.#cancelled) return;
    this.#cancelled = cancels;
    if (!this.#response && this.#connection?.openRequests.length) this.begin(0);
    this.end('cancelled');
  }
}

const action = fc.record({
  kind: fc.constantFrom(
    'speech starts',
    'speech ends',
    'speech ends',
    'transcript',
    'transcript',
    'begin',
    'begin',
    'end',
    'end',
    'fail',
    'play',
    'play',
    'play',
    'call',
    'call',
    'drop',
    // Only when connections do not last.
    'expires',
    'expires',
    'resumable',
    'resumable',
    'leave',
    'attach',
    'notice',
    'urgent',
    'click',
    'shown',
    'cancel',
    'type',
    'dismiss',
    'hand over',
    'time',
    'time',
    'time',
    // Only when the model answers without a request.
    'by itself',
    'by itself',
    'by itself',
    'works',
  ),
  n: fc.nat(1000),
});

const pick = <T>(from: readonly T[], n: number): T | undefined =>
  from[n % Math.max(1, from.length)];

interface Action {
  readonly kind: string;
  readonly n: number;
}

/** A journal that stores each entry after a random delay of at most `mostMs`. */
function slowJournal({ random, scheduler }: SimulatedEnvironment, mostMs: number): Journal {
  const kept = memoryJournal();
  return {
    append: (entry) =>
      new Promise<void>((resolve) => {
        scheduler.schedule(
          () => {
            kept.append(entry);
            resolve();
          },
          1 + Math.floor(random.next() * mostMs),
        );
      }),
    read: (unit) => kept.read(unit),
  };
}

/** Calls a subagent that asks, and plays until its question has been heard. */
const untilAsked: readonly Action[] = [
  { kind: 'call', n: 3 },
  { kind: 'by itself', n: 1 },
  { kind: 'end', n: 0 },
  { kind: 'play', n: 1000 },
  { kind: 'time', n: 300 },
  { kind: 'begin', n: 2 },
  { kind: 'end', n: 0 },
  { kind: 'play', n: 1000 },
  { kind: 'time', n: 50 },
];

interface World {
  /** The maximum time until an entry is written, in milliseconds. @defaultValue 0: at once */
  readonly journalMs?: number;
  /** How the wire differs from its usual capabilities. */
  readonly capabilities?: Partial<TransportCapabilities>;
  /** Connections end, and may be resumed or refuse to resume. @defaultValue false */
  readonly passes?: boolean;
}

/** A delegation means one tool or another or none, or cannot be resolved. */
function delegationScript(): Script {
  let times = 0;
  const names = Object.keys(subagents);
  return () => {
    times += 1;
    // The first subagent asks the user.
    const name = names[(times + 2) % (names.length + 1)];
    return name === undefined ? say('That needs no tool.') : calls([name, {}]);
  };
}

async function story(
  actions: readonly Action[],
  { journalMs = 0, capabilities = {}, passes = false }: World = {},
): Promise<void> {
  const clocks = simulatedEnvironment();
  const records = recordsOfSessions();
  const journal = writtenJournal(journalMs > 0 ? slowJournal(clocks, journalMs) : undefined);
  const passing = passes ? new PassingTransport(clocks.random, capabilities) : null;
  const talk = voiceTalk({
    environment: clocks,
    subagents,
    others: [
      {
        name: 'billing',
        greeting: 'Say hi',
        tools: Object.keys(subagents).map((name) => backgroundTool(name)),
      },
    ],
    transport: passing ?? new FakeTransport(capabilities),
    delegationModel: scriptedModel({ scripts: [{ when: '', script: delegationScript() }] }),
    voice: { maxReconnects: 50 },
    journal,
  });
  const { environment, session, state, transport } = talk;
  // A promise from the session may be waiting for its journal, so time must pass.
  const inTime = async <T>(promise: Promise<T>): Promise<T> => {
    let isDone = false;
    void promise.then(
      () => (isDone = true),
      () => (isDone = true),
    );
    await environment.settle();
    for (let round = 0; round < 500 && !isDone; round += 1) await environment.advance(journalMs);
    return promise;
  };
  // TRANSFER-2: an agent that has entered leaves before another one enters.
  let leading: string | null = null;
  session.events.subscribe((event) => {
    if (event.type === 'agent.entered') {
      expect(leading).toBeNull();
      leading = event.agentName;
    } else if (event.type === 'agent.exited') {
      expect(leading).toBe(event.agentName);
      leading = null;
    }
  });

  talk.leave = session.attach();
  await inTime(session.start());
  passing?.offer(true);
  const play = loudspeaker(talk);
  const model = new Model();
  model.sync(transport.inUse);
  const unasked = new Unasked(talk);
  const isByItself = capabilities.responds === 'by_itself';
  const delegates = capabilities.toolCalls === 'delegation';
  const hasOwner = (): boolean =>
    state().questions.some(({ state: now }) => ['presenting', 'open', 'parked'].includes(now));
  const timesOverheard = (): number =>
    transport.connections
      .flatMap((connection) => connection.of('message.add'))
      .filter(({ text }) => /(?:answered|did not settle) a subagent/.test(text)).length;
  let leave: (() => void) | null = talk.leave;
  let utterances = 0;
  let speaking: string | null = null;
  let untranscribed: string[] = [];
  const heard = new Map<string, number>();
  session.notifications.subscribe(({ deliveryId, state: now }) => {
    if (now === 'delivered') heard.set(deliveryId, (heard.get(deliveryId) ?? 0) + 1);
  });

  const check = (): void => {
    model.sync(transport.inUse);
    // RESPONSES-1, P2, TOOL-CALL-1.
    expect(model.outstanding).toBeLessThanOrEqual(1);
    expect(unasked.violations).toEqual([]);
    // CONTINUATION-1.
    if (passing) expect(passing.mistold.twice).toEqual([]);
    const owners = state().questions.filter(({ state: now }) =>
      ['presenting', 'open', 'parked'].includes(now),
    );
    expect(owners.length).toBeLessThanOrEqual(1);
    for (const connection of transport.connections) {
      const answered = connection.of('tool.answer').map(({ callId }) => callId);
      expect(new Set(answered).size).toBe(answered.length);
    }
  };

  let connection = transport.inUse;
  const moved = (): void => {
    if (transport.inUse === connection) return;
    connection = transport.inUse;
    unasked.moved();
    speaking = null;
    untranscribed = [];
  };
  const act = async ({ kind, n }: Action): Promise<void> => {
    moved();
    const { inUse: current } = transport;
    const isUp = state().connection === 'active' && !current.isClosed;
    switch (kind) {
      case 'speech starts':
        if (!isUp || speaking !== null) break;
        speaking = `u${(utterances += 1)}`;
        current.speechStarted(speaking);
        break;
      case 'speech ends':
        if (!isUp || speaking === null) break;
        current.events.next({ type: 'utterance.ended', utteranceId: speaking });
        untranscribed.push(speaking);
        speaking = null;
        break;
      case 'transcript': {
        const utteranceId = untranscribed.shift();
        if (!isUp || utteranceId === undefined) break;
        const before = timesOverheard();
        const { heard: heardBefore } = unasked;
        current.events.next({
          type: 'utterance.transcribed',
          utteranceId,
          text: pick(words, n) ?? '',
          final: true,
        });
        if (journalMs === 0) await environment.settle();
        if (timesOverheard() > before) unasked.overheard(heardBefore);
        else if (untranscribed.length === 0 && speaking === null) unasked.decided();
        break;
      }
      case 'begin':
        model.begin((n % 5) * 400);
        break;
      case 'end':
        model.end();
        break;
      case 'fail':
        model.end('failed');
        break;
      case 'play':
        play(n * 3);
        break;
      case 'call': {
        const name = pick(Object.keys(subagents), n) ?? '';
        if (delegates) model.delegate();
        else if (isByItself && n % 2) model.callByItself(name);
        else model.call(name);
        break;
      }
      case 'by itself': {
        if (!isByItself || !isUp) break;
        // With a slow journal, the session learns later who is speaking.
        const mayBeForOther = journalMs === 0 && hasOwner() && state().floor === 'user';
        const itemId = model.beginByItself((n % 5) * 400);
        if (itemId !== null && mayBeForOther) unasked.began(itemId);
        break;
      }
      case 'works':
        if (isByItself && isUp) model.changed(n % 3 ? 'working' : 'idle');
        break;
      case 'drop':
        if (!isUp || n % 3 > 0) break;
        speaking = null;
        untranscribed = [];
        current.drop();
        break;
      case 'expires':
        if (passing && isUp) current.events.next({ type: 'transport.expiring', inMs: n * 10 });
        break;
      case 'resumable':
        if (passing && isUp) passing.offer(n % 4 > 0);
        break;
      case 'leave':
        leave?.();
        leave = null;
        break;
      case 'attach':
        leave ??= session.attach();
        break;
      case 'notice':
        session.notifyBackground(`Notice ${n}`, n % 2 ? { ttlMs: 5000 } : { priority: 'high' });
        break;
      case 'urgent':
        session.notifyBackground(`Urgent ${n}`, { priority: 'urgent' });
        break;
      case 'click':
        for (const { requestId } of state().questions)
          void session.answer(requestId, { optionId: n % 4 === 0 ? 'none' : 'economy' });
        break;
      case 'shown':
        for (const { requestId } of state().questions) session.questionShown(requestId);
        break;
      case 'cancel':
        session.subagents.cancel(pick(session.subagents.list(), n)?.id ?? '');
        break;
      case 'dismiss':
        session.dismiss(pick(state().deliveries, n)?.deliveryId ?? '');
        break;
      case 'hand over':
        void session.transfer(['billing', 'lead', 'nobody'][n % 3] ?? '');
        break;
      case 'type':
        void session.sendText(pick(words, n)?.trim() || 'hello');
        break;
      default:
        await environment.advance(n * 2);
    }
    await environment.settle();
    moved();
    model.sync(transport.inUse);
    model.obey();
    await environment.settle();
    check();
  };

  // If the model answers unprompted, the interesting start is an open question.
  for (const each of isByItself ? [...untilAsked, ...actions] : actions) await act(each);

  // From here on, all parties behave.
  await act({ kind: 'works', n: 0 });
  await act({ kind: 'attach', n: 0 });
  await act({ kind: 'time', n: 4000 });
  if (speaking !== null) await act({ kind: 'speech ends', n: 0 });
  while (untranscribed.length > 0) await act({ kind: 'transcript', n: 6 });
  await inTime(session.sendText('hello'));
  const isDue = (): boolean =>
    // The next connection receives the text that was typed during an outage.
    state().connection !== 'active' ||
    model.outstanding > 0 ||
    state().subagents.some(({ endedAt }) => endedAt === null) ||
    state().deliveries.some(
      ({ kind, state: now }) =>
        kind !== 'question' && ['pending', 'offered', 'playing'].includes(now),
    );
  let idleRounds = 0;
  for (let round = 0; round < 80 && isDue(); round += 1) {
    idleRounds = model.outstanding === 0 ? idleRounds + 1 : 0;
    await act({ kind: 'begin', n: 2 });
    await act({ kind: 'end', n: 0 });
    await act({ kind: 'play', n: 1000 });
    if (state().questions.some(({ state: now }) => now === 'open')) {
      await act({ kind: 'speech starts', n: 0 });
      await act({ kind: 'speech ends', n: 0 });
      await act({ kind: 'transcript', n: 0 });
      // An utterance counts only if nothing else has been said since the question. A button always counts.
      await act({ kind: 'click', n: 1 });
    }
    // A message that is resting as a card is reported after the user's next utterance.
    if (
      idleRounds > 2 &&
      model.outstanding === 0 &&
      state().deliveries.some(({ state: now, card }) => card && now === 'pending')
    )
      await inTime(session.sendText('anything else?'));
    await act({ kind: 'time', n: 300 });
  }
  const { deliveries, questions, subagents: views, agent } = state();
  expect(agent).toBe(leading);
  expect(views.filter(({ endedAt }) => endedAt === null)).toEqual([]);
  expect(
    questions.filter(({ state: now }) => !['answered', 'expired', 'withdrawn'].includes(now)),
  ).toEqual([]);
  expect(
    deliveries.filter(
      ({ kind, state: now }) =>
        kind !== 'question' && ['pending', 'offered', 'playing'].includes(now),
    ),
  ).toEqual([]);
  for (const [deliveryId, times] of heard)
    if (deliveries.find((view) => view.deliveryId === deliveryId)?.kind !== 'question')
      expect(times).toBe(1);
  const codes = talk.errors.map(({ error }) => (error as { code?: string }).code ?? String(error));
  const provoked = new Set(['RESPONSE_TIMEOUT', 'MODEL_ERROR']);
  expect(codes.filter((code) => !provoked.has(code) && !code.includes('it broke'))).toEqual([]);
  // CONTINUATION-1, CONTINUATION-2, CONNECTION-MANAGER-3: the final connection knows everything and received it exactly
  // once.
  expect(passing?.violations ?? []).toEqual([]);
  if (passing && journalMs === 0) expect(passing.mistold).toEqual({ twice: [], missing: [] });
  // SESSION-RECORDS-2: when the session is idle, the records follow from the journal.
  await environment.advance(journalMs * 100);
  expectFromJournal(records.latest, refolded(journal.entries, session.id));
  await talk.close();
  expect(transport.connections.filter(({ isClosed }) => !isClosed)).toEqual([]);
  expect(environment.pendingTimers).toBe(0);
}

const runs = {
  numRuns: Number(process.env['CHAOS_RUNS'] ?? 30),
  seed: Number(process.env['CHAOS_SEED'] ?? 7),
  endOnFailure: false,
};

const anything = fc.array(action, { minLength: 5, maxLength: 45 });

test.each<[string, World]>([
  ['whatever happens in whatever order', {}],
  ['with a journal that takes its time', { journalMs: 40 }],
  ['where another agent needs another connection', { capabilities: { updatesSession: false } }],
  ['and that with such a journal', { journalMs: 40, capabilities: { updatesSession: false } }],
  ['with a model that answers by itself', { capabilities: BY_ITSELF }],
  [
    'with one that schedules results',
    { capabilities: { ...BY_ITSELF, schedulesToolResults: true } },
  ],
  [
    'with one that has its notes answered',
    { capabilities: { ...BY_ITSELF, silentContext: false } },
  ],
  ['where connections end and are replaced', { passes: true }],
  [
    'and those that begin where others ended',
    { passes: true, capabilities: { resumes: true, updatesSession: false } },
  ],
  [
    'with one of that kind that has its notes answered',
    { passes: true, capabilities: { ...BY_ITSELF, silentContext: false, resumes: true } },
  ],
  [
    'with a model of that kind that answers by itself, and such a journal',
    { passes: true, journalMs: 40, capabilities: { ...BY_ITSELF, resumes: true } },
  ],
  ['with one that delegates', { capabilities: DELEGATES }],
  ['with one that delegates and such a journal', { journalMs: 40, capabilities: DELEGATES }],
])('P1 to P4 hold, %s', { timeout: 120_000 }, (_, world) =>
  fc.assert(
    fc.asyncProperty(anything, (actions) => story(actions, world)),
    runs,
  ),
);
