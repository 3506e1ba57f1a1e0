// A hosted machine takes the same steps as a live XState actor for all events, even after it has been stored and
// restored.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createActor, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate';
import { hosted } from '../../support/hosted.ts';
import { activitiesOf, plain, type Effect } from '../../../src/actors/runtime/hosting.ts';
import {
  isEffect,
  outboxMachine,
  questionMachine,
  sessionMachine,
  subagentMachine,
  toolCallMachine,
} from '../../../src/machines/index.ts';

type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

interface Case {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly input: object;
  /** Returns the possible events in this context; deadlines fire on their own. */
  events(context: Record<string, unknown>): readonly Event[];
}

const error = { code: 'BROKEN', message: 'It broke', retryable: true };
const item = (deliveryId: string, kind: string, priority: string) => ({
  type: 'outbox.add',
  item: { deliveryId, kind, priority, replaces: null, reserved: false, expiresAt: null },
});

const cases: readonly Case[] = [
  {
    name: 'subagent',
    machine: subagentMachine,
    input: { id: 's', at: 0, maxSteps: 3, timeoutMs: 1000, maxInputRetries: 2 },
    events: ({ step, asked, calls }) => [
      { type: 'subagent.prepared' },
      { type: 'subagent.unprepared', error },
      { type: 'slot.granted' },
      { type: 'model.responded', step, calls: [{ callId: 'a', kind: 'tool' }] },
      {
        type: 'model.responded',
        step,
        calls: [
          { callId: 'a', kind: 'approval' },
          { callId: 'b', kind: 'question' },
          { callId: 'c', kind: 'tool' },
        ],
      },
      {
        type: 'model.responded',
        step,
        calls: [
          { callId: 'd', kind: 'delegation' },
          { callId: 'i', kind: 'input' },
          { callId: 'z', kind: 'completion' },
        ],
      },
      { type: 'model.responded', step, calls: [] },
      { type: 'subagent.message', messageId: 'm', mode: 'queue' },
      { type: 'subagent.message', messageId: 'm', mode: 'steer' },
      { type: 'subagent.message', messageId: 'm', mode: 'interrupt' },
      { type: 'budget.exhausted', graceful: true, message: 'Too many tokens' },
      { type: 'budget.exhausted', graceful: false, message: 'Too late' },
      { type: 'model.failed', step, error },
      ...(calls as { callId: string }[]).map(({ callId }) => ({
        type: 'tool.settled',
        step,
        callId,
      })),
      { type: 'question.answered', requestId: `s.q${String(asked)}`, approved: true },
      { type: 'question.expired', requestId: `s.q${String(asked)}` },
      { type: 'question.withdrawn', requestId: `s.q${String(asked)}` },
      { type: 'subagent.cancel', reason: 'enough' },
    ],
  },
  {
    name: 'question',
    machine: questionMachine,
    input: { requestId: 'q', timeoutMs: 1000 },
    events: () => [
      { type: 'question.granted', epoch: 1 },
      { type: 'question.shown', startsClock: true },
      { type: 'question.shown', startsClock: false },
      { type: 'question.playing' },
      { type: 'question.heard' },
      { type: 'question.answer', channel: 'button', utteranceStartedAt: null, decisive: true },
      { type: 'question.withdraw', reason: 'cancelled' },
      { type: 'client.attached' },
      { type: 'client.detached' },
    ],
  },
  {
    name: 'tool call',
    machine: toolCallMachine,
    input: { callId: 'c', timeoutMs: 1000 },
    events: () => [
      { type: 'call.validated', execution: 'inline', acknowledge: false },
      { type: 'call.validated', execution: 'background', acknowledge: true },
      { type: 'call.invalid' },
      { type: 'call.executed' },
      { type: 'subagent.accepted' },
      { type: 'subagent.rejected' },
      { type: 'subagent.ended' },
      { type: 'delivery.settled' },
      { type: 'call.cancel' },
    ],
  },
  {
    name: 'outbox',
    machine: outboxMachine,
    input: {
      capacity: 5,
      quietMs: 10,
      offerTimeoutMs: 100,
      playTimeoutMs: 1000,
      maxAttempts: 2,
    },
    events: ({ generation }) => [
      item('result', 'result', 'normal'),
      item('urgent', 'notice', 'urgent'),
      item('question', 'question', 'high'),
      { type: 'gate.opened' },
      { type: 'gate.closed', interruptible: true },
      { type: 'delivery.playing', generation },
      { type: 'delivery.heard', generation, grade: 'played' },
      { type: 'delivery.interrupted', generation },
      { type: 'delivery.failed', generation },
      { type: 'delivery.shown', deliveryId: 'result' },
      { type: 'outbox.retract', deliveryId: 'question' },
      { type: 'client.attached' },
      { type: 'client.detached' },
      { type: 'utterance.ended' },
    ],
  },
  {
    name: 'session',
    machine: sessionMachine,
    input: { maxReconnects: 2, settleTimeoutMs: 100, closeGraceMs: 1000, detachGraceMs: 500 },
    events: () => [
      { type: 'session.start' },
      { type: 'session.close' },
      { type: 'transport.ready' },
      { type: 'transport.lost', error, retryInMs: 10 },
      { type: 'transport.lost', error, retryInMs: null },
      { type: 'subagents.ended' },
      { type: 'client.attached' },
      { type: 'client.detached' },
      { type: 'utterance.started' },
      { type: 'utterance.ended' },
      { type: 'utterance.settled' },
      { type: 'response.requested' },
      { type: 'response.ended' },
      { type: 'playout.started' },
      { type: 'playout.drained' },
    ],
  },
];

