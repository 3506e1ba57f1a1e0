// Checks that the cause is true in each state that the machines reach together.

import { describe, expect, test } from 'vitest';
import {
  whyWaiting,
  type Wait,
  type WaitCause,
  type WaitingState,
} from '../../src/entries/machines.ts';
import { allStates, checkWaiting, type WaitingOptions } from './support/waiting-system.ts';

const patience = { timeout: 120_000 };

const scopes = {
  'two subagents ask, the user speaks, the client leaves': {
    parties: ['user', 'client'],
    subagents: { a: ['question'], b: ['question'] },
  },
  'three subagents ask': {
    parties: [],
    fails: false,
    subagents: { a: ['question'], b: ['question'], c: ['question'] },
    revokes: true,
  },
  'a question that may be put off, and a result': {
    parties: ['client'],
    subagents: { a: ['question'] },
    results: 1,
    holds: true,
  },
  'a question whose answer a model reads': {
    parties: ['client'],
    fails: false,
    subagents: { a: ['question'] },
    reads: true,
  },
  'three results, one of them a card, while both parties speak': {
    parties: ['user', 'model', 'playout'],
    results: 3,
    silent: true,
  },
  'two results that no client acknowledges, a client that leaves': {
    parties: ['client', 'user'],
    results: 2,
    tells: true,
  },
  'a result and a connection': { parties: ['start', 'connection', 'client'], results: 1 },
  'a client that does not come back': {
    parties: ['client'],
    fails: false,
    subagents: { a: ['question'] },
    givesUp: true,
  },
  'a session that closes': { parties: ['start', 'close', 'client'], results: 1 },
  'a subagent with tools, another one, questions, and a time': {
    parties: [],
    fails: false,
    subagents: { a: ['tool', 'tool', 'delegation', 'approval', 'input', 'sleep'] },
  },
  'three subagents with one run slot': {
    parties: [],
    fails: false,
    subagents: { a: ['tool', 'question'], b: ['tool'], c: [] },
    runSlots: 1,
  },
  'three subagents with two run slots': {
    parties: [],
    fails: false,
    subagents: { a: ['tool'], b: ['delegation'], c: [] },
    runSlots: 2,
  },
  'a subagent whose steps are jobs, and one behind a relay that wants a permission': {
    parties: [],
    fails: false,
    subagents: { a: ['tool', 'tool'], b: ['approval'] },
    places: { a: 'engine', b: 'relay' },
    runSlots: 1,
  },
  'a parent that waits for its child, which asks': {
    parties: ['client'],
    fails: false,
    subagents: { a: ['delegation', 'tool'], b: ['question', 'tool'] },
    children: { a: 'b' },
  },
  'questions that only some may answer': {
    parties: ['client'],
    fails: false,
    subagents: { a: ['approval'], b: ['question'] },
    roles: { 'a.q1': ['carl', 'dora'] },
  },
  'a program whose subagents ask': {
    parties: [],
    program: true,
    subagents: { a: ['question', 'tool', 'approval'], b: ['delegation'], c: ['input'] },
    children: { b: 'c' },
    roles: { 'a.q2': ['carl'] },
    places: { a: 'engine' },
    runSlots: 1,
  },
  'a session that is put away with a question and a result, and wakes': {
    parties: ['sleep', 'client', 'start'],
    fails: false,
    subagents: { a: ['question'] },
    results: 1,
    silent: true,
  },
  'a call that is run at once, and one of a subagent that asks': {
    parties: ['model'],
    fails: false,
    subagents: { a: ['question'] },
    calls: { i: 'inline', s: { subagent: 'a' } },
  },
  'two results that are told together': {
    parties: ['client'],
    fails: false,
    subagents: { a: [], b: [] },
    calls: { s: { subagent: 'a' }, t: { subagent: 'b' } },
    batch: 'deliver',
  },
  'two results, of which one is stopped when it takes too long': {
    parties: [],
    fails: false,
    subagents: { a: [], b: [] },
    calls: { s: { subagent: 'a' }, t: { subagent: 'b' } },
    batch: 'cancel',
  },
  'a service whose events a subagent looks at, and which asks': {
    parties: [],
    fails: false,
    subagents: { a: ['question'] },
    services: { watch: { subagent: 'a' } },
  },
  'a service while the session sleeps': {
    parties: ['sleep', 'client', 'start'],
    fails: false,
    subagents: { a: [] },
    services: { watch: { subagent: 'a' } },
  },
  'a subagent whose model calls are repeated': {
    parties: [],
    fails: false,
    subagents: { a: ['tool'], b: ['tool'] },
    places: { b: 'engine' },
    repeats: true,
  },
} satisfies Readonly<Record<string, WaitingOptions>>;

