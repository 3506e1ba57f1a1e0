import {
  assign,
  cancel,
  createMachine,
  emit,
  enqueueActions,
  fromPromise,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
} from 'xstate';
import { describe, expect, test, vi } from 'vitest';
import { checkMachine, ViolationError, type Violation } from '../../../src/testing/check/index.ts';

/** Runs a check that must fail and returns the violation that it found. */
function violationOf(check: () => unknown): Violation {
  try {
    check();
  } catch (error) {
    if (error instanceof ViolationError) return error.violation;
    throw error;
  }
  throw new Error('Expected a violation');
}

/** The events of a trace without the start. */
function eventsOf(violation: Violation): readonly string[] {
  return violation.trace.steps
    .filter(({ step }) => step.kind !== 'start')
    .map(({ step }) => step.event.type);
}

type JobEvent = { type: 'start' } | { type: 'cancel' } | { type: 'retry' };

const job = setup({
  types: {
    context: {} as { tries: number },
    events: {} as JobEvent,
    tags: {} as 'waiting',
  },
  actors: {
    work: fromPromise<{ ok: boolean }, { tries: number }>(async () => {
      throw new Error('an invoked actor was started');
    }),
  },
  actions: {
    report: (_args, _params: { result: string }) => {
      throw new Error('an action was executed');
    },
  },
  delays: { patience: 60_000 },
}).createMachine({
  id: 'job',
  context: { tries: 0 },
  initial: 'ready',
  states: {
    ready: { on: { start: 'running', cancel: 'cancelled' } },
    running: {
      tags: 'waiting',
      entry: assign({ tries: ({ context }) => context.tries + 1 }),
      after: { patience: 'failed' },
      on: { cancel: 'cancelled' },
      invoke: {
        id: 'work',
        src: 'work',
        input: ({ context }) => ({ tries: context.tries }),
        onDone: [
          {
            guard: ({ event }) => event.output.ok,
            target: 'done',
            actions: { type: 'report', params: { result: 'ok' } },
          },
          { guard: ({ context }) => context.tries < 2, target: 'ready' },
          { target: 'failed' },
        ],
      },
    },
    done: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

const jobEvents = () =>
  [
    { type: 'start' },
    { type: 'cancel' },
    { type: 'xstate.done.actor.work', output: { ok: true } },
    { type: 'xstate.done.actor.work', output: { ok: false } },
  ] as const;

describe('exploration', () => {
  test('explores every state and reports its counts', () => {
    const report = checkMachine(job, {
      events: jobEvents,
      invariants: { 'at most two tries': ({ context }) => context.tries <= 2 },
      waits: {
        'a run has a deadline': { when: 'waiting', exits: ['xstate.after.*'] },
        'a run can be cancelled': { when: 'waiting', exits: ['cancel'] },
      },
      reachable: {
        'a second try': ({ context, value }) => context.tries === 2 && value === 'running',
      },
    });
    // ready(0,1), running(1,2), done(1,2), failed(1,2), cancelled(0,1,2)
    expect(report).toMatchObject({
      name: 'job',
      ok: true,
      states: 11,
      transitions: 12,
      depth: 4,
      ends: 7,
      statesOf: { job: 11 },
      violations: [],
    });
    expect(report.toString()).toBe(
      [
        'job: 11 states, 12 transitions, depth 4: every property holds',
        '  invariants: at most two tries',
        '  waits: a run has a deadline; a run can be cancelled',
        '  reachable: a second try',
        '  ends: 7 states',
      ].join('\n'),
    );
  });

  test('lists named actions and invoked actors without executing or starting them', () => {
    const seen = new Map<string, unknown>();
    checkMachine(job, {
      events: jobEvents,
      steps: {
        'the result is reported': (_before, event, after, effects) => {
          for (const effect of effects) seen.set(effect.type, effect.params);
          return (
            after.value !== 'done' ||
            event.type !== 'xstate.done.actor.work' ||
            effects.some((effect) => effect.type === 'report' && effect.params.result === 'ok')
          );
        },
      },
    });
    expect(Object.fromEntries(seen)).toMatchObject({
      report: { result: 'ok' },
      'xstate.spawnChild': { id: 'work', src: 'work', input: { tries: 2 } },
      'xstate.stopChild': { id: 'work' },
      'xstate.raise': { event: { type: 'xstate.after.patience.job.running' }, delayMs: 60_000 },
      'xstate.cancel': { id: 'xstate.after.patience.job.running' },
    });
  });

  test('does not send events to an actor that has ended', () => {
    const asked: unknown[] = [];
    checkMachine(job, {
      events: ({ status }) => {
        asked.push(status);
        return jobEvents();
      },
      unhandled: (_event, { status }) => status === 'active',
    });
    expect(new Set(asked)).toEqual(new Set(['active']));
  });

  test('creates the context once with its input', () => {
    const context = vi.fn<(args: { input: { name: string } }) => { name: string }>(({ input }) => ({
      name: input.name.toUpperCase(),
    }));
    const machine = setup({
      types: { input: {} as { name: string }, context: {} as { name: string } },
    }).createMachine({
      context,
      initial: 'a',
      states: { a: { on: { go: 'b' } }, b: { type: 'final' } },
    });
    checkMachine(machine, {
      input: { name: 'ann' },
      events: () => [{ type: 'go' }],
      invariants: { 'keeps its name': (snapshot) => snapshot.context.name === 'ANN' },
    });
    expect(context).toHaveBeenCalledOnce();
  });

  test("executes the machine's own actions: assign, raise, enqueueActions and messages to itself", () => {
    const machine = setup({
      types: { context: {} as { log: string[] } },
      actions: { note: assign(({ context }, name: string) => ({ log: [...context.log, name] })) },
    }).createMachine({
      context: { log: [] },
      initial: 'a',
      states: {
        a: {
          on: {
            go: {
              actions: [
                { type: 'note', params: 'go' },
                raise({ type: 'raised' }),
                sendTo(({ self }) => self, { type: 'sent' }),
              ],
            },
            raised: {
              actions: enqueueActions(({ enqueue }) => {
                enqueue({ type: 'note', params: 'raised' });
              }),
            },
            sent: { target: 'b', actions: { type: 'note', params: 'sent' } },
          },
        },
        b: { type: 'final' },
      },
    });
    const report = checkMachine(machine, { events: () => [{ type: 'go' }] });
    expect([...report.worlds()].map(({ actors }) => actors['(machine)']?.context.log)).toEqual([
      [],
      ['go', 'raised', 'sent'],
    ]);
  });

  test("lists XState's own effects in the same format", () => {
    const seen: unknown[] = [];
    const machine = createMachine({
      initial: 'a',
      states: {
        a: {
          on: {
            go: {
              target: 'b',
              actions: [emit({ type: 'hello' }), log('a line'), sendParent({ type: 'done' })],
            },
          },
        },
        b: { type: 'final' },
      },
    });
    checkMachine(machine, {
      events: () => [{ type: 'go' }],
      steps: { all: (_before, _event, _after, effects) => seen.push(...effects) > 0 },
    });
    expect(seen).toEqual([
      { type: 'xstate.emit', params: { event: { type: 'hello' } } },
      { type: 'xstate.log', params: { value: 'a line' } },
      { type: 'xstate.sendTo', params: { to: '#_parent', event: { type: 'done' } } },
    ]);
  });

  test('PURE-ACTOR-4: fires a delayed event once, unless it is cancelled', () => {
    const machine = createMachine({
      context: { beats: 0 },
      initial: 'on',
      states: {
        on: {
          entry: raise({ type: 'beat' }, { id: 'heart', delay: 1000 }),
          exit: cancel('heart'),
          on: {
            beat: { actions: assign({ beats: ({ context }) => context.beats + 1 }) },
            off: 'off',
          },
        },
        off: { after: { 10: { guard: () => false, target: 'on' } } },
      },
    });
    const report = checkMachine(machine, {
      events: () => [{ type: 'off' }],
      end: ({ value }) => value === 'off',
      invariants: { 'beats once': ({ context }) => context.beats <= 1 },
      deadlock: false,
    });
    // The states: on, armed; on, one beat; off after none and after one beat; off with its own timer armed and fired.
    expect(report.states).toBe(6);
    expect(
      checkMachine(machine, {
        events: () => [{ type: 'off' }],
        end: ({ value }) => value === 'off',
        timers: false,
      }).states,
    ).toBe(2);
  });

  test('PURE-ACTOR-5: completes an invoked actor once while it is running', () => {
    const machine = setup({
      types: { context: {} as { results: number } },
      actors: { work: fromPromise(async () => 1) },
    }).createMachine({
      context: { results: 0 },
      initial: 'idle',
      states: {
        idle: { on: { go: 'working' } },
        working: {
          invoke: {
            id: 'work',
            src: 'work',
            // The state has no exit here, so the completed actor stays among the machine's children.
            onDone: { actions: assign({ results: ({ context }) => context.results + 1 }) },
            onError: 'idle',
          },
          on: { again: { target: 'working', reenter: true }, stop: 'done' },
        },
        done: { type: 'final' },
      },
    });
    const completions = [
      { type: 'xstate.done.actor.work', output: 1 },
      { type: 'xstate.error.actor.work', error: 'no' },
    ] as const;
    const report = checkMachine(machine, {
      events: () => [{ type: 'go' }, { type: 'stop' }, ...completions],
      invariants: { 'one result of one run': ({ context }) => context.results <= 1 },
    });
    // idle; working; working, completed; done without and with a result
    expect(report).toMatchObject({ states: 5, transitions: 5 });
    const violation = violationOf(() =>
      checkMachine(machine, {
        events: () => [{ type: 'go' }, { type: 'again' }, { type: 'stop' }, ...completions],
        invariants: { 'one result of one run': ({ context }) => context.results <= 1 },
      }),
    );
    expect(eventsOf(violation)).toEqual([
      'go',
      'xstate.done.actor.work',
      'again',
      'xstate.done.actor.work',
    ]);
    const start = machine.resolveState({ value: 'working', context: { results: 1 } });
    expect(
      violationOf(() =>
        checkMachine(machine, {
          start,
          events: () => [{ type: 'stop' }, ...completions],
          invariants: { 'one result of one run': ({ context }) => context.results <= 1 },
        }),
      ).trace.length,
    ).toBe(1);
  });

  test('starts in a given state without armed timers, as it would after a restore', () => {
    const start = job.resolveState({ value: 'running', context: { tries: 1 } });
    const violation = violationOf(() =>
      checkMachine(job, {
        start,
        events: () => [{ type: 'start' }],
        waits: { 'a run has a deadline': { when: 'waiting', exits: ['xstate.after.*'] } },
        deadlock: false,
      }),
    );
    expect(violation).toMatchObject({ kind: 'wait', property: 'a run has a deadline' });
    expect(violation.trace.length).toBe(0);
  });

  test('merges states with the same key but still distinguishes status and timers', () => {
    const endless = createMachine({
      context: { serial: 0 },
      initial: 'a',
      states: {
        a: {
          on: {
            next: { actions: assign({ serial: ({ context }) => context.serial + 1 }) },
            stop: 'z',
          },
        },
        z: { type: 'final' },
      },
    });
    const check = { events: () => [{ type: 'next' }, { type: 'stop' }], limit: 50 } as const;
    expect(checkMachine(endless, { ...check, key: () => 'one' }).states).toBe(2);
    expect(() => checkMachine(endless, check)).toThrow(
      expect.objectContaining({ name: 'CapacityError', code: 'STATE_LIMIT' }),
    );
    expect(() => checkMachine(endless, check)).toThrow(
      /at most 50 states in "\(machine\)" \(`limit`\).*\(machine\): 5\d/,
    );
    expect(checkMachine(job, { events: jobEvents, limit: 11 }).states).toBe(11);
    expect(() => checkMachine(job, { events: jobEvents, limit: 10 })).toThrow('at most 10 states');
  });

  test('returns the collected violations and the limit that was reached', () => {
    const report = checkMachine(job, {
      events: jobEvents,
      limit: 10,
      onViolation: 'collect',
      invariants: { 'one try': ({ context }) => context.tries < 2 },
    });
    expect(report.violations).toMatchObject([{ kind: 'invariant', property: 'one try' }]);
    expect(report.limitReached).toMatchObject({ code: 'STATE_LIMIT' });
    expect(report.toString()).toContain('not all states: Expected at most 10 states');
  });
});

describe('findings', () => {
  test('reports a violated invariant with the shortest trace', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: jobEvents,
        invariants: {
          'one try': ({ context }) => context.tries < 2 || `${context.tries} tries.`,
        },
      }),
    );
    expect(violation).toMatchObject({ kind: 'invariant', property: 'one try', reason: '2 tries.' });
    expect(eventsOf(violation)).toEqual(['start', 'xstate.done.actor.work', 'start']);
    expect(violation.toString()).toBe(
      [
        'one try: 2 tries. (3 steps)',
        '      job starts',
        '        job: ready {tries: 0}',
        '   1  job ← start',
        '        job: running {tries: 1}',
        '        effects: start work',
        '   2  job ← xstate.done.actor.work {output: {ok: false}}',
        '        job: ready {tries: 1}',
        '        effects: stop work',
        '   3  job ← start',
        '        job: running {tries: 2}',
        '        effects: start work',
      ].join('\n'),
    );
  });

  test("includes the trace in the thrown error's message", () => {
    expect(() =>
      checkMachine(job, {
        events: jobEvents,
        invariants: { 'one try': ({ context }) => context.tries < 2 },
      }),
    ).toThrow(
      expect.objectContaining({
        name: 'ViolationError',
        code: 'PROPERTY_VIOLATED',
        message: expect.stringContaining('   3  job ← start\n        job: running {tries: 2}'),
      }),
    );
  });

  test('accepts a property that throws, like `expect`', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: jobEvents,
        invariants: {
          'one try': ({ context }) => {
            expect(context.tries).toBeLessThan(2);
            return true;
          },
        },
      }),
    );
    expect(violation.reason).toContain('expected 2 to be less than 2');
    expect(violation.cause).toBeInstanceOf(Error);
  });

  test('refuses a property that returns nothing, because it would always hold', () => {
    expect(() =>
      checkMachine(job, {
        events: jobEvents,
        invariants: { 'one try': (() => undefined) as unknown as () => boolean },
      }),
    ).toThrow(/property "one try" to answer true, false or a reason, got undefined/);
  });

  test('reports a step that violates its property', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: jobEvents,
        steps: {
          'only a start starts': (before, event, after) =>
            before.value === after.value || after.value !== 'running' || event.type !== 'start',
        },
      }),
    );
    expect(violation).toMatchObject({ kind: 'step', reason: 'It does not hold.' });
    expect(eventsOf(violation)).toEqual(['start']);
  });

  test('reports a deadlock', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { go: 'b' } }, b: { on: { ping: { actions: log('pong') } } } },
    });
    const events = () => [{ type: 'go' }, { type: 'ping' }];
    const violation = violationOf(() => checkMachine(machine, { events, end: false }));
    expect(violation).toMatchObject({
      kind: 'deadlock',
      reason: 'Nothing that happens changes it, and it is no end.',
    });
    expect(checkMachine(machine, { events, end: false, deadlock: false }).transitions).toBe(2);
    expect(eventsOf(violation)).toEqual(['go']);
  });

  test('reports a state from which no end is reachable, even if events are still possible', () => {
    const machine = createMachine({
      initial: 'a',
      states: {
        a: { on: { finish: 'done', slip: 'b' } },
        b: { on: { next: 'c' } },
        c: { on: { next: 'b' } },
        done: { type: 'final' },
      },
    });
    const events = () => [{ type: 'finish' }, { type: 'slip' }, { type: 'next' }];
    const violation = violationOf(() => checkMachine(machine, { events }));
    expect(violation).toMatchObject({ kind: 'end' });
    expect(violation.reason).toContain('nor from 1 other states');
    expect(eventsOf(violation)).toEqual(['slip']);
    expect(checkMachine(machine, { events, end: false }).ok).toBe(true);
  });

  test('requires `end` for a machine that never finishes', () => {
    const lamp = createMachine({
      initial: 'off',
      states: { off: { on: { press: 'on' } }, on: { on: { press: 'off' } } },
    });
    const events = () => [{ type: 'press' }];
    expect(violationOf(() => checkMachine(lamp, { events })).reason).toContain('`end`');
    expect(checkMachine(lamp, { events, end: ({ value }) => value === 'off' }).ends).toBe(1);
  });

  test('reports a final state that an event can still leave through a root transition', () => {
    const machine = createMachine({
      id: 'door',
      initial: 'open',
      on: { slam: '.shut' },
      states: {
        open: { on: { lock: 'locked' } },
        shut: { on: { lock: 'locked' } },
        locked: { type: 'final' },
      },
    });
    const events = ({ status }: { status: string }) =>
      status === 'active' ? [{ type: 'slam' }, { type: 'lock' }] : [];
    const violation = violationOf(() => checkMachine(machine, { events }));
    expect(violation).toMatchObject({ kind: 'finality' });
    expect(violation.reason).toContain(`"door" has ended and would still take {type: 'slam'}`);
    expect(eventsOf(violation)).toEqual(['lock']);
    // Without the finality check, the model stays in `locked`, as the real actor does.
    const report = checkMachine(machine, { events, finality: false });
    expect(report.states).toBe(3);
    expect(report.ends).toBe(1);
  });

  test('reports a wait that lacks a required exit', () => {
    const machine = setup({ types: { tags: {} as 'waiting' } }).createMachine({
      initial: 'asking',
      states: {
        asking: {
          tags: 'waiting',
          on: { answer: 'done', 'deadline.passed': { target: 'asking' } },
        },
        done: { type: 'final' },
      },
    });
    const events = () => [{ type: 'answer' }, { type: 'deadline.passed' }, { type: 'cancel' }];
    const waits = (...exits: string[]) => ({ 'has a way out': { when: 'waiting', exits } });
    expect(checkMachine(machine, { events, waits: waits('answer', 'cancel') }).ok).toBe(true);
    // The machine accepts the deadline, but nothing changes.
    const violation = violationOf(() =>
      checkMachine(machine, { events, waits: waits('deadline.*', 'cancel') }),
    );
    expect(violation).toMatchObject({
      kind: 'wait',
      reason: 'None of deadline.*, cancel leads "(machine)" out of here.',
    });
  });

  test('reports an expected state that is never reached', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: () => [{ type: 'start' }, { type: 'cancel' }],
        reachable: { 'it succeeds': ({ value }) => value === 'done' },
      }),
    );
    expect(violation).toMatchObject({ kind: 'reachable', property: 'it succeeds' });
  });

  test('passes an event to `unhandled` if the machine does not accept it', () => {
    const untaken: string[] = [];
    checkMachine(job, {
      events: () => [...jobEvents(), { type: 'retry' }],
      unhandled: (event, snapshot) => {
        untaken.push(`${snapshot.value} ${event.type}`);
        return true;
      },
    });
    expect(untaken).toContain('ready retry');
    // The completion is not lost, because an actor that is not running cannot complete.
    expect(untaken).not.toContain('ready xstate.done.actor.work');
    expect(untaken).not.toContain('running cancel');
    const violation = violationOf(() =>
      checkMachine(job, {
        events: () => [...jobEvents(), { type: 'retry' }],
        unhandled: (event) => event.type !== 'retry' || 'A retry is lost.',
      }),
    );
    expect(violation).toMatchObject({ kind: 'unhandled', reason: 'A retry is lost.' });
    expect(eventsOf(violation)).toEqual(['retry']);
  });

  test('uses ghost variables to track information that no state contains', () => {
    const ghost = {
      initial: [] as readonly string[],
      next: (seen: readonly string[], step: { event: { type: string } }) =>
        step.event.type === 'start' ? [...seen, 'start'] : seen,
    };
    const violation = violationOf(() =>
      checkMachine(job, {
        events: jobEvents,
        ghost,
        invariants: { 'started at most once': (_, seen) => seen.length <= 1 },
      }),
    );
    expect(eventsOf(violation)).toEqual(['start', 'xstate.done.actor.work', 'start']);
  });

  test('reports all violations if they are collected', () => {
    const report = checkMachine(job, {
      events: jobEvents,
      onViolation: 'collect',
      invariants: {
        'one try': ({ context }) => context.tries < 2,
        'never fails': ({ value }) => value !== 'failed',
      },
      reachable: { 'three tries': ({ context }) => context.tries === 3 },
    });
    expect(report.ok).toBe(false);
    expect(report.violations.map(({ property }) => property)).toEqual([
      'never fails',
      'one try',
      'three tries',
    ]);
    expect(report.toString()).toContain('✗ one try: It does not hold. (3 steps)');
  });
});

