import {
  assign,
  createMachine,
  sendTo,
  setup,
  type AnyActorRef,
  type AnyStateMachine,
} from 'xstate';
import { describe, expect, test } from 'vitest';
import {
  checkSystem,
  ViolationError,
  type Message,
  type Step,
  type SystemCheck,
  type Violation,
} from '../../../src/testing/check/index.ts';
import {
  floor,
  forgetfulSpeaker,
  lastInFirstOutSteward,
  onePhaseSteward,
  speaker,
  twoPhaseSteward,
  type Floor,
} from './floor-system.ts';

function violationOf(check: () => unknown): Violation {
  try {
    check();
  } catch (error) {
    if (error instanceof ViolationError) return error.violation;
    throw error;
  }
  throw new Error('Expected a violation');
}

const lineOf = (step: Step): string => `${step.actor} ← ${step.event.type}`;

const linesOf = (violation: Violation): readonly string[] =>
  violation.trace.steps.filter(({ step }) => step.kind !== 'start').map(({ step }) => lineOf(step));

describe('delivery', () => {
  test('sync: accepts a one-phase transfer of the floor, because messages arrive immediately', () => {
    const report = checkSystem(floor({ mode: 'sync', steward: onePhaseSteward }));
    expect(report.ok).toBe(true);
    expect(report.name).toBe('ann × bob × steward');
    for (const { inFlight } of report.worlds()) expect(inFlight).toEqual([]);
  });

  test('async: finds two owners and reports the shortest trace', () => {
    const violation = violationOf(() =>
      checkSystem(floor({ mode: 'async', steward: onePhaseSteward })),
    );
    expect(violation).toMatchObject({
      property: 'one speaks at a time',
      reason: 'ann and bob speak.',
    });
    expect(linesOf(violation)).toEqual([
      'ann ← want',
      'bob ← want',
      'steward ← request',
      'steward ← request',
      'steward ← bell',
      'ann ← grant',
      'bob ← grant',
    ]);
    expect(violation.trace.toString()).toContain(
      [
        '   5  steward ← bell',
        "        steward: owned {owner: 'bob', queue: []}",
        '        steward → ann: revoke',
        '        steward → bob: grant',
        '   6  ann ← grant from steward',
        '        ann: speaking',
      ].join('\n'),
    );
  });

  test('async: accepts a two-phase transfer for any number of messages in transit', () => {
    const states = [1, 2, 4].map(
      (maxInFlight) => checkSystem(floor({ mode: 'async', maxInFlight })).states,
    );
    expect(states).toEqual(states.toSorted((a, b) => a - b));
    expect(states[0]).toBeLessThan(states[2] ?? 0);
  });

  test('SYSTEM-MODEL-3: blocks external events while `maxInFlight` messages are in transit', () => {
    const step = (before: { inFlight: readonly Message[] }, { kind }: Step): boolean =>
      kind !== 'environment' || before.inFlight.length < 2;
    expect(checkSystem(floor({ mode: 'async', maxInFlight: 2, steps: { M3: step } })).ok).toBe(
      true,
    );
    expect(
      violationOf(() => checkSystem(floor({ mode: 'async', maxInFlight: 3, steps: { M3: step } }))),
    ).toMatchObject({ kind: 'step' });
  });

  test('SYSTEM-MODEL-2: preserves the order within a channel but not between channels', () => {
    const letters = ['a', 'b', 'c'];
    const writer = createMachine({
      initial: 'writing',
      states: {
        writing: { on: { write: { target: 'done', actions: letters.map((type) => ({ type })) } } },
        done: { type: 'final' },
      },
    });
    const reader = setup({ types: { context: {} as { read: string } } }).createMachine({
      context: { read: '' },
      on: {
        '*': { actions: assign({ read: ({ context, event }) => context.read + event.type }) },
      },
    });
    const report = checkSystem({
      actors: {
        left: { machine: writer },
        right: { machine: writer },
        reader: { machine: reader },
      },
      mode: 'async',
      maxInFlight: Infinity,
      external: (_, id) => (id === 'reader' ? [] : [{ type: 'write' }]),
      route: (from, { type }) => ({
        to: 'reader',
        event: { type: from === 'left' ? type : type.toUpperCase() },
      }),
      invariants: {
        'each writer is read in order': ({ actors }) =>
          letters.join('').startsWith(actors.reader.context.read.replaceAll(/[A-Z]/g, '')) &&
          letters
            .join('')
            .toUpperCase()
            .startsWith(actors.reader.context.read.replaceAll(/[a-z]/g, '')),
      },
      end: ({ actors, inFlight }) =>
        inFlight.length === 0 && actors.left.status === 'done' && actors.right.status === 'done',
    });
    // Each interleaving of the two words is an end state: 6! / (3! 3!) = 20.
    expect(report.ends).toBe(20);
    // Pairs of prefixes that have been read, in any order, with neither, one or both of the words written.
    expect(report.states).toBe(
      1 + 2 * 4 + [...prefixPairs()].reduce((sum, count) => sum + count, 0),
    );
  });

  function* prefixPairs(): Iterable<number> {
    const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1));
    for (let left = 0; left <= 3; left++) {
      for (let right = 0; right <= 3; right++) {
        yield factorial(left + right) / (factorial(left) * factorial(right));
      }
    }
  }

  test('delivers a message twice if so configured', () => {
    const counter = (twiceIsFine: boolean) =>
      createMachine({
        context: { paid: 0, seen: false },
        on: {
          pay: {
            guard: ({ context }) => !twiceIsFine || !context.seen,
            actions: assign(({ context }) => ({ paid: context.paid + 1, seen: true })),
          },
        },
      });
    const payer = createMachine({
      initial: 'a',
      states: {
        a: { on: { go: { target: 'b', actions: { type: 'pay' } } } },
        b: { type: 'final' },
      },
    });
    const check = (twiceIsFine: boolean, duplicates: boolean | ((message: Message) => boolean)) =>
      checkSystem({
        actors: { payer: { machine: payer }, bank: { machine: counter(twiceIsFine) } },
        mode: 'async',
        duplicates,
        external: (_, id) => (id === 'payer' ? [{ type: 'go' }] : []),
        route: () => ({ to: 'bank', event: { type: 'pay' } }),
        invariants: { 'paid once': ({ actors }) => actors.bank.context.paid <= 1 },
        end: ({ inFlight, actors }) => inFlight.length === 0 && actors.payer.status === 'done',
      });
    expect(check(false, false).ok).toBe(true);
    expect(check(true, true)).toMatchObject({ ok: true, states: 4, transitions: 4 });
    expect(check(false, ({ event }) => event.type !== 'pay').ok).toBe(true);
    const violation = violationOf(() => check(false, true));
    expect(violation.trace.steps.map(({ step }) => step.kind)).toEqual([
      'start',
      'start',
      'environment',
      'repeat',
      'message',
    ]);
    expect(violation.trace.toString()).toContain('bank ← pay from payer (a first time)');
  });

  test('delivers a message sent through `system.get` without a route', () => {
    const peer = (id: string) => (args: { system: { get: (id: string) => AnyActorRef } }) =>
      args.system.get(id);
    const ping = createMachine({
      initial: 'idle',
      states: {
        idle: {
          on: { serve: { target: 'waiting', actions: sendTo(peer('pong'), { type: 'ball' }) } },
        },
        waiting: { on: { ball: 'done' } },
        done: { type: 'final' },
      },
    });
    const pong = createMachine({
      initial: 'ready',
      states: {
        ready: {
          on: { ball: { target: 'done', actions: sendTo(peer('ping'), { type: 'ball' }) } },
        },
        done: { type: 'final' },
      },
    });
    for (const mode of ['sync', 'async'] as const) {
      const report = checkSystem({
        actors: { ping: { machine: ping }, pong: { machine: pong } },
        mode,
        external: (_, id) => (id === 'ping' ? [{ type: 'serve' }] : []),
      });
      expect(report).toMatchObject({ states: mode === 'sync' ? 2 : 4, ends: 1 });
    }
  });

  test("delivers the effects of an actor's start", () => {
    const child = setup({ actions: { hello: () => {} } }).createMachine({ entry: 'hello' });
    const parent = createMachine({
      initial: 'lonely',
      states: { lonely: { on: { hello: 'greeted' } }, greeted: {} },
    });
    const report = checkSystem({
      actors: { child: { machine: child }, parent: { machine: parent } },
      mode: 'sync',
      route: (_from, effect) =>
        effect.type === 'hello' ? { to: 'parent', event: { type: 'hello' } } : undefined,
      end: ({ actors }) => actors.parent.value === 'greeted',
    });
    expect(report).toMatchObject({ states: 1, ends: 1, transitions: 0 });
  });
});

