import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  assign,
  createActor,
  sendTo,
  setup,
  toPromise,
  waitFor,
  type AnyActorRef,
  type InspectionEvent,
} from 'xstate';
import { z } from 'zod';
import { createRuntime } from '../../../src/actors/admission/runtime.ts';
import type { SubagentConfig } from '../../../src/actors/contracts/config.ts';
import {
  subagentLogic as logicWith,
  type SubagentActorSnapshot,
} from '../../../src/actors/subagents/subagent-logic.ts';
import { defineSubagent, memoryJournal, type Journal, type Outcome } from '../../../src/index.ts';
import { runSubagent, subagentLogic } from '../../../src/entries/subagents.ts';
import { scriptedModel, simulatedEnvironment, type Script } from '../../../src/testing/index.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';

const INSTRUCTIONS = 'You do one thing.';

/** Creates a process with this journal. */
function place(script: Script, journal: Journal = memoryJournal()) {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, journal });
  const prompts: string[] = [];
  const model = scriptedModel({
    scripts: [
      {
        when: INSTRUCTIONS,
        script(prompt) {
          prompts.push(JSON.stringify(prompt.prompt));
          return script(prompt);
        },
      },
    ],
  });
  const leaving = new AbortController();
  const errors: unknown[] = [];
  return {
    environment,
    prompts,
    errors,
    signal: leaving.signal,
    leave: async () => {
      leaving.abort();
      await environment.settle();
    },
    logic: (config: Partial<SubagentConfig> = {}) =>
      logicWith(
        { name: 'worker', instructions: INSTRUCTIONS, interactive: true, ...config },
        { runtime, model, leave: leaving.signal, onError: (error) => errors.push(error) },
      ),
  };
}

const asks: Script = ({ step, results: [answer] }) =>
  step === 1
    ? calls(['ask_user', { question: 'Which one?' }])
    : say(`Took ${JSON.stringify(answer)}`);

const isAsked = ({ context }: SubagentActorSnapshot): boolean => context.questions.length > 0;
const requestIn = ({ context }: SubagentActorSnapshot): string =>
  context.questions[0]?.requestId ?? '';

