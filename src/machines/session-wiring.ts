// Wires the machines of one session to each other: maps each effect of a machine to an event of another one.
// Pure, so that the model checker checks the composition that runs.
//
//   subagent ─ask─▶ question ⇄ interaction        question ⇄ outbox ⇄ session (gate)
//                                tool call ─deliver─▶ (batch ─tell─▶) outbox
//
// Owns:     the messages within a session.
// Does not: define the messages that leave it (to the lead agent, the subagents, screens).

import type { DeliveryMode, DeliveryPriority, HearingGrade, OutboxItem } from './outbox-queue.ts';
import { gateIsOpen, type SessionSnapshot } from './session-machine.ts';
import type { CallAnswer } from './tool-call-machine.ts';

/** A message for one machine: `session`, `interaction`, `outbox`, `question:<id>`, `call:<id>`, `batch:<id>`. */
export interface WiredMessage {
  readonly actor: string;
  readonly event: { readonly type: string } & Readonly<Record<string, unknown>>;
}

/** The params of all wired effects, together. */
interface WiredParams {
  readonly requestId: string;
  readonly deliveryId: string;
  readonly callId: string;
  readonly id: string;
  readonly epoch: number;
  readonly grade: HearingGrade;
  readonly answer: CallAnswer;
  readonly batchId: string;
  readonly deliveryIds: readonly string[];
  readonly places: number;
  readonly delivery: DeliveryMode;
}

/**
 * Returns the messages that an effect means within the session. `kind` is the part of the address before its
 * colon; `batchOf` returns the batch that the result of a call is told with, or null.
 */
export function wire(
  kind: string,
  effect: string,
  effectParams: unknown,
  batchOf: (callId: string) => string | null = () => null,
): readonly WiredMessage[] {
  const params = (effectParams ?? {}) as WiredParams;
  switch (`${kind}.${effect}`) {
    case 'question.present':
      return [to('outbox', { type: 'outbox.add', item: questionItem(params.requestId) })];
    case 'question.retract':
      return [to('outbox', { type: 'outbox.retract', deliveryId: params.requestId })];
    case 'question.release': {
      const { requestId: id, epoch } = params;
      return [to('interaction', { type: 'interaction.release', id, epoch })];
    }
    case 'interaction.grant':
      return [to(`question:${params.id}`, { type: 'question.granted', epoch: params.epoch })];
    case 'interaction.revoke':
      return [to(`question:${params.id}`, { type: 'question.withdraw', reason: 'revoked' })];
    case 'outbox.begun':
      return [to(`question:${params.deliveryId}`, { type: 'question.playing' })];
    case 'outbox.delivered':
      return [
        to(`question:${params.deliveryId}`, { type: 'question.heard' }),
        to(`call:${params.deliveryId}`, { type: 'delivery.settled' }),
        to(`batch:${params.deliveryId}`, { type: 'batch.told', grade: params.grade }),
      ];
    case 'outbox.dismissed':
      return [to(`call:${params.deliveryId}`, { type: 'delivery.settled' })];
    case 'call.deliver': {
      const batchId = batchOf(params.callId);
      return batchId === null
        ? [to('outbox', { type: 'outbox.add', item: resultItem(params.callId, params.delivery) })]
        : [to(`batch:${batchId}`, { type: 'batch.settled', callId: params.callId })];
    }
    case 'call.answer':
      return params.answer === 'pending' ? [] : leaving(params.callId, batchOf);
    // Its result will not come, or is told already: the reserved place is free.
    case 'call.known':
    case 'call.cancelSubagent':
      return [to('outbox', { type: 'outbox.unreserve' }), ...leaving(params.callId, batchOf)];
    case 'batch.tell':
      return [to('outbox', { type: 'outbox.add', item: resultItem(params.batchId) })];
    case 'batch.pass':
      return [to('outbox', { type: 'outbox.add', item: resultItem(params.callId) })];
    case 'batch.retract':
      return [to('outbox', { type: 'outbox.retract', deliveryId: params.batchId })];
    case 'batch.free':
      return Array.from({ length: params.places }, () =>
        to('outbox', { type: 'outbox.unreserve' }),
      );
    case 'batch.delivered':
    case 'batch.dismissed':
      return params.deliveryIds.map((id) => to(`call:${id}`, { type: 'delivery.settled' }));
    default:
      return [];
  }
}

