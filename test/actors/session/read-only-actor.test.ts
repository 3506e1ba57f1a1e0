// The actors that apps and inspectors get hold of can be looked at, and not moved: what is not in
// the journal must not happen.

import { describe, expect, test } from 'vitest';
import { toPromise, waitFor, type AnyActorRef, type InspectionEvent } from 'xstate';
import { createRuntime } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const READ_ONLY = { name: 'ConfigurationError', code: 'READ_ONLY_ACTOR' };

const asking = {
  name: {
    script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
    config: { interactive: true },
  },
};

/** Tries to move it past the journal. */
function move(actor: AnyActorRef): readonly unknown[] {
  const thrown: unknown[] = [];
  const moves: (() => void)[] = [
    () => actor.send({ type: 'session.close', at: 0 }),
    () => actor.send({ type: 'question.withdraw', reason: 'x', at: 0 }),
    () => actor.send({ type: 'subagent.cancel', reason: 'x', at: 0 }),
    () => actor.stop(),
  ];
  for (const attempt of moves)
    try {
      attempt();
    } catch (error) {
      thrown.push(error);
    }
  return thrown;
}

const moved = (thrown: readonly unknown[]) =>
  expect(thrown).toEqual(Array.from({ length: 4 }, () => expect.objectContaining(READ_ONLY)));

describe('HOST-1: session.actor', () => {
  test('cannot be moved past the journal: close() still resolves', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    const before = talk.session.actor.getSnapshot();
    moved(move(talk.session.actor));
    expect(talk.session.actor.getSnapshot()).toBe(before);
    const closed = talk.session.close();
    await talk.environment.advance(10_000);
    await closed;
    expect(talk.session.actor.getSnapshot().value.connection).toBe('closed');
  });

  test('can be looked at: subscribe, waitFor, toPromise, and as JSON', async () => {
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
  });
});

test('HOST-1, VIEW-3: neither can any other actor, and all are one tree', async () => {
  const actors = new Map<string, AnyActorRef>();
  const environment = simulatedEnvironment();
  const runtime = createRuntime({
    environment,
    inspect: (event: InspectionEvent) => {
      if (event.type === '@xstate.actor')
        actors.set((event.actorRef as AnyActorRef).id, event.actorRef as AnyActorRef);
    },
  });
  const talk = textTalk({ environment, runtime, subagents: asking });
  await talk.start();
  await talk.type('use name');
  const { id } = talk.session;
  expect([...actors.keys()]).toEqual(
    expect.arrayContaining([id, 'interaction', 'outbox', 'turn', 'sub_1', 'question:sub_1.q1']),
  );
  const root = actors.get(id);
  for (const [name, actor] of actors) {
    moved(move(actor));
    expect(actor._parent).toBe(name === id ? undefined : root);
  }
  expect(talk.question()?.state).toBe('open');
  await talk.type('Ada');
  expect(talk.state().subagents[0]?.outcome?.text).toBe('Thanks.');
  await talk.close();
});

test('VIEW-2: the observers of a question complete when its session leaves, though it is open', async () => {
  const talk = textTalk({ subagents: asking });
  await talk.start();
  await talk.type('use name');
  const seen: string[] = [];
  const question = talk.session.actor.system.get('question:sub_1.q1') as AnyActorRef;
  question.subscribe({ complete: () => seen.push(String(question.getSnapshot().status)) });
  await Promise.all([talk.session.suspend(), talk.environment.advance(1000)]);
  expect(seen).toEqual(['stopped']);
});

describe('VIEW-3: the system of session.actor, without an inspector', () => {
  test('has the machines that are there, parked ones too, and follows them', async () => {
    const talk = textTalk({ subagents: asking });
    await talk.start();
    const { system } = talk.session.actor;
    expect(system.get('sub_1')).toBeUndefined();
    await talk.type('use name');
    const subagent = system.get('sub_1') as AnyActorRef;
    expect(system.get('sub_1')).toBe(subagent);
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
    moved(move(subagent));
    await talk.type('Ada');
    expect(seen).toEqual(expect.arrayContaining(['running', 'completed', '(over)']));
    expect(seen.at(-1)).toBe('(over)');
    expect(question.getSnapshot().value).toBe('answered');
    expect(system.get('sub_1')).toBeUndefined();
    await talk.close();
  });
});

test('VIEW-3: machines that begin before their session are shown after it, as its children', async () => {
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