describe('the actor of a subagent', () => {
  it('shows the states of its run, and ends with the outcome as its output', async () => {
    const { environment, logic } = place(asks);
    const actor = createActor(logic(), { input: { task: 'Buy one' } });
    const seen: string[] = [];
    actor.subscribe(({ value }) => {
      if (seen.at(-1) !== value) seen.push(value);
    });
    actor.start();
    await environment.settle();
    const waiting = actor.getSnapshot();
    expect(waiting).toMatchObject({ status: 'active', value: 'waiting_for_input' });
    expect(waiting.matches('waiting_for_input')).toBe(true);
    expect(waiting.context).toMatchObject({
      id: null,
      name: 'worker',
      title: 'Buy one',
      step: 1,
      questions: [{ question: 'Which one?', kind: 'question' }],
    });
    actor.send({ type: 'answer', requestId: requestIn(waiting), answer: { text: 'The blue one' } });
    const output = await toPromise(actor);
    expect(output).toMatchObject({ status: 'completed' });
    expect(output.text).toContain('The blue one');
    expect(actor.getSnapshot()).toMatchObject({
      status: 'done',
      value: 'completed',
      context: { step: 2, questions: [] },
    });
    expect(seen).toEqual([
      'spawning',
      'ready',
      'running',
      'waiting_for_input',
      'ready',
      'running',
      'completed',
    ]);
  });

  it('works in real time', async () => {
    const model = scriptedModel({ scripts: [{ when: INSTRUCTIONS, script: asks }] });
    const worker = defineSubagent({
      name: 'worker',
      instructions: INSTRUCTIONS,
      interactive: true,
      model,
      outputSchema: z.object({ took: z.string() }),
    });
    const logic = subagentLogic(worker);
    const actor = createActor(logic, { input: { task: 'Buy one' } }).start();
    const asked = await waitFor(actor, isAsked);
    actor.send({ type: 'cancel', reason: 'too late' });
    expectTypeOf(toPromise(actor)).toEqualTypeOf<Promise<Outcome<{ took: string }>>>();
    expect(requestIn(asked)).not.toBe('');
    expect(await toPromise(actor)).toMatchObject({ status: 'cancelled' });
    expect(actor.getSnapshot().value).toBe('cancelled');
  });

  it('runs alongside another invoked actor in a machine, and accepts an answer through sendTo', async () => {
    const { environment, logic } = place(asks);
    const worker = logic();
    const trip = setup({
      types: { context: {} as { readonly booked: readonly string[] } },
      actors: { worker },
      guards: {
        isAsked: (_, snapshot: SubagentActorSnapshot) => isAsked(snapshot),
      },
      actions: {
        answer: sendTo(
          (_, { id }: { id: string; snapshot: SubagentActorSnapshot }) => id,
          (_, { id, snapshot }: { id: string; snapshot: SubagentActorSnapshot }) => ({
            type: 'answer',
            requestId: requestIn(snapshot),
            answer: { text: `the ${id} at nine` },
          }),
        ),
        book: assign({
          booked: ({ context }, { text }: { text: string }) => [...context.booked, text],
        }),
      },
    }).createMachine({
      context: { booked: [] },
      type: 'parallel',
      states: {
        flight: {
          initial: 'booking',
          states: {
            booking: {
              invoke: {
                src: 'worker',
                id: 'flight',
                input: { task: 'Book the flight' },
                onSnapshot: {
                  guard: { type: 'isAsked', params: ({ event }) => event.snapshot },
                  actions: {
                    type: 'answer',
                    params: ({ event }) => ({ id: 'flight', snapshot: event.snapshot }),
                  },
                },
                onDone: {
                  target: 'booked',
                  actions: { type: 'book', params: ({ event }) => event.output },
                },
              },
            },
            booked: { type: 'final' },
          },
        },
        hotel: {
          initial: 'booking',
          states: {
            booking: {
              invoke: {
                src: 'worker',
                id: 'hotel',
                input: { task: 'Book the hotel' },
                onSnapshot: {
                  guard: { type: 'isAsked', params: ({ event }) => event.snapshot },
                  actions: {
                    type: 'answer',
                    params: ({ event }) => ({ id: 'hotel', snapshot: event.snapshot }),
                  },
                },
                onDone: {
                  target: 'booked',
                  actions: { type: 'book', params: ({ event }) => event.output },
                },
              },
            },
            booked: { type: 'final' },
          },
        },
      },
    });
    const actor = createActor(trip).start();
    await environment.settle();
    const { status, context } = actor.getSnapshot();
    expect(status).toBe('done');
    expect(context.booked.toSorted()).toEqual([
      expect.stringContaining('the flight at nine'),
      expect.stringContaining('the hotel at nine'),
    ]);
  });

  it('lists the actors of its machine and its subagents as descendants of its own actor (ACTORS-3)', async () => {
    const { environment, logic } = place(asks);
    const below = new Map<string, string | undefined>();
    const inspect = (inspected: InspectionEvent): void => {
      if (inspected.type !== '@xstate.actor') return;
      const actorRef = inspected.actorRef as AnyActorRef;
      below.set(actorRef.id, actorRef._parent?.id);
    };
    const actor = createActor(logic(), {
      input: { task: 'Buy one' },
      inspect,
      id: 'buyer',
    }).start();
    await environment.settle();
    const chart = [...below].find(([, parent]) => parent === 'buyer');
    expect(chart?.[0]).toMatch(/^runs_\w+\/sub_1$/);
    const shown = actor.system.get(chart?.[0] ?? '');
    expect(shown?.getSnapshot()).toMatchObject({ value: { waiting_for_input: 'asking' } });
    actor.send({
      type: 'answer',
      requestId: requestIn(actor.getSnapshot()),
      answer: { text: 'Blue' },
    });
    await environment.settle();
    expect(shown?.getSnapshot()).toMatchObject({ value: 'completed' });
    expect(actor.getSnapshot().status).toBe('done');
  });

  it('shows each of its events to an inspector', async () => {
    const { environment, logic } = place(asks);
    const events: string[] = [];
    const inspect = (inspected: InspectionEvent): void => {
      if (inspected.type === '@xstate.event') events.push(inspected.event.type);
    };
    const actor = createActor(logic(), { input: { task: 'Buy one' }, inspect }).start();
    await environment.settle();
    actor.send({
      type: 'answer',
      requestId: requestIn(actor.getSnapshot()),
      answer: { text: 'Blue' },
    });
    await environment.settle();
    expect(events).toContain('question.asked');
    expect(events.indexOf('answer')).toBeGreaterThan(events.indexOf('question.asked'));
    expect(events.at(-1)).toBe('subagent.completed');
  });

  it('passes a message to the next model call', async () => {
    const { environment, logic, prompts } = place(asks);
    const actor = createActor(logic(), { input: { task: 'Buy one' } }).start();
    await environment.settle();
    actor.send({ type: 'message', text: 'Not above 20 francs' });
    actor.send({
      type: 'answer',
      requestId: requestIn(actor.getSnapshot()),
      answer: { text: 'Blue' },
    });
    await environment.settle();
    expect(prompts.at(-1)).toContain('Not above 20 francs');
  });

  it('cancels its run when it is stopped', async () => {
    let aborted = false;
    const { environment, logic } = place(() => calls(['work']));
    const work = simpleTool(({ abortSignal }) => {
      abortSignal?.addEventListener('abort', () => (aborted = true));
      return never();
    });
    const actor = createActor(logic({ tools: { work } }), { input: { task: 'Work' } }).start();
    await environment.settle();
    actor.stop();
    await environment.settle();
    expect(aborted).toBe(true);
    expect(actor.getSnapshot().status).toBe('stopped');
  });
});