describe('the check of a faulty system', () => {
  test('detects a floor that is given to the last requester instead of the first', () => {
    const check = (steward: AnyStateMachine) =>
      floor<readonly string[]>({
        mode: 'sync',
        steward,
        // With only two speakers, neither has to queue behind another.
        speakers: ['ann', 'bob', 'cid'],
        ghost: {
          initial: [],
          next: (asked, { actor, event }) => {
            if (actor !== 'steward' || event.type === 'bell') return asked;
            const others = asked.filter((id) => id !== event['id']);
            return event.type === 'request' ? [...others, event['id'] as string] : others;
          },
        },
        invariants: {
          'the floor goes to the first who asked': ({ actors, ghost: [first] }) => {
            const owner: string | null = actors['steward']?.context.owner;
            return owner === null || owner === first;
          },
        },
        reachable: { 'two wait': ({ actors }) => actors['steward']?.context.queue.length === 2 },
      });
    expect(checkSystem(check(twoPhaseSteward)).ok).toBe(true);
    const violation = violationOf(() => checkSystem(check(lastInFirstOutSteward)));
    expect(violation.property).toBe('the floor goes to the first who asked');
    expect(
      violation.trace.steps
        .filter(({ step }) => step.kind === 'environment')
        .map(({ step }) => lineOf(step)),
    ).toEqual(['ann ← want', 'bob ← want', 'cid ← want', 'ann ← say']);
  });

  test('detects a missing release if the owner has ended and another actor is waiting', () => {
    const check = (machine: AnyStateMachine) =>
      floor({
        mode: 'sync',
        speaker: machine,
        invariants: {
          'the owner is there': ({ actors }) => {
            const owner: string | null = actors['steward']?.context.owner;
            return owner === null || actors[owner]?.status === 'active';
          },
        },
      });
    expect(checkSystem(check(speaker)).ok).toBe(true);
    const violation = violationOf(() => checkSystem(check(forgetfulSpeaker)));
    expect(linesOf(violation)).toEqual([
      'ann ← want',
      'steward ← request',
      'ann ← grant',
      'ann ← leave',
    ]);
  });

  test('detects a wait that only some actors can leave', () => {
    const stubbornBob: Partial<SystemCheck<Floor>> = {
      external: (_world, id) =>
        id === 'ann' ? [{ type: 'want' }, { type: 'leave' }] : [{ type: 'want' }],
      end: false,
      deadlock: false,
    };
    const check = (who: Partial<SystemCheck<Floor>>, ...actors: string[]) =>
      checkSystem(
        floor({
          mode: 'async',
          ...who,
          waits: {
            'can leave': { when: 'waiting', exits: ['leave'], actors },
            'is nowhere': { when: ({ value }) => value === 'nowhere' },
          },
        }),
      );
    expect(check({}, 'ann', 'bob').ok).toBe(true);
    expect(check(stubbornBob, 'ann').ok).toBe(true);
    expect(violationOf(() => check(stubbornBob, 'ann', 'bob'))).toMatchObject({
      kind: 'wait',
      property: 'can leave',
      reason: 'None of leave leads "bob" out of here.',
    });
  });

  test('ends a wait with a named event, or with any event if none is named', () => {
    // Bob's `say` frees the floor, and in a sync system, Ann receives it in the same step.
    const check = (exits?: string[]) =>
      checkSystem(
        floor({
          mode: 'sync',
          external: (_world, id) =>
            id === 'steward' ? [] : [{ type: 'want' }, { type: 'say' }, { type: 'leave' }],
          waits: { 'gets out': { when: 'waiting', exits } },
        }),
      );
    expect(check().ok).toBe(true);
    expect(check(['leave']).ok).toBe(true);
    expect(violationOf(() => check(['say']))).toMatchObject({ kind: 'wait' });
  });

  test('ends a trace at the step in which a sync transition violates a property', () => {
    const violation = violationOf(() =>
      checkSystem(
        floor({
          mode: 'sync',
          steps: { 'nobody asks': (_before, { event }) => event.type !== 'request' },
        }),
      ),
    );
    expect(linesOf(violation)).toEqual(['ann ← want', 'steward ← request']);
  });

  test('detects a queue that grows beyond its limit', () => {
    const chatter = createMachine({
      on: { say: { actions: { type: 'word' } } },
    });
    const sink = createMachine({ on: { word: {} } });
    const check = (maxQueue?: number) =>
      checkSystem({
        actors: { chatter: { machine: chatter }, sink: { machine: sink } },
        mode: 'async',
        maxInFlight: Infinity,
        maxQueue,
        external: (_, id) => (id === 'chatter' ? [{ type: 'say' }] : []),
        route: () => ({ to: 'sink', event: { type: 'word' } }),
        end: false,
      });
    expect(violationOf(() => check(3))).toMatchObject({
      kind: 'queue',
      reason: '4 messages from "chatter" to "sink" are in flight, more than 3 (`maxQueue`).',
    });
    expect(violationOf(() => check()).trace.length).toBe(17);
  });

  test('counts messages that no machine accepts and passes them to `unhandled`', () => {
    const report = checkSystem(floor({ mode: 'async' }));
    expect(report.untaken).toContainEqual(
      expect.objectContaining({ actor: 'ann', event: 'grant', outcome: 'ended' }),
    );
    expect(report.toString()).toMatch(/not taken: ann ← grant \(ended\), \d+ times/);
    const violation = violationOf(() =>
      checkSystem(
        floor({
          mode: 'async',
          unhandled: ({ kind, event, outcome }) =>
            kind === 'environment' ||
            event.type !== 'grant' ||
            outcome !== 'ended' ||
            'It is gone.',
        }),
      ),
    );
    expect(violation).toMatchObject({ kind: 'unhandled', reason: 'It is gone.' });
    expect(linesOf(violation).at(-1)).toBe('ann ← grant');
    expect(violation.trace.toString()).toContain('ann ← grant from steward — ended');
  });

  test('detects a machine that throws on a message', () => {
    const fragile = createMachine({
      on: {
        request: {
          actions: assign(() => {
            throw new Error('it broke');
          }),
        },
      },
    });
    const violation = violationOf(() => checkSystem(floor({ mode: 'sync', steward: fragile })));
    expect(violation).toMatchObject({
      kind: 'error',
      reason: "steward ← request {id: 'ann'} from ann — threw: it broke",
    });
    expect(linesOf(violation)).toEqual(['ann ← want', 'steward ← request']);
  });

  test('refuses an endless exchange of messages', () => {
    const echo = createMachine({ on: { ball: { actions: { type: 'hit' } } } });
    expect(() =>
      checkSystem({
        actors: { a: { machine: echo }, b: { machine: echo } },
        mode: 'sync',
        external: (_, id) => (id === 'a' ? [{ type: 'ball' }] : []),
        route: (from) => ({ to: from === 'a' ? 'b' : 'a', event: { type: 'ball' } }),
      }),
    ).toThrow(expect.objectContaining({ name: 'CapacityError', code: 'NEVER_SETTLES' }));
  });
});

