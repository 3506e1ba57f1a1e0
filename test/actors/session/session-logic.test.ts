// A session as XState actor logic: on its own, in an app's machine, and across a restart.

import { describe, expect, test } from 'vitest';
import {
  assign,
  createActor,
  sendTo,
  setup,
  toPromise,
  type AnyActorRef,
  type InspectionEvent,
} from 'xstate';
import { createRuntime, sessionLogic, type TextSession } from '../../../src/index.ts';
import type { QuestionView } from '../../../src/actors/contracts/session-views.ts';
import type { ActorRefusal } from '../../../src/actors/runtime/actor-tree.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import type { Runtime } from '../../../src/actors/admission/runtime.ts';
import { simulatedEnvironment, scriptedModel } from '../../../src/testing/index.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

interface Opened {
  readonly sessionId: string;
}

const asking = {
  name: {
    script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
    config: { interactive: true },
  },
};

const isOpen = ({ state }: QuestionView): boolean => state === 'presenting' || state === 'open';

/** Creates a runtime and the logic of its sessions. */
function stage(
  journal = memoryJournal(),
  { leave, inspect }: { leave?: AbortSignal; inspect?: (event: InspectionEvent) => void } = {},
) {
  const environment = simulatedEnvironment();
  const runtime: Runtime = createRuntime({ environment, journal, ...(inspect && { inspect }) });
  const opened: string[] = [];
  const logic = sessionLogic(
    ({ sessionId }: Opened) => {
      opened.push(sessionId);
      return textTalk({ environment, runtime, sessionId, subagents: asking }).session;
    },
    leave ? { leave } : {},
  );
  return { environment, runtime, logic, opened, journal };
}