it.each(['id', 'by', 'engine', 'abortSignal', 'onQuestion'])(
  'refuses the run option %s',
  (option) => {
    const options = { [option]: option === 'onQuestion' ? () => null : 'x' };
    expect(() => subagentLogic({ name: 'worker', instructions: INSTRUCTIONS }, options)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(option) }),
    );
  },
);

it.each(['subagentLogic', 'runSubagent'] as const)(
  '%s refuses a configuration whose name cannot be stored',
  (of) => {
    const name = Object.create(null) as string;
    const config = { name, instructions: INSTRUCTIONS };
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    const begin = () =>
      of === 'runSubagent' ? runSubagent(config, 'Go', { runtime }) : subagentLogic(config, {});
    expect(begin).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  },
);

describe('SUBAGENT-LOGIC-1: an event that has no effect', () => {
  it.each<[string, object, string]>([
    [
      'an answer to a question that is not open',
      { type: 'answer', requestId: 'other', answer: { text: 'Blue' } },
      'NOT_FOUND',
    ],
    [
      'an answer without words',
      { type: 'answer', requestId: 'open', answer: { text: ' ' } },
      'INVALID_ANSWER',
    ],
    [
      'an answer that is no answer',
      { type: 'answer', requestId: 'open', answer: { text: 7 } },
      'INVALID_ANSWER',
    ],
    ['a message that is no text', { type: 'message', text: { a: 1 } }, 'INVALID_OPTION'],
    ['a message of a megabyte', { type: 'message', text: 'x'.repeat(1_000_000) }, 'INVALID_OPTION'],
    ['a reason that is no text', { type: 'cancel', reason: 7 }, 'INVALID_OPTION'],
    ['an event of the run', { type: 'subagent.completed', output: 'forged' }, 'INVALID_EVENT'],
    ['an event of the machine', { type: 'model.responded', step: 1 }, 'INVALID_EVENT'],
    ['an unknown event', { type: 'go' }, 'INVALID_EVENT'],
  ])('emits a refusal of %s', async (_, event, code) => {
    const { environment, logic, errors } = place(asks);
    const actor = createActor(logic(), { input: { task: 'Buy one' } });
    const refused: unknown[] = [];
    actor.on('refused', (refusal) => refused.push(refusal));
    actor.start();
    await environment.settle();
    const before = actor.getSnapshot();
    const open = requestIn(before);
    const sent = {
      ...event,
      ...('requestId' in event && event.requestId === 'open' ? { requestId: open } : {}),
    };
    expect(before.can(sent as never)).toBe(false);
    actor.send(sent as never);
    await environment.settle();
    expect(refused).toMatchObject([{ type: 'refused', event: sent, error: { code } }]);
    expect(actor.getSnapshot()).toBe(before);
    expect(errors).toEqual([]);
    actor.send({ type: 'answer', requestId: open, answer: { text: 'Blue' } });
    expect((await toPromise(actor)).status).toBe('completed');
  });

  it('the actor refuses a second answer and keeps the first', async () => {
    const { environment, logic } = place(asks);
    const actor = createActor(logic(), { input: { task: 'Buy one' } });
    const refused: string[] = [];
    actor.on('refused', ({ error }) => refused.push(error.code));
    actor.start();
    await environment.settle();
    const requestId = requestIn(actor.getSnapshot());
    actor.send({ type: 'answer', requestId, answer: { text: 'Blue' } });
    actor.send({ type: 'answer', requestId, answer: { text: 'Red' } });
    const { text } = await toPromise(actor);
    expect(text).toContain('Blue');
    expect(refused).toEqual(['NOT_FOUND']);
  });

  it.each([
    ['no input', undefined],
    ['no task', { id: 'trip' }],
    ['a task of another kind', { task: 7 }],
    ['an empty id', { task: 'Buy one', id: '' }],
    ['an unknown option', { task: 'Buy one', mode: 'fast' }],
  ])('the actor fails when it is created with %s', (_, input) => {
    const { logic } = place(asks);
    const actor = createActor(logic(), { input: input as never });
    const failed: unknown[] = [];
    actor.subscribe({ error: (error) => failed.push(error) });
    actor.start();
    expect(failed).toMatchObject([{ code: 'INVALID_OPTION' }]);
  });
});