describe('gives the true reason for waiting for each subject in each state', patience, () => {
  const seen = new Set<WaitCause>();
  const reached = new Set<string>();

  test.each(Object.entries(scopes))('%s', (name, options) => {
    const { worlds, causes, violations, ...found } = checkWaiting(options);
    for (const state of found.reached) reached.add(state);
    console.log(`${name}: ${worlds} states, waiting for ${[...causes].join(', ')}`);
    for (const cause of causes) seen.add(cause);
    expect(violations).toEqual({});
  });

  test('covers every cause in the checked scopes', () => {
    // `floor` occurs only while messages are in transit, which is never the case between two entries.
    expect([...seen].toSorted().join(' ')).toBe(
      'acknowledgement admission agent answer children client connection end event hearing job lead_reply lead_tool model ' +
        'model_silence new_attempt pause playout preparation refusal release reminder result retry run_slot screen siblings source start ' +
        'task_giver telling time tools transfer turn user user_silence user_words validation wake',
    );
  });

  test('covers every state of the charts in the checked scopes', () => {
    // No machine stays in these states. A transition that enters one also leaves it, and a question releases a revoked
    // floor in the same unit.
    expect(allStates().filter((state) => !reached.has(state))).toEqual([
      'interaction.revoking',
      'outbox.slot.returning',
      'call.executing.reserving',
      'batch.gathering.arriving',
      'batch.releasing',
      'subagent.running.deciding',
      'subagent.waiting_for_input.settled',
    ]);
  });
});

/** Returns the true cause for all waits except those that it changes. */
const lie =
  (change: (wait: Wait, state: WaitingState) => Partial<Wait> | null): typeof whyWaiting =>
  (state) =>
    whyWaiting(state).flatMap((wait) => {
      const changed = change(wait, state);
      return changed === null ? [] : [{ ...wait, ...changed }];
    });