describe('sessionLogic', () => {
  test('SESSION-LOGIC-1: shows the state of its session, and executes user commands', async () => {
    const { environment, logic } = stage();
    const actor = createActor(logic, { input: { sessionId: 'ses_a' } });
    expect(actor.getSnapshot().matches('created')).toBe(true);
    const said: string[] = [];
    actor.on('transcript.changed', ({ item }) => said.push(item.text));
    actor.start();
    await environment.advance(2_000);
    expect(actor.getSnapshot().value).toBe('active');
    actor.send({ type: 'send', text: 'use name' });
    await environment.advance(2_000);
    const [question] = actor.getSnapshot().context.questions;
    expect(question?.question).toBe('Your name?');
    actor.send({
      type: 'answer',
      requestId: question?.requestId ?? '',
      answer: { text: 'Ada' },
    });
    await environment.advance(2_000);
    expect(actor.getSnapshot().context.subagents[0]?.outcome?.text).toBe('Thanks.');
    expect(said).toContain('use name');
    const over = toPromise(actor);
    const session = actor.getSnapshot();
    expect(JSON.stringify(actor.getPersistedSnapshot())).not.toContain('use name');
    expect(session.status).toBe('active');
    actor.stop();
    await environment.advance(10_000);
    expect(actor.getSnapshot().status).toBe('stopped');
    await expect(over).resolves.toBeUndefined();
  });

  test('P8, SESSION-LOGIC-1: refuses internal events, and commands that would have no effect', async () => {
    const { environment, logic } = stage();
    const actor = createActor(logic, { input: { sessionId: 'ses_a' } });
    const codes: string[] = [];
    actor.on('refused', (refusal) => {
      const { event, error } = refusal as ActorRefusal;
      codes.push(`${event.type}: ${error.code}`);
    });
    actor.start();
    await environment.advance(2_000);
    const before = actor.getSnapshot();
    actor.send({ type: 'session.closed' } as never);
    actor.send({ type: 'session.ended' } as never);
    actor.send({ type: 'cancel', subagentId: 'sub_7' });
    actor.send({ type: 'send', text: '' });
    await environment.advance(2_000);
    expect(codes.toSorted()).toEqual([
      'cancel: NOT_FOUND',
      'send: INVALID_TEXT',
      'session.closed: INVALID_EVENT',
      'session.ended: INVALID_EVENT',
    ]);
    expect(actor.getSnapshot()).toBe(before);
    actor.stop();
    await environment.advance(10_000);
  });

  test('SESSION-LOGIC-2: lets a machine answer once in `onSnapshot`, and completes when the session closes', async () => {
    const { environment, runtime } = stage();
    let session: TextSession | undefined;
    const logic = sessionLogic(({ sessionId }: Opened) => {
      session = textTalk({ environment, runtime, sessionId, subagents: asking }).session;
      return session;
    });
    const desk = setup({
      types: { context: {} as { answered: number; error: string | null } },
      actors: { call: logic },
    }).createMachine({
      context: { answered: 0, error: 'none yet' },
      initial: 'talking',
      states: {
        talking: {
          invoke: {
            src: 'call',
            id: 'call',
            input: { sessionId: 'ses_desk' },
            onSnapshot: {
              guard: ({ event }) => event.snapshot.context.questions.some(isOpen),
              actions: [
                assign({ answered: ({ context }) => context.answered + 1 }),
                sendTo('call', ({ event }) => ({
                  type: 'answer',
                  requestId: event.snapshot.context.questions.find(isOpen)?.requestId ?? '',
                  answer: { text: 'Ada' },
                })),
              ],
            },
            onDone: {
              target: 'over',
              actions: assign({ error: ({ event }) => event.output.error?.code ?? null }),
            },
          },
        },
        over: { type: 'final' },
      },
    });
    const actor = createActor(desk).start();
    await environment.advance(2_000);
    actor.getSnapshot().children.call?.send({ type: 'send', text: 'use name' });
    await environment.advance(2_000);
    expect(actor.getSnapshot().context.answered).toBeGreaterThan(0);
    expect(session?.store.getSnapshot().context.subagents[0]?.outcome?.text).toBe('Thanks.');
    void session?.close();
    await environment.advance(10_000);
    expect(actor.getSnapshot().value).toBe('over');
    expect(actor.getSnapshot().context.error).toBe(null);
  });

  test('SESSION-LOGIC-3: closes the session when the machine leaves the state that invokes it', async () => {
    const { environment, runtime } = stage();
    let session: TextSession | undefined;
    const logic = sessionLogic(({ sessionId }: Opened) => {
      session = textTalk({ environment, runtime, sessionId }).session;
      return session;
    });
    const desk = setup({ actors: { call: logic } }).createMachine({
      initial: 'talking',
      states: {
        talking: {
          invoke: { src: 'call', input: { sessionId: 'ses_desk' } },
          on: { hangUp: 'over' },
        },
        over: {},
      },
    });
    const actor = createActor(desk).start();
    await environment.advance(2_000);
    actor.send({ type: 'hangUp' });
    await environment.advance(10_000);
    expect(session?.store.getSnapshot().context.connection).toBe('closed');
  });

  test("shows the whole tree to its system's inspector, but only the runtime's part to the runtime's", async () => {
    const ofSystem = new Map<string, string | undefined>();
    const ofRuntime: string[] = [];
    const { environment, logic } = stage(memoryJournal(), {
      inspect: ({ type, actorRef }) => {
        if (type === '@xstate.actor') ofRuntime.push((actorRef as AnyActorRef).id);
      },
    });
    const machine = setup({ actors: { call: logic } }).createMachine({
      invoke: { src: 'call', id: 'call', input: { sessionId: 'ses_t' } },
    });
    const actor = createActor(machine, {
      id: 'desk',
      inspect: ({ type, actorRef }) => {
        const { id, _parent } = actorRef as AnyActorRef;
        if (type === '@xstate.actor') ofSystem.set(id, _parent?.id);
      },
    }).start();
    await environment.advance(2_000);
    expect(ofSystem.get('call')).toBe('desk');
    expect(ofSystem.get('ses_t')).toBe('call');
    for (const part of ['interaction', 'outbox', 'turn']) expect(ofSystem.get(part)).toBe('ses_t');
    expect(ofRuntime).toEqual(expect.arrayContaining(['ses_t', 'interaction', 'outbox', 'turn']));
    expect(ofRuntime).not.toContain('desk');
    expect(ofRuntime.filter((id) => id === 'ses_t')).toHaveLength(1);
    actor.stop();
    await environment.advance(10_000);
  });

  test('keeps the actors of two sessions in the same system separate', async () => {
    const { environment, logic } = stage();
    const machine = setup({ actors: { call: logic } }).createMachine({
      type: 'parallel',
      states: {
        a: { invoke: { src: 'call', id: 'a', input: { sessionId: 'ses_a' } } },
        b: { invoke: { src: 'call', id: 'b', input: { sessionId: 'ses_b' } } },
      },
    });
    const actor = createActor(machine).start();
    await environment.advance(2_000);
    const { system } = actor;
    expect((system.get('ses_a/outbox') as AnyActorRef)._parent?.id).toBe('ses_a');
    expect((system.get('ses_b/outbox') as AnyActorRef)._parent?.id).toBe('ses_b');
    actor.stop();
    await environment.advance(10_000);
  });
});