describe('SUBAGENT-LOGIC-2: a snapshot', () => {
  it('contains only plain JSON, from which another process continues the run', async () => {
    const journal = memoryJournal({ keep: Infinity });
    const done: string[] = [];
    const pay = simpleTool(() => void done.push('paid'));
    const script: Script = (prompt) =>
      prompt.step === 1 ? calls(['pay']) : asks({ ...prompt, step: prompt.step - 1 });
    const one = place(script, journal);
    const first = createActor(one.logic({ tools: { pay } }), {
      input: { task: 'Buy one', id: 'trip' },
    });
    first.start();
    const early = JSON.stringify(first.getPersistedSnapshot());
    await one.environment.settle();
    const late = JSON.stringify(first.getPersistedSnapshot());
    await one.leave();
    expect(JSON.parse(late)).toMatchObject({ value: 'waiting_for_input', input: { id: 'trip' } });

    for (const [stored, isLast] of [
      [early, false],
      [late, true],
    ] as const) {
      const two = place(script, journal);
      const again = createActor(two.logic({ tools: { pay } }), {
        snapshot: JSON.parse(stored),
        input: { task: 'Buy one', id: 'trip' },
      }).start();
      await two.environment.settle();
      expect(again.getSnapshot()).toMatchObject({
        value: 'waiting_for_input',
        context: { step: 2 },
      });
      if (isLast) {
        again.send({
          type: 'answer',
          requestId: requestIn(again.getSnapshot()),
          answer: { text: 'Blue' },
        });
        expect((await toPromise(again)).text).toContain('Blue');
      } else await two.leave();
    }
    expect(done).toEqual(['paid']);
  });

  it('keeps the output of a finished actor, and does not start a new run', async () => {
    const one = place(asks);
    const first = createActor(one.logic(), { input: { task: 'Buy one', id: 'trip' } }).start();
    await one.environment.settle();
    first.send({ type: 'cancel' });
    await one.environment.settle();
    const stored = JSON.stringify(first.getPersistedSnapshot());
    const two = place(asks);
    const again = createActor(two.logic(), {
      snapshot: JSON.parse(stored),
      input: { task: 'Buy one', id: 'trip' },
    }).start();
    expect(again.getSnapshot()).toMatchObject({ status: 'done', output: { status: 'cancelled' } });
    await two.environment.settle();
    expect(two.prompts).toEqual([]);
  });

  it('fails to restore a run without an id, because its entries were not stored', async () => {
    const { environment, logic } = place(asks);
    const actor = createActor(logic(), { input: { task: 'Buy one' } }).start();
    await environment.settle();
    const snapshot = JSON.parse(JSON.stringify(actor.getPersistedSnapshot()));
    const again = createActor(logic(), { snapshot, input: { task: 'Buy one' } });
    expect(again.getSnapshot()).toMatchObject({
      status: 'error',
      error: { code: 'INVALID_STATE', message: expect.stringContaining('has an `id`') },
    });
  });
});

