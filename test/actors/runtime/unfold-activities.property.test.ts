// The form of a machine that runs where nobody inspects is the machine itself: whatever
// happens, both are in the same state, and want the same.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyActorRef, AnyStateMachine } from 'xstate';
import {
  snapshotOf,
  sendHosted,
  startHosted,
  stopHosted,
  type Effect,
} from '../../../src/actors/runtime/hosting.ts';
import {
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
  /** What may happen to it, given its context; deadlines come by themselves. */
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

/** One form of a machine, and what it has under way. */
function form(
  machine: AnyStateMachine,
  input: object | undefined,
  isInspected: boolean,
  from?: { readonly actor: AnyActorRef },
) {
  let posted: Effect[] = [];
  const underWay = new Map<string, unknown>();
  const actor = startHosted(
    machine,
    input as never,
    { post: (effect) => posted.push(effect) },
    {
      id: 'm',
      ...(isInspected ? { inspect: () => {} } : {}),
      ...(from ? { snapshot: JSON.parse(JSON.stringify(snapshotOf(from.actor))) } : {}),
    },
  );
  return {
    actor,
    underWay,
    /** What was wanted since the last look. */
    wanted(): { done: unknown[]; underWay: unknown[] } {
      for (const effect of posted)
        if (effect.kind === 'start') underWay.set(effect.id, effect);
        else if (effect.kind === 'stop') underWay.delete(effect.id);
      const done = posted.filter(({ kind }) => kind === 'do');
      posted = [];
      return { done, underWay: [...underWay.values()] };
    },
  };
}

type Form = ReturnType<typeof form>;

function stateOf({ actor }: Form) {
  const { value, context, status, output, tags } = actor.getSnapshot();
  return { value, context, status, output, tags };
}

function deadlines({ underWay }: Form): Event[] {
  return [...underWay.values()].flatMap((started) => {
    const { name, input } = started as { name: string; input: { event: string; dueAt: number } };
    return name === 'deadline' ? { type: input.event, dueAt: input.dueAt } : [];
  });
}

describe.each(cases)('$name', ({ machine, input, events }) => {
  test('UNFOLD-ACTIVITIES-1, UNFOLD-ACTIVITIES-2: both forms go the same way, also after they were put to rest', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), fc.nat(40), (choices, restAt) => {
        let inspected = form(machine, input, true);
        let lean = form(machine, input, false);
        expect(lean.wanted()).toEqual(inspected.wanted());
        let at = 0;
        for (const [index, choice] of choices.entries()) {
          const { context, status } = stateOf(lean);
          if (status !== 'active') return;
          if (index === restAt) {
            const before = lean.underWay;
            const crossed = [
              form(machine, undefined, true, lean),
              form(machine, undefined, false, inspected),
            ];
            stopHosted(inspected.actor);
            stopHosted(lean.actor);
            [inspected, lean] = crossed as [Form, Form];
            expect(lean.wanted()).toEqual(inspected.wanted());
            expect(lean.underWay).toEqual(before);
          }
          const possible = [...events(context), ...deadlines(lean)];
          const event = { ...possible[choice % possible.length], at: (at += 7) };
          sendHosted(inspected.actor, event as never);
          sendHosted(lean.actor, event as never);
          expect(stateOf(lean)).toEqual(stateOf(inspected));
          expect(lean.wanted()).toEqual(inspected.wanted());
        }
      }),
      { numRuns: 300 },
    );
  });
});
