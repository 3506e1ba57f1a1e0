// The actors that apps and inspectors get hold of can be looked at, and not moved: what is not in
// the journal must not happen.

import { describe, expect, test } from 'vitest';
import { toPromise, waitFor, type AnyActorRef, type InspectionEvent } from 'xstate';
import { createRuntime } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

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

test('HOST-1: neither can any other actor that an inspector sees', async () => {
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
  const roots = [...actors].filter(([id]) => id.startsWith(talk.session.id));
  expect(roots.map(([id]) => id.replace(talk.session.id, ''))).toEqual(
    expect.arrayContaining(['', '/interaction', '/outbox', '/sub_1']),
  );
  for (const [, actor] of roots) moved(move(actor));
  for (const [, actor] of roots)
    for (const child of Object.values(
      (actor.getSnapshot() as { children: Record<string, AnyActorRef> }).children,
    )) {
      // What a machine waits for: nothing listens to what it is sent, and only a root can be stopped.
      child.send({ type: 'session.close' });
      expect(() => child.stop()).toThrow();
    }
  expect(talk.question()?.state).toBe('open');
  await talk.type('Ada');
  expect(talk.state().subagents[0]?.outcome?.text).toBe('Thanks.');
  await talk.close();
});