describe('machines that fail', () => {
  test('reports a missing input, which XState turns into an error snapshot', () => {
    const machine = setup({
      types: { input: {} as { id: string }, context: {} as { id: string } },
    }).createMachine({ context: ({ input }) => ({ id: input.id }) });
    const violation = violationOf(() => checkMachine(machine, { events: () => [] }));
    expect(violation.kind).toBe('error');
    expect(violation.reason).toContain("reading 'id'");
    expect(violation.cause).toBeInstanceOf(TypeError);
    const report = checkMachine(machine, { events: () => [], onViolation: 'collect' });
    expect(report).toMatchObject({ ok: false, states: 0 });
  });

  test('reports a guard that throws', () => {
    const machine = createMachine({
      initial: 'a',
      states: {
        a: { on: { go: 'b' } },
        b: {
          on: {
            go: {
              guard: () => {
                throw new Error('no such door');
              },
              target: 'a',
            },
          },
        },
      },
    });
    const violation = violationOf(() => checkMachine(machine, { events: () => [{ type: 'go' }] }));
    expect(violation).toMatchObject({ kind: 'error' });
    expect(violation.reason).toContain('no such door');
    expect(eventsOf(violation)).toEqual(['go', 'go']);
    expect(violation.trace.toString()).toContain('   2  (machine) ← go — threw');
  });

  test('reports a completion event without its output', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: () => [{ type: 'start' }, { type: 'xstate.done.actor.work' }],
      }),
    );
    expect(violation.kind).toBe('error');
    expect(violation.reason).toContain('The event has no `output`; the real one has.');
  });

  test('reports an unhandled failure of an invoked actor', () => {
    const violation = violationOf(() =>
      checkMachine(job, {
        events: () => [
          { type: 'start' },
          { type: 'xstate.error.actor.work', error: new Error('the disk is full') },
        ],
      }),
    );
    expect(violation.reason).toBe(
      '"job" has no transition for the failure of an invoked actor, so it fails: the disk is full',
    );
  });

  test('ends a loop of eventless transitions instead of hanging', () => {
    const machine = createMachine({
      initial: 'a',
      states: { a: { on: { go: 'b' } }, b: { always: 'c' }, c: { always: 'b' } },
    });
    const violation = violationOf(() => checkMachine(machine, { events: () => [{ type: 'go' }] }));
    expect(violation.reason).toContain('Infinite loop detected');
  });
});

