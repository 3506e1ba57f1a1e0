// Runs the machines in an app's actors: they end with an output, and XState's clock runs their deadlines.

import { createActor, setup, SimulatedClock, toPromise } from 'xstate';
import { expect, it, vi } from 'vitest';
import { questionMachine, toolCallMachine, withDeadlines } from '../../src/machines/index.ts';

const input = { requestId: 'r1', timeoutMs: 1000 };

function asked(machine = questionMachine, clock = new SimulatedClock()) {
  const actor = createActor(machine, { input: input, clock }).start();
  actor.send({ type: 'question.granted', epoch: 1, at: 0 });
  actor.send({ type: 'question.shown', startsClock: true, at: 0 });
  return { actor, clock };
}

it("withDeadlines sends a deadline's event when the system's clock reaches the deadline", async () => {
  const clock = new SimulatedClock();
  const { actor } = asked(
    withDeadlines(questionMachine, () => clock.now()),
    clock,
  );
  expect(actor.getSnapshot().value).toBe('open');
  clock.increment(999);
  expect(actor.getSnapshot().value).toBe('open');
  clock.increment(1);
  expect(actor.getSnapshot().value).toBe('expired');
  await expect(toPromise(actor)).resolves.toBe('expired');
});

it('withDeadlines drops the deadline of a state that the machine has left', () => {
  const clock = new SimulatedClock();
  const { actor } = asked(
    withDeadlines(questionMachine, () => clock.now()),
    clock,
  );
  const snapshots = vi.fn<() => void>();
  actor.send({ type: 'question.withdraw', reason: 'over', at: 1 });
  expect(actor.getSnapshot().value).toBe('withdrawn');
  actor.subscribe(snapshots);
  clock.increment(5000);
  expect(snapshots).not.toHaveBeenCalled();
});

it('withDeadlines leaves all other activities to the machine', () => {
  const begun: unknown[] = [];
  const ended: unknown[] = [];
  const own = toolCallMachine.provide({
    actions: {
      startActivity: (_, { name }) => void begun.push(name),
      stopActivity: (_, { name }) => void ended.push(name),
    },
  });
  const clock = new SimulatedClock();
  const actor = createActor(
    withDeadlines(own, () => clock.now()),
    {
      input: { callId: 'c1', timeoutMs: 500 },
      clock,
    },
  ).start();
  actor.send({ type: 'call.validated', execution: 'inline', acknowledge: false, at: 0 });
  expect(begun).toEqual(['execute']);
  clock.increment(500);
  expect(ended).toEqual(['execute']);
});

it('withDeadlines works in an invoked machine', async () => {
  const clock = new SimulatedClock();
  const app = setup({
    actors: { question: withDeadlines(questionMachine, () => clock.now()) },
  }).createMachine({
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'question',
          id: 'question',
          input: input,
          onDone: { target: 'over', guard: ({ event }) => event.output === 'expired' },
        },
      },
      over: { type: 'final' },
    },
  });
  const actor = createActor(app, { clock }).start();
  const question = actor.getSnapshot().children.question;
  question?.send({ type: 'question.granted', epoch: 1, at: 0 });
  question?.send({ type: 'question.shown', startsClock: true, at: 0 });
  clock.increment(1000);
  await toPromise(actor);
});

it('outputs a cancellation when the call is cancelled', async () => {
  const actor = createActor(toolCallMachine, { input: { callId: 'c1', timeoutMs: 500 } }).start();
  actor.send({ type: 'call.validated', execution: 'background', acknowledge: true, at: 0 });
  actor.send({ type: 'call.cancel', at: 1 });
  await expect(toPromise(actor)).resolves.toBe('cancelled');
});