/** Returns a live actor, and its effects as a host posts them. */
function liveActor(machine: AnyStateMachine, input: object) {
  const posted: Effect[] = [];
  const actions: Record<string, unknown> = {};
  for (const [name, action] of Object.entries(machine.implementations.actions))
    if (isEffect(action))
      actions[name] = (_: unknown, params: object) =>
        posted.push(
          name === 'startActivity'
            ? ({ kind: 'start', ...params } as Effect)
            : name === 'stopActivity'
              ? ({ kind: 'stop', ...params } as Effect)
              : { kind: 'do', name, params },
        );
  const actor = createActor(machine.provide({ actions } as never), { input } as never).start();
  return { actor, effects: () => posted.splice(0) };
}

function posting(machine: AnyStateMachine, from: Parameters<typeof hosted>[1]) {
  const posted: Effect[] = [];
  const host = hosted(machine, from, (effect) => posted.push(effect));
  return { host, effects: () => posted.splice(0) };
}

function stateOf(snapshot: AnyMachineSnapshot) {
  const { value, context, status, output, tags } = snapshot;
  return { value, context, status, output, tags };
}

function deadlines(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): Event[] {
  return activitiesOf(machine, snapshot as never).flatMap(({ name, input }) => {
    const { event, dueAt } = input as { event: string; dueAt: number };
    return name === 'deadline' ? { type: event, dueAt } : [];
  });
}

describe.each(cases)('$name', ({ machine, input, events }) => {
  test('HOST-2, HOST-3: has the same effects as a live actor, even after being stored and restored', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), fc.nat(40), (choices, storedAt) => {
        const live = liveActor(machine, input);
        let here = posting(machine, { input: input as never });
        const running = new Map<string, unknown>();
        const follow = (): void => {
          const effects = here.effects();
          expect(effects).toEqual(live.effects());
          for (const effect of effects)
            if (effect.kind === 'start') running.set(effect.id, effect);
            else if (effect.kind === 'stop') running.delete(effect.id);
        };
        follow();
        let at = 0;
        for (const [index, choice] of choices.entries()) {
          const snapshot = here.host.snapshot as AnyMachineSnapshot;
          if (snapshot.status !== 'active') return;
          const due = activitiesOf(machine, snapshot as never);
          expect(new Set(due.map((activity) => ({ kind: 'start', ...activity })))).toEqual(
            new Set(running.values()),
          );
          if (index === storedAt) {
            here = posting(machine, { snapshot: JSON.parse(JSON.stringify(plain(snapshot))) });
            expect(here.effects()).toEqual([]);
          }
          const possible = [...events(snapshot.context), ...deadlines(machine, snapshot)];
          const event = { ...possible[choice % possible.length], at: (at += 7) } as never;
          expect(here.host.accepts(event)).toBe(live.actor.getSnapshot().can(event));
          here.host.send(event);
          live.actor.send(event);
          expect(stateOf(here.host.snapshot as AnyMachineSnapshot)).toEqual(
            stateOf(live.actor.getSnapshot()),
          );
          follow();
        }
      }),
      { numRuns: 300 },
    );
  });

  test("uses a state's exit actions to stop every activity that its entry actions started", () => {
    const nodes = [machine.root];
    for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
      const ids = (actions: typeof node.entry, type: string) =>
        actions.flatMap((action) => {
          if (typeof action !== 'object' || action.type !== type) return [];
          const { params } = action as { params: unknown };
          const { context } = posting(machine, { input: input as never }).host
            .snapshot as AnyMachineSnapshot;
          const of = typeof params === 'function' ? params({ context, event: {} }) : params;
          return (of as { readonly name: string; readonly id: string }).id;
        });
      expect(ids(node.entry, 'startActivity')).toEqual(ids(node.exit, 'stopActivity'));
      expect(node.invoke).toEqual([]);
      nodes.push(...Object.values(node.states));
    }
  });
});