describe('SUBAGENT-LOGIC-3: a process that shuts down', () => {
  it('leaves a run with an id in the journal, and does not cancel it when its actor stops', async () => {
    const journal = memoryJournal({ keep: Infinity });
    const one = place(asks, journal);
    const actor = createActor(one.logic(), { input: { task: 'Buy one', id: 'trip' } }).start();
    await one.environment.settle();
    await one.leave();
    actor.stop();
    await one.environment.settle();
    const two = place(asks, journal);
    const again = createActor(two.logic(), { input: { task: 'Buy one', id: 'trip' } }).start();
    await two.environment.settle();
    expect(again.getSnapshot().value).toBe('waiting_for_input');
  });

  it('removes the listeners of ended runs, and does not start anything afterwards', async () => {
    const { environment, logic, leave, prompts, signal } = place(asks);
    let listeners = 0;
    const { addEventListener: add, removeEventListener: remove } = signal;
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners += 1;
      add.apply(signal, given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners -= 1;
      remove.apply(signal, given);
    };
    const actor = createActor(logic(), { input: { task: 'Buy one' } }).start();
    await environment.settle();
    expect(listeners).toBe(1);
    actor.send({ type: 'cancel' });
    await environment.settle();
    expect(listeners).toBe(0);
    const before = prompts.length;
    await leave();
    createActor(logic(), { input: { task: 'Buy one', id: 'late' } }).start();
    await environment.settle();
    expect(prompts.length).toBe(before);
  });

  it('cancels a run that is waiting for an earlier run with the same id', async () => {
    const { environment, logic } = place(asks);
    const input = { task: 'Buy one', id: 'trip' };
    const first = createActor(logic(), { input }).start();
    await environment.settle();
    const second = createActor(logic(), { input }).start();
    second.send({ type: 'cancel', reason: 'no need' });
    await environment.settle();
    expect(first.getSnapshot().value).toBe('waiting_for_input');
    first.send({
      type: 'answer',
      requestId: requestIn(first.getSnapshot()),
      answer: { text: 'Blue' },
    });
    await environment.settle();
    // One id stands for one run, which has ended.
    expect(second.getSnapshot()).toMatchObject({ status: 'done', value: 'completed' });
  });

  it('returns the outcome of the previous run with the same id while that run is ending', async () => {
    const { environment, logic } = place(asks);
    const worker = logic();
    const input = { task: 'Buy one', id: 'trip' };
    const actor = createActor(worker, { input }).start();
    await environment.settle();
    actor.stop();
    const again = createActor(worker, { input }).start();
    await environment.settle();
    expect(again.getSnapshot()).toMatchObject({ status: 'done', value: 'cancelled' });
  });

  it('fails if its id is already used for another task, without affecting the first run', async () => {
    const { environment, logic } = place(asks);
    const first = createActor(logic(), { input: { task: 'Buy one', id: 'trip' } }).start();
    await environment.settle();
    const second = createActor(logic(), { input: { task: 'Buy two', id: 'trip' } }).start();
    await environment.settle();
    expect(second.getSnapshot()).toMatchObject({
      status: 'done',
      value: 'failed',
      output: { status: 'lost', error: { code: 'ID_REUSED' } },
    });
    first.send({
      type: 'answer',
      requestId: requestIn(first.getSnapshot()),
      answer: { text: 'Blue' },
    });
    await environment.settle();
    expect(first.getSnapshot()).toMatchObject({ status: 'done', value: 'completed' });
    // A snapshot whose task has been changed.
    const { input, ...kept } = first.getPersistedSnapshot() as SubagentActorSnapshot;
    const snapshot = { ...kept, status: 'active', input: { ...input, task: 'Buy two' } } as never;
    const third = createActor(logic(), { snapshot, input }).start();
    await environment.settle();
    expect(third.getSnapshot()).toMatchObject({ output: { error: { code: 'ID_REUSED' } } });
  });
});