/** The message by which a new question requests the floor. */
export function askingFor(requestId: string): WiredMessage {
  return to('interaction', { type: 'interaction.request', id: requestId });
}

/**
 * Returns the messages by which an event of the session reaches the other machines; `owner` is the question
 * that has the floor, `batch` the batch of the request that is being answered.
 */
export function shared(
  event: { readonly type: string },
  owner: string | null,
  batch: string | null = null,
): readonly WiredMessage[] {
  switch (event.type) {
    case 'client.attached':
    case 'client.detached':
      return [
        { actor: 'outbox', event },
        ...(owner === null ? [] : [{ actor: `question:${owner}`, event }]),
      ];
    // Clients and connections have gone with the process.
    case 'session.recovered': {
      const left = { type: 'client.detached' };
      return [
        to('outbox', left),
        ...(owner === null ? [] : [to(`question:${owner}`, left)]),
        ...(batch === null ? [] : [to(`batch:${batch}`, { type: 'batch.replied' })]),
      ];
    }
    case 'utterance.ended':
      return [{ actor: 'outbox', event }];
    case 'response.ended':
    case 'transport.lost':
    case 'transport.renewing':
    case 'transport.replaced':
      return batch === null ? [] : [to(`batch:${batch}`, { type: 'batch.replied' })];
    default:
      return [];
  }
}

/** Whether the outbox may speak, or may interrupt the model for an urgent item. */
export type Gate = 'open' | 'interruptible' | 'closed';

/** Derives the gate from the session's regions. `canInterrupt`: the transport can stop in mid-sentence. */
export function gateOf(session: SessionSnapshot, canInterrupt: boolean): Gate {
  if (gateIsOpen(session)) return 'open';
  // Without a client to hear the urgent item, it interrupts nothing.
  const { client, user, model, playout } = session.value;
  // While the model only waits for a tool there is nothing to interrupt.
  const isSpeaking = user === 'silent' && (model === 'generating' || playout === 'playing');
  return canInterrupt && isSpeaking && client === 'attached' ? 'interruptible' : 'closed';
}

export function gateMessage(gate: Gate): WiredMessage {
  return to(
    'outbox',
    gate === 'open'
      ? { type: 'gate.opened' }
      : { type: 'gate.closed', interruptible: gate === 'interruptible' },
  );
}

/** The item of a question. It goes before results: a subagent waits for its answer. */
export function questionItem(requestId: string): OutboxItem {
  return {
    deliveryId: requestId,
    kind: 'question',
    priority: 'high',
    replaces: null,
    reserved: false,
    expiresAt: null,
  };
}

/** The result of a background call, or of a batch; its place was reserved when the work was accepted. */
export function resultItem(deliveryId: string, delivery: DeliveryMode = 'when_idle'): OutboxItem {
  return {
    deliveryId,
    kind: 'result',
    priority: priorityOf(delivery),
    replaces: null,
    reserved: true,
    expiresAt: null,
    ...restOf(delivery),
  };
}

/** An item that interrupts is urgent. */
export function priorityOf(delivery: DeliveryMode): DeliveryPriority {
  return delivery === 'interrupt' ? 'urgent' : 'normal';
}

function restOf(delivery: DeliveryMode): Pick<OutboxItem, 'rests'> {
  if (delivery === 'silent') return { rests: 'always' };
  return delivery === 'skip_if_busy' ? { rests: 'if_busy' } : {};
}

function leaving(
  callId: string,
  batchOf: (callId: string) => string | null,
): readonly WiredMessage[] {
  const batchId = batchOf(callId);
  return batchId === null ? [] : [to(`batch:${batchId}`, { type: 'batch.left', callId })];
}

function to(actor: string, event: WiredMessage['event']): WiredMessage {
  return { actor, event };
}