describe('session logic across a restart', () => {
  test('P9: continues the persisted session from its journal, with its open question', async () => {
    const leaving = new AbortController();
    const first = stage(memoryJournal(), { leave: leaving.signal });
    const actor = createActor(first.logic, { input: { sessionId: 'ses_r' } }).start();
    await first.environment.advance(2_000);
    actor.send({ type: 'send', text: 'use name' });
    await first.environment.advance(2_000);
    const kept = JSON.parse(JSON.stringify(actor.getPersistedSnapshot())) as never;
    leaving.abort();
    actor.stop();
    await first.environment.advance(10_000);

    const second = stage(first.journal);
    const again = createActor(second.logic, { snapshot: kept, input: { sessionId: 'ses_r' } });
    again.start();
    await second.environment.advance(2_000);
    expect(second.opened).toEqual(['ses_r']);
    const { context } = again.getSnapshot();
    expect(context.questions.map(({ question }) => question)).toEqual(['Your name?']);
    expect(context.subagents).toHaveLength(1);
    again.stop();
    await second.environment.advance(10_000);
  });

  test('SESSION-LOGIC-3: leaves a session open when its actor is stopped during a shutdown', async () => {
    const leaving = new AbortController();
    const { environment, logic, journal } = stage(memoryJournal(), { leave: leaving.signal });
    const actor = createActor(logic, { input: { sessionId: 'ses_l' } }).start();
    await environment.advance(2_000);
    leaving.abort();
    actor.stop();
    await environment.advance(10_000);
    const types: string[] = [];
    for (const { event } of journal.read({ scope: 'ses_l' })) types.push(event.type);
    expect(types).toContain('session.start');
    expect(types).not.toContain('session.close');
  });
});

describe('an actor whose session cannot be opened', () => {
  test('fails for a session that is already open', async () => {
    const { environment, logic } = stage();
    const first = createActor(logic, { input: { sessionId: 'ses_a' } }).start();
    await environment.advance(2_000);
    const errors: unknown[] = [];
    const again = createActor(logic, { input: { sessionId: 'ses_a' } });
    again.subscribe({ error: (error) => void errors.push(error) });
    again.start();
    await environment.advance(2_000);
    expect(errors).toEqual([expect.objectContaining({ code: expect.any(String) })]);
    expect(first.getSnapshot().value).toBe('active');
    first.stop();
    await environment.advance(10_000);
  });

  test.each([
    ['is no function', 'open', {}],
    ['has an unknown option', () => null, { leaves: true }],
  ])('throws at once where an argument %s', (_, open, options) => {
    expect(() => sessionLogic(open as never, options as never)).toThrow('sessionLogic(open');
  });

  test('completes immediately if `open` returns a closed session', async () => {
    const { environment, runtime } = stage();
    const { session } = textTalk({ environment, runtime });
    void session.close();
    await environment.advance(10_000);
    const actor = createActor(
      sessionLogic(() => session),
      { input: null },
    ).start();
    await environment.advance(10_000);
    expect(actor.getSnapshot()).toMatchObject({ status: 'done', output: { error: null } });
  });

  test('fails if `open` returns no session', () => {
    const actor = createActor(
      sessionLogic(() => scriptedModel([]) as never),
      { input: null },
    );
    const errors: unknown[] = [];
    actor.subscribe({ error: (error) => void errors.push(error) });
    actor.start();
    expect(errors).toEqual([expect.objectContaining({ code: 'INVALID_OPTION' })]);
  });
});