describe('detects an incorrect cause', patience, () => {
  const result = scopes['three results, one of them a card, while both parties speak'];
  const asking = scopes['a question that may be put off, and a result'];
  const slots = scopes['three subagents with one run slot'];
  const isAsking = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && 'waiting_for_input' in value;
  const work = scopes['a subagent with tools, another one, questions, and a time'];
  const elsewhere =
    scopes['a subagent whose steps are jobs, and one behind a relay that wants a permission'];
  const family = scopes['a parent that waits for its child, which asks'];
  const approval = scopes['questions that only some may answer'];
  const program = scopes['a program whose subagents ask'];
  const asleep = scopes['a session that is put away with a question and a result, and wakes'];
  const calls = scopes['a call that is run at once, and one of a subagent that asks'];
  const watch = scopes['a service whose events a subagent looks at, and which asks'];
  const watchAsleep = scopes['a service while the session sleeps'];
  const together = scopes['two results that are told together'];
  const faults: readonly (readonly [string, string, WaitingOptions, typeof whyWaiting])[] = [
    [
      'the gate is said to be open while the user speaks',
      'what is named can happen',
      result,
      lie(({ cause }) => (cause === 'user_silence' ? { cause: 'pause' } : {})),
    ],
    [
      'a user whose words are not known is said to speak',
      'what is named changes the wait',
      result,
      lie(({ cause }) => (cause === 'user_words' ? { cause: 'user_silence' } : {})),
    ],
    [
      'speech that is being played is said to wait for the model',
      'what is named changes the wait',
      result,
      lie(({ cause }) => (cause === 'playout' ? { cause: 'model_silence' } : {})),
    ],
    [
      'what is behind one that is being said is said to wait for a pause',
      'what is named can happen',
      result,
      lie(({ of, cause, because }) =>
        of === 'delivery' && cause === 'turn' && because?.cause === 'hearing'
          ? { cause: 'pause', on: null, because: null, sentence: '' }
          : {},
      ),
    ],
    [
      'a card is said to come by itself',
      'what is named can happen',
      result,
      lie(({ of, cause }) => (of === 'delivery' && cause === 'screen' ? { cause: 'pause' } : {})),
    ],
    [
      'a parked question is said to wait for its answer',
      'what is named can happen',
      asking,
      lie(({ of, cause }) => (of === 'question' && cause === 'client' ? { cause: 'answer' } : {})),
    ],
    [
      'a question that was put off is said to be asked anew by a client that comes',
      'what is named can happen',
      { ...asking, parties: [] },
      lie(({ cause }) => (cause === 'reminder' ? { cause: 'client' } : {})),
    ],
    [
      'a delivery has no cause while the gate is closed',
      'each subject has a cause',
      result,
      lie(({ of, cause }) => (of === 'delivery' && cause === 'user_silence' ? null : {})),
    ],
    [
      'a subagent without a slot is said to think',
      'what is named can happen',
      work,
      lie(({ cause }) => (cause === 'run_slot' ? { cause: 'model' } : {})),
    ],
    [
      'all run slots are held, and the session is said to have one left',
      'what is named can happen',
      slots,
      lie(({ cause, on }) =>
        cause === 'run_slot' && on !== null ? { on: null, because: null } : {},
      ),
    ],
    [
      'a run slot is free, and is said to be held by one that waits for its user',
      'what is named can happen',
      slots,
      lie((wait, { subagents }) => {
        const [asking] = [...subagents].find(([, { value }]) => isAsking(value)) ?? [];
        return wait.cause === 'run_slot' && wait.on === null && asking !== undefined
          ? { on: asking, because: { ...wait, id: asking, cause: 'model' } }
          : {};
      }),
    ],
    [
      'a run slot is said to be held by one that waits for one itself',
      'what is named can happen',
      slots,
      lie((wait, { subagents }) => {
        const [other] =
          [...subagents].find(([id, { value }]) => value === 'ready' && id !== wait.id) ?? [];
        return wait.cause === 'run_slot' && wait.on !== null && other !== undefined
          ? { on: other, because: { ...wait, id: other, because: null } }
          : {};
      }),
    ],
    [
      'a subagent is said to wait for a tool that has answered',
      'what is named can happen',
      work,
      lie(({ cause, on }) => (cause === 'tools' && on === 'c1' ? { on: 'c0' } : {})),
    ],
    [
      'a model call that a worker makes is said to be made here',
      'what is named can happen',
      elsewhere,
      lie(({ cause, on }) => (cause === 'job' && on === null ? { cause: 'model' } : {})),
    ],
    [
      'a tool that a worker runs is said to be run here',
      'what is named can happen',
      elsewhere,
      lie(({ cause, on }) => (cause === 'job' && on !== null ? { cause: 'tools' } : {})),
    ],
    [
      'an agent of somebody else is said to be a model of ours',
      'what is named can happen',
      elsewhere,
      lie(({ cause }) => (cause === 'agent' ? { cause: 'model' } : {})),
    ],
    [
      'an agent that waits for a permission is said to work',
      'what is named changes the wait',
      elsewhere,
      lie(({ of, id, cause }) =>
        of === 'subagent' && id === 'b' && cause === 'answer'
          ? { cause: 'agent', on: null, because: null }
          : {},
      ),
    ],
    [
      'a child that asks is said to be the only reason, and to have answered',
      'what is named can happen',
      family,
      lie(({ cause }) => (cause === 'children' ? { because: null } : {})),
    ],
    [
      'everybody is said to be able to answer',
      'what is named can happen',
      approval,
      lie(({ by }) => (by === null ? {} : { by: null, because: null })),
    ],
    [
      'somebody else is said to be able to answer',
      'what is named can happen',
      program,
      lie(({ by }) => (by === null ? {} : { by: ['erin'] })),
    ],
    [
      'a program is said to have the answer of another question',
      'what is named can happen',
      program,
      lie(({ id, cause }) => (cause === 'task_giver' ? { id: `not ${id}` } : {})),
    ],
    [
      'a session that no process has is said to wait for its user',
      'what is named can happen',
      asleep,
      lie(({ cause }) => (cause === 'wake' ? { cause: 'user' } : {})),
    ],
    [
      'a session that no process has is said to wait for a client',
      'what is named can happen',
      asleep,
      lie(({ of, cause }) => (of === 'session' && cause === 'wake' ? { cause: 'client' } : {})),
    ],
    [
      'a call that is being checked is said to run',
      'what is named can happen',
      calls,
      lie(({ cause }) => (cause === 'validation' ? { cause: 'lead_tool' } : {})),
    ],
    [
      'a call without a subagent is said to have one that works',
      'what is named can happen',
      calls,
      lie(({ cause }) => (cause === 'admission' ? { cause: 'result' } : {})),
    ],
    [
      'a call whose subagent asks is said to get its result at once',
      'what is named can happen',
      calls,
      lie(({ cause }) => (cause === 'result' ? { because: null } : {})),
    ],
    [
      'a result that is held back is said to be told now',
      'what is named can happen',
      together,
      lie(({ of, cause }) =>
        of === 'delivery' && cause === 'siblings' ? { cause: 'pause', because: null } : {},
      ),
    ],
    [
      'results that nothing holds back but the lead agent are said to wait for a call',
      'what is named can happen',
      together,
      lie(({ cause }) => (cause === 'lead_reply' ? { cause: 'siblings', on: 's' } : {})),
    ],
    [
      'a service without a subagent is said to have one that works',
      'what is named can happen',
      watch,
      lie(({ of, cause }) =>
        of === 'service' && cause === 'admission' ? { cause: 'result' } : {},
      ),
    ],
    [
      'a service whose subagent asks is said to get its result at once',
      'what is named can happen',
      watch,
      lie(({ of, cause }) => (of === 'service' && cause === 'result' ? { because: null } : {})),
    ],
    [
      'a service that was refused is said to wait for its subagent',
      'what is named can happen',
      watch,
      lie(({ of, cause }) => (of === 'service' && cause === 'retry' ? { cause: 'admission' } : {})),
    ],
    [
      'a source that failed is said to run',
      'what is named can happen',
      watch,
      lie(({ of, cause }) => (of === 'source' && cause === 'retry' ? { cause: 'event' } : {})),
    ],
    [
      'a source that has not begun is said to wait for an event',
      'what is named can happen',
      watch,
      lie(({ of, cause }) => (of === 'source' && cause === 'source' ? { cause: 'event' } : {})),
    ],
    [
      'a source that is being stopped has no cause',
      'each subject has a cause',
      watch,
      lie(({ of, cause }) => (of === 'source' && cause === 'release' ? null : {})),
    ],
    [
      'a service that no process has is said to wait for an event',
      'what is named can happen',
      watchAsleep,
      lie(({ of, cause }) => (of === 'service' && cause === 'wake' ? { cause: 'event' } : {})),
    ],
    [
      'a call whose result is held back has no cause',
      'each subject has a cause',
      together,
      lie(({ of, cause }) => (of === 'call' && cause === 'siblings' ? null : {})),
    ],
  ];

  test.each(faults)('%s', (_fault, property, options, why) => {
    expect(Object.keys(checkWaiting({ ...options, why }).violations)).toContain(property);
  });
});