describe('identity of worlds', () => {
  const counter = setup({
    types: { context: {} as { serial: number } },
    actions: { ticket: (_args, _params: { serial: number }) => {} },
  }).createMachine({
    context: { serial: 0 },
    on: {
      ask: {
        actions: [
          assign({ serial: ({ context }) => context.serial + 1 }),
          { type: 'ticket', params: ({ context }) => ({ serial: context.serial }) },
        ],
      },
    },
  });
  const holder = setup({ types: { context: {} as { serial: number } } }).createMachine({
    context: { serial: 0 },
    on: { ticket: { actions: assign({ serial: ({ event }) => event['serial'] as number }) } },
  });

  test('merges worlds by a custom key if only the difference between counters matters', () => {
    const check = (limit: number, withKey: boolean) =>
      checkSystem({
        actors: { counter: { machine: counter }, holder: { machine: holder } },
        mode: 'async',
        maxInFlight: 2,
        limit,
        external: (_, id) => (id === 'counter' ? [{ type: 'ask' }] : []),
        route: (_from, effect) =>
          effect.type === 'ticket'
            ? { to: 'holder', event: { type: 'ticket', ...effect.params } }
            : undefined,
        key: withKey
          ? ({ actors, inFlight }) => [
              actors.counter.context.serial - actors.holder.context.serial,
              inFlight.map(
                ({ event }) => actors.counter.context.serial - (event['serial'] as number),
              ),
            ]
          : undefined,
        invariants: {
          'never behind by more than what is in flight': ({ actors, inFlight }) =>
            actors.counter.context.serial - actors.holder.context.serial === inFlight.length,
        },
        end: ({ inFlight }) => inFlight.length === 0,
      });
    expect(() => check(50, false)).toThrow(/at most 50 states/);
    expect(check(50, true)).toMatchObject({ states: 3, transitions: 4 });
  });

  test('merges worlds with equal ghost variables and separates worlds with different ones', () => {
    const check = (remember: boolean) =>
      checkSystem(
        floor({
          mode: 'sync',
          ghost: {
            initial: { bells: 0 },
            next: ({ bells }, { event }) => ({
              bells: remember && event.type === 'bell' ? Math.min(2, bells + 1) : bells,
            }),
          },
        }),
      );
    const { states } = checkSystem(floor({ mode: 'sync' }));
    expect(check(false).states).toBe(states);
    expect(check(true).states).toBeGreaterThan(states);
    expect([...check(true).worlds()].map(({ ghost }) => ghost)).toContainEqual({ bells: 2 });
  });
});

