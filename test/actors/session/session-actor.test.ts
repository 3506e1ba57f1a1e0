// The actors of a session are XState actors. An app can observe them, and an event sent to one of them goes through the
// session's journal or is refused with a code.

import { describe, expect, test } from 'vitest';
import { toPromise, waitFor, type AnyActorRef, type InspectionEvent } from 'xstate';
import { createRuntime } from '../../../src/index.ts';
import type { ActorRefusal } from '../../../src/actors/runtime/actor-tree.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const asking = {
  name: {
    script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
    config: { interactive: true },
  },
};

/** Collects an actor's refusals by the code of the reason. */
function refusalsOf(actor: AnyActorRef): string[] {
  const codes: string[] = [];
  actor.on('refused', (refusal) => {
    const { event, error } = refusal as ActorRefusal;
    codes.push(`${event.type}: ${error.code}`);
  });
  return codes;
}

/** Sends events that only the unit may send. */
function forge(actor: AnyActorRef): void {
  actor.send({ type: 'session.close', at: 0 });
  actor.send({ type: 'question.withdraw', reason: 'x', at: 0 });
  actor.send({ type: 'subagent.cancel', reason: 'x', at: 0 });
}

const FORGED = [
  'session.close: INVALID_EVENT',
  'question.withdraw: INVALID_EVENT',
  'subagent.cancel: INVALID_EVENT',
];

describe('session.actor', () => {
  test('P8, HOST-1, ACTORS-4: refuses internal events with a named error, and does not change state', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    const { actor } = talk.session;
    const before = actor.getSnapshot();
    const codes = refusalsOf(actor);
    forge(actor);
    // XState's internal events change nothing either.
    actor.send({ type: 'xstate.init' } as never);
    actor.send({ type: 'xstate.done.actor.turn' } as never);
    for (const none of [null, undefined, 'session.close', 7, {}, { type: 7 }, []])
      expect(() => actor.send(none as never)).toThrow('expected an event');
    expect(codes.slice(0, 3)).toEqual(FORGED);
    expect(actor.getSnapshot().value).toEqual(before.value);
    expect(actor.getSnapshot().status).toBe('active');
    await talk.close();
    expect(actor.getSnapshot().value.connection).toBe('closed');
  });

  test('ACTORS-4: does not handle an event twice if an inspector sends it back', async () => {
    const seen: InspectionEvent[] = [];
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment, inspect: (event) => void seen.push(event) });
    const talk = textTalk({ environment, runtime, subagents: asking });
    await talk.start();
    const codes = refusalsOf(talk.session.actor);
    const own = seen.filter(
      (event) => event.type === '@xstate.event' && event.actorRef === talk.session.actor,
    );
    const before = talk.session.actor.getSnapshot();
    for (const each of own.slice())
      if ('event' in each) talk.session.actor.send(each.event as never);
    expect(own.length).toBeGreaterThan(1);
    expect(codes.length).toBeGreaterThan(0);
    expect(talk.session.actor.getSnapshot().value).toEqual(before.value);
    await talk.close();
  });

  test('ACTORS-1, ACTORS-2: shows each state to subscribe, waitFor and toPromise, and serialises its id', async () => {
    const talk = textTalk();
    const { actor } = talk.session;
    const seen: string[] = [];
    actor.subscribe((snapshot) => seen.push(snapshot.value.connection));
    const active = waitFor(actor, ({ value }) => value.connection === 'active');
    await talk.start();
    expect((await active).value.connection).toBe('active');
    expect(seen).toContain('connecting');
    expect(actor.id).toBe(talk.session.id);
    expect(JSON.stringify(actor)).toContain(actor.id);
    const over = toPromise(actor);
    await talk.close();
    await expect(over).resolves.toBeUndefined();
    expect(talk.session.actor).toBe(actor);
  });

  test('P8: executes user commands, but refuses those that would have no effect', async () => {
    const journal = memoryJournal();
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment, journal });
    const talk = textTalk({ environment, runtime, subagents: asking });
    await talk.start();
    const { actor } = talk.session;
    const codes = refusalsOf(actor);
    actor.send({ type: 'send', text: 'use name', by: 'ann' });
    await environment.settle();
    const { requestId = '' } = talk.question() ?? {};
    expect(requestId).not.toBe('');
    actor.send({ type: 'answer', requestId, answer: { text: 'Ada' }, by: 'ann' });
    await environment.settle();
    expect(talk.state().subagents[0]?.outcome?.text).toBe('Thanks.');
    expect(codes).toEqual([]);
    actor.send({ type: 'answer', requestId, answer: { text: 'Bob' } });
    actor.send({ type: 'answer', requestId: 'other', answer: { text: 'Bob' } });
    actor.send({ type: 'answer', requestId, answer: 'x'.repeat(1_000_000) as never });
    actor.send({ type: 'cancel', subagentId: 'sub_1' });
    actor.send({ type: 'message', subagentId: 'other', text: 'Hurry' });
    actor.send({ type: 'send', text: ' ' });
    actor.send({ type: 'send', text: 'hello', by: { a: 1 } as never });
    await environment.settle();
    expect(codes.toSorted()).toEqual([
      'answer: INVALID_ANSWER',
      'answer: INVALID_STATE',
      'answer: INVALID_STATE',
      'cancel: NOT_FOUND',
      'message: NOT_FOUND',
      'send: INVALID_ARGUMENT',
      'send: INVALID_TEXT',
    ]);
    await talk.close();
  });

  test('closes its session when stopped', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    await talk.type('use name');
    talk.session.actor.stop();
    await talk.environment.advance(10_000);
    expect(talk.state().connection).toBe('closed');
    expect(talk.state().subagents[0]?.state).toBe('cancelled');
    expect(talk.session.actor.getSnapshot().status).toBe('stopped');
  });

  test("reports an observer's error, and still calls the other observers", async () => {
    const errors: string[] = [];
    const talk = textTalk({
      hooks: { onError: (error) => void errors.push(String(error)) },
    });
    const seen: string[] = [];
    talk.session.actor.subscribe(() => {
      throw new Error('of the app');
    });
    talk.session.actor.subscribe(({ value }) => seen.push(value.connection));
    await talk.start();
    expect(seen).toContain('active');
    expect(errors[0]).toContain('of the app');
    await talk.close();
  });
});