describe('invalid checks', () => {
  const machineWith = (context: object) =>
    createMachine({ id: 'door', context: context as Record<string, unknown> });

  test('refuses a context that is not plain data unless a key is given', () => {
    const machine = machineWith({ socket: { close: () => {} } });
    expect(() => checkMachine(machine, { events: () => [] })).toThrow(
      /plain data in the snapshot of "door", got a function at `1\.socket\.close`/,
    );
    const report = checkMachine(machine, {
      events: () => [],
      key: ({ value }) => value,
      end: () => true,
    });
    expect(report.states).toBe(1);
  });

  test('refuses a child without an id', () => {
    const machine = setup({ actors: { work: fromPromise(async () => {}) } }).createMachine({
      id: 'door',
      initial: 'a',
      states: {
        a: {
          on: { go: { actions: assign(({ spawn }) => ({ child: spawn('work') })) } },
        },
      },
    });
    expect(() => checkMachine(machine, { events: () => [{ type: 'go' }] })).toThrow(
      /"door" spawns "work" without an id/,
    );
  });

  test('lists an actor that assign spawns', () => {
    const seen: unknown[] = [];
    const machine = setup({ actors: { work: fromPromise(async () => {}) } }).createMachine({
      initial: 'a',
      states: {
        a: {
          on: {
            go: {
              target: 'b',
              actions: assign(({ spawn }) => ({
                child: spawn('work', { id: 'w', systemId: 'worker', input: 7 }),
              })),
            },
          },
        },
        b: { on: { go: 'a', end: 'z' } },
        z: { type: 'final' },
      },
    });
    checkMachine(machine, {
      events: () => [{ type: 'go' }, { type: 'end' }],
      steps: { all: (_before, _event, _after, effects) => seen.push(...effects) >= 0 },
    });
    expect(seen[0]).toEqual({
      type: 'xstate.spawnChild',
      params: { id: 'w', src: 'work', input: 7 },
    });
  });

  test.each([
    [{ limit: 0 }, '`limit` to be a whole number of at least 1, got 0'],
    [{ limit: 1.5 }, '`limit` to be a whole number of at least 1, got 1.5'],
    [{ events: undefined }, '`events`: expected a function'],
    [{ events: () => ['go'] }, `external events of "job" to be a list of { type, … }, got ['go']`],
    [{ events: () => ({ type: 'go' }) }, 'to be a list of { type, … }'],
  ])('an option that makes no sense: %o', (options, message) => {
    const check = { events: jobEvents, ...options } as unknown as { events: typeof jobEvents };
    expect(() => checkMachine(job, check)).toThrow(message);
    expect(() => checkMachine(job, check)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError' }),
    );
  });

  test('refuses a value that is not a machine', () => {
    const notAMachine = fromPromise(async () => {}) as unknown as typeof job;
    expect(() => checkMachine(notAMachine, { events: () => [] })).toThrow(
      /createMachine\(\), got \{\}/,
    );
  });
});

test('types the events, the context and the effects of the machine', () => {
  checkMachine(job, {
    // @ts-expect-error: the machine declares no such event
    events: () => [{ type: 'strat' }],
    invariants: {
      // @ts-expect-error: the context has no such member
      'is typed': ({ context }) => context.attempts === 0 || true,
    },
    steps: {
      'is typed': (_before, _event, _after, effects) =>
        // @ts-expect-error: the machine declares no such action
        effects.every(({ type }) => type !== 'repotr'),
    },
    end: () => true,
  });
});