describe('the report', () => {
  test('finds the shortest path to a state', () => {
    const report = checkSystem(floor({ mode: 'sync' }));
    const trace = report.traceTo(({ actors }) => actors['bob']?.hasTag('speaking') === true);
    expect(trace?.steps.map(({ step }) => lineOf(step)).slice(3)).toEqual([
      'bob ← want',
      'steward ← request',
      'bob ← grant',
    ]);
    expect(trace?.end?.actors['bob']?.value).toBe('speaking');
    expect(report.traceTo(() => false)).toBeUndefined();
  });

  test('shows a sync step as one transition with its deliveries', () => {
    const report = checkSystem(floor({ mode: 'sync' }));
    expect(report.depth).toBeLessThan(checkSystem(floor({ mode: 'async' })).depth);
  });
});

describe('invalid checks', () => {
  test.each([
    [{ mode: 'later' }, `\`mode\` to be 'sync' or 'async', got 'later'`],
    [{ maxInFlight: 0 }, '`maxInFlight` to be a whole number of at least 1, got 0'],
    [{ maxQueue: -1 }, '`maxQueue` to be a whole number'],
    [{ actors: {} }, '`actors` to name at least one machine'],
    [
      { route: () => ({ to: 'zoe', event: { type: 'hi' } }) },
      'route("ann", request) to answer { to, event } for one of "ann", "bob", "steward", got {to: \'zoe\'',
    ],
    [{ route: () => [{ to: 'ann' }] }, 'to answer { to, event }'],
  ])('%o', (options, message) => {
    const check = { ...floor({ mode: 'async' }), ...options } as never;
    expect(() => checkSystem(check)).toThrow(message);
    expect(() => checkSystem(check)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError' }),
    );
  });
});