describe('a descendant of session.actor', () => {
  test("ACTORS-3, ACTORS-4: appears in an inspector's tree, accepts an answer, and refuses other events", async () => {
    const actors = new Map<string, AnyActorRef>();
    const environment = simulatedEnvironment();
    const runtime = createRuntime({
      environment,
      inspect: ({ type, actorRef }: InspectionEvent) => {
        if (type === '@xstate.actor')
          actors.set((actorRef as AnyActorRef).id, actorRef as AnyActorRef);
      },
    });
    const talk = textTalk({ environment, runtime, subagents: asking });
    await talk.start();
    await talk.type('use name');
    const { id } = talk.session;
    expect([...actors.keys()]).toEqual(
      expect.arrayContaining([id, 'interaction', 'outbox', 'turn', 'sub_1', 'question:sub_1.q1']),
    );
    const root = actors.get(id) as AnyActorRef;
    expect(root).toBe(talk.session.actor);
    for (const [name, actor] of actors) {
      const codes = refusalsOf(actor);
      forge(actor);
      expect(codes).toEqual(FORGED);
      expect(actor._parent).toBe(name === id ? undefined : root);
    }
    expect(Object.keys(talk.session.actor.getSnapshot().children)).toEqual(
      expect.arrayContaining(['interaction', 'outbox', 'turn', 'sub_1', 'question:sub_1.q1']),
    );
    expect(talk.question()?.state).toBe('open');
    actors.get('question:sub_1.q1')?.send({ type: 'answer', answer: { text: 'Ada' } });
    await environment.settle();
    expect(talk.state().subagents[0]?.outcome?.text).toBe('Thanks.');
    expect(Object.keys(talk.session.actor.getSnapshot().children)).not.toContain('sub_1');
    await talk.close();
  });

  test('P8: cancels its subagent', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    await talk.type('use name');
    const subagent = talk.session.actor.system.get('sub_1') as AnyActorRef;
    subagent.send({ type: 'cancel', reason: 'too slow' });
    await talk.environment.advance(10_000);
    expect(talk.state().subagents[0]?.outcome).toMatchObject({ status: 'cancelled' });
    expect(subagent.getSnapshot().status).toBe('done');
    await talk.close();
  });

  test('ACTORS-2: completes the observers of an open question when the session is unloaded', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    await talk.type('use name');
    const seen: string[] = [];
    const question = talk.session.actor.system.get('question:sub_1.q1') as AnyActorRef;
    question.subscribe({ complete: () => seen.push(String(question.getSnapshot().status)) });
    await Promise.all([talk.session.suspend(), talk.environment.advance(1000)]);
    expect(seen).toEqual(['stopped']);
  });

  test("ACTORS-3: exists for each machine, even for a parked subagent's, once an app reads any actor", async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    await talk.type('use name');
    const { system } = talk.session.actor;
    const subagent = system.get('sub_1') as AnyActorRef;
    expect(subagent._parent).toBe(talk.session.actor);
    expect(subagent.getSnapshot().value).toEqual({ waiting_for_input: 'asking' });
    const question = system.get('question:sub_1.q1') as AnyActorRef;
    expect(question.getSnapshot().value).toBe('open');
    expect(Object.keys(system.getAll())).toEqual(
      expect.arrayContaining(['interaction', 'outbox', 'turn', 'sub_1', 'question:sub_1.q1']),
    );
    const seen: string[] = [];
    subagent.subscribe({
      next: ({ value }) =>
        seen.push(typeof value === 'string' ? value : String(Object.keys(value)[0])),
      complete: () => seen.push('(over)'),
    });
    expect(() => subagent.stop()).toThrow('cannot be stopped');
    await talk.type('Ada');
    expect(seen).toEqual(expect.arrayContaining(['running', 'completed', '(over)']));
    expect(seen.at(-1)).toBe('(over)');
    expect(question.getSnapshot().value).toBe('answered');
    expect(system.get('sub_1')).toBeUndefined();
    await talk.close();
  });

  test('ACTORS-3: appears in an inspector after its session, even if its machine starts earlier', async () => {
    const order: string[] = [];
    const parents = new Map<string, string | undefined>();
    const environment = simulatedEnvironment();
    const runtime = createRuntime({
      environment,
      inspect: ({ type, actorRef }: InspectionEvent) => {
        if (type !== '@xstate.actor') return;
        const { id, _parent } = actorRef as AnyActorRef;
        order.push(id);
        parents.set(id, _parent?.id);
      },
    });
    const talk = voiceTalk({ environment, runtime });
    await talk.start();
    const { id } = talk.session;
    expect(order.slice(0, 4)).toEqual([id, 'rotation', 'turn', 'silence']);
    for (const name of ['turn', 'rotation']) expect([name, parents.get(name)]).toEqual([name, id]);
    await talk.close();
  });
});