describe('the sentence', () => {
  const session = {
    value: {
      connection: 'active',
      client: 'attached',
      user: 'silent',
      model: 'idle',
      playout: 'drained',
    },
    context: {},
  };
  const quiet = {
    at: 61_200,
    session,
    interaction: { value: 'main_agent', context: { owner: null, queue: [], epoch: 0 } },
    outbox: {
      value: { gate: 'closed', slot: 'empty' },
      context: { pending: [], current: null, quietSince: 61_000, quietMs: 300, maxAttempts: 3 },
    },
    questions: new Map(),
    subagents: new Map(),
  };
  const sentencesOf = (changes: object) =>
    whyWaiting({ ...quiet, ...changes } as unknown as WaitingState).map(
      ({ of, id, sentence }) => `${of} ${id}: ${sentence}`,
    );
  const withUser = { ...session, value: { ...session.value, user: 'speaking' } };
  const item = (deliveryId: string) => ({
    deliveryId,
    kind: 'result',
    resting: false,
    attempts: 0,
  });
  const pending = [item('r1'), item('r2'), item('r3')];

  test('states how long the user has been speaking, and the position in the queue', () => {
    const outbox = { ...quiet.outbox, context: { ...quiet.outbox.context, pending } };
    expect(sentencesOf({ session: withUser, outbox, since: { user: 60_000 } })).toEqual([
      'session : gate closed: the user has been speaking for 1.2 s',
      'delivery r1: gate closed: the user has been speaking for 1.2 s',
      'delivery r2: second in line behind r1',
      'delivery r3: third in line behind r1',
    ]);
    expect(sentencesOf({ outbox })[1]).toBe(
      'delivery r1: waits for a pause: quiet for 0.2 s of 0.3 s',
    );
  });

  test('states no queue position for a result that the lead agent has read', () => {
    const read = [{ ...item('r0'), read: true }, ...pending];
    const outbox = { ...quiet.outbox, context: { ...quiet.outbox.context, pending: read } };
    expect(sentencesOf({ session: withUser, outbox, since: { user: 60_000 } }).slice(1, 3)).toEqual(
      [
        'delivery r0: the lead agent has read it: offered if the reply does not tell it',
        'delivery r1: gate closed: the user has been speaking for 1.2 s',
      ],
    );
  });

  test('states that no client is attached, and which subagents use the run slots', () => {
    const parked = { ...session, value: { ...session.value, client: 'detached' } };
    const context = { id: 'sub_1', calls: [], step: 1, maxSteps: 4 };
    const subagents = new Map([
      ['sub_1', { value: 'ready', context }],
      ['sub_2', { value: { running: 'thinking' }, context: { ...context, id: 'sub_2' } }],
      ['sub_3', { value: { waiting_for_input: 'asking' }, context }],
    ]);
    expect(sentencesOf({ session: parked, subagents, runSlots: 1 }).slice(0, 2)).toEqual([
      'session : parked: nobody is attached',
      'subagent sub_1: no run slot: 1 of 1',
    ]);
    const waits = whyWaiting({ ...quiet, subagents, runSlots: 1 } as unknown as WaitingState);
    expect(waits.find(({ id }) => id === 'sub_1')).toMatchObject({
      on: 'sub_2',
      because: { id: 'sub_2', sentence: 'step 1 of 4: its model works' },
    });
    expect(sentencesOf({ subagents, runSlots: 4 })[1]).toBe(
      'subagent sub_1: waits for a run slot of the process: the session holds 1 of 4',
    );
    expect(sentencesOf({ subagents })[1]).toBe('subagent sub_1: waits for a run slot');
  });

  test('states that a question is waiting until another one has ended', () => {
    const question = (value: string) => ({ value, context: { dueAt: 91_200, remindAt: 0 } });
    const questions = new Map([
      ['sub_3.q1', question('open')],
      ['sub_1.q1', question('queued')],
    ]);
    const asking = { owner: 'sub_3.q1', queue: ['sub_1.q1'], epoch: 1 };
    const context = { id: 'sub_1', calls: [{ kind: 'question' }], asked: 1 };
    const subagents = new Map([['sub_1', { value: { waiting_for_input: 'asking' }, context }]]);
    const interaction = { value: 'subagent_interaction', context: asking };
    expect(sentencesOf({ interaction, questions, subagents }).slice(1)).toEqual([
      'question sub_3.q1: the user has not answered: it expires in 30.0 s',
      'question sub_1.q1: second in line behind sub_3.q1',
      'subagent sub_1: asked sub_1.q1: second in line behind sub_3.q1',
    ]);
    const free = { value: 'main_agent', context: { owner: null, queue: [], epoch: 1 } };
    const [, asked] = sentencesOf({
      interaction: free,
      questions: new Map([['sub_1.q1', question('queued')]]),
    });
    expect(asked).toBe('question sub_1.q1: its turn to ask has come, and begins');
  });

  test('states where the work runs and which call is in doubt', () => {
    const step = { id: 'sub_1', step: 2, maxSteps: 4, isFinal: false, dueAt: 0 };
    const acting = [
      { callId: 'c0', kind: 'tool', settled: true },
      { callId: 'c1', kind: 'tool', settled: false },
    ];
    const thinks = { value: { running: 'thinking' }, context: { ...step, calls: [] } };
    const acts = { value: { running: 'acting' }, context: { ...step, calls: acting } };
    const of = { parentId: null, callId: null };
    const said = (subagent: object, work: object): string | undefined =>
      sentencesOf({
        subagents: new Map([['sub_1', subagent]]),
        work: new Map([['sub_1', { ...of, ...work }]]),
      }).at(-1);
    const charge = new Map([['c1', { toolName: 'charge' }]]);
    expect(said(thinks, {})).toBe('subagent sub_1: step 2 of 4: its model works');
    expect(said(acts, { tools: charge })).toBe(
      'subagent sub_1: step 2 of 4: its tools work: charge',
    );
    expect(said(thinks, { engine: 'restate' })).toBe(
      'subagent sub_1: step 2 of 4: a worker of restate calls its model',
    );
    const there = new Map([['c1', { toolName: 'charge', engine: 'temporal' }]]);
    expect(said(acts, { tools: there })).toBe(
      'subagent sub_1: step 2 of 4: a worker of temporal runs its tools: charge',
    );
    expect(said(thinks, { relay: 'codex' })).toBe('subagent sub_1: step 2: codex works');
    expect(said(acts, { relay: 'codex' })).toBe(
      'subagent sub_1: step 2: codex runs a tool of its own',
    );
    expect(said(thinks, { inDoubt: ['charge', 'refund'] })).toBe(
      'subagent sub_1: step 2 of 4: its model works; nobody knows whether these calls were done: charge, refund',
    );
    const last = { ...thinks, context: { ...thinks.context, isFinal: true } };
    expect(said(last, {})).toBe(
      'subagent sub_1: step 2 of 4: its model works; its budget is used up: it hands in what it has',
    );
  });

  test('states who may answer, what a result is waiting for, and that the session is hibernated', () => {
    const question = { value: 'open', context: { dueAt: 91_200, remindAt: 0 } };
    const questions = new Map([['sub_3.q1', question]]);
    const answerableBy = new Map([['sub_3.q1', ['carl', 'dora', 'erin']]]);
    expect(sentencesOf({ questions, answerableBy })[1]).toBe(
      'question sub_3.q1: only carl, dora or erin may answer, and nobody has: it expires in 30.0 s',
    );
    expect(sentencesOf({ isAsleep: true })).toEqual([
      'session : asleep: no process has the session until it is used, or one of its times has come',
    ]);
    const context = { working: ['c2', 'c3'], asking: ['c3'], parts: ['c1'], dueAt: 66_200 };
    const batches = new Map([['b1', { value: { gathering: 'holding' }, context }]]);
    expect(sentencesOf({ batches }).at(-1)).toBe(
      'delivery c1: told with others, which still work: c2; at the latest in 5.0 s',
    );
  });

  test('reports nothing for a closed session', () => {
    const closed = { ...session, value: { ...session.value, connection: 'closed' } };
    expect(sentencesOf({ session: closed })).toEqual([]);
  });
});
