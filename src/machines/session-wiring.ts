// Connects the machines of one session by mapping each effect of a machine to an event of another machine. The mapping
// is pure, so the model checker checks the mapping that is used in production.
//
//   subagent ─ask─▶ question ⇄ interaction        question ⇄ outbox ⇄ session (gate)
//                                tool call ─deliver─▶ (batch ─tell─▶) outbox
//
// Owns:     the messages within a session.
// Does not: define the messages that leave the session (to the lead agent, the subagents or screens).

import type { BatchEffects, BatchEvent } from './batch-machine.ts';
import type { ClientCallEvent } from './client-call-machine.ts';
import type { MessageIn, Prefixed, Unstamped } from './effect.ts';
import type { InteractionEffects, InteractionEvent } from './interaction-machine.ts';
import type {
  DeliveryMode,
  DeliveryPriority,
  OutboxEffects,
  OutboxEvent,
  OutboxItem,
} from './outbox-setup.ts';
import type { QuestionEffects, QuestionEvent } from './question-machine.ts';
import type { ReachEffects, ReachEvent } from './reach-machine.ts';
import type { ScheduleEvent } from './schedule-machine.ts';
import {
  gateIsOpen,
  type SessionEffects,
  type SessionMachineEvent,
  type SessionSnapshot,
} from './session-machine.ts';
import type { ToolCallEffects, ToolCallEvent } from './tool-call-machine.ts';

/** The address of each machine in a session, and the events that the machine accepts. */
export interface MachineProtocol {
  readonly session: Unstamped<SessionMachineEvent>;
  readonly interaction: Unstamped<InteractionEvent>;
  readonly outbox: Unstamped<OutboxEvent>;
  readonly [question: `question:${string}`]: Unstamped<QuestionEvent>;
  readonly [call: `call:${string}`]: Unstamped<ToolCallEvent>;
  readonly [batch: `batch:${string}`]: Unstamped<BatchEvent>;
  readonly [client: `client:${string}`]: Unstamped<ClientCallEvent>;
  readonly [schedule: `schedule:${string}`]: Unstamped<ScheduleEvent>;
  readonly [reach: `reach:${string}`]: Unstamped<ReachEvent>;
}

type Named<E, Type extends string> = Extract<E, { readonly type: Type }>;

/** The events that these machines send to each other. */
interface WiredProtocol {
  /** The requests, releases and withdrawals of questions. */
  readonly interaction: MachineProtocol['interaction'];
  /** The items to deliver, and the reports about earlier ones. */
  readonly outbox: MachineProtocol['outbox'];
  readonly [question: `question:${string}`]: Named<
    MachineProtocol[`question:${string}`],
    | 'question.granted'
    | 'question.opened'
    | 'question.playing'
    | 'question.heard'
    | 'question.withdraw'
    | 'reply.ended'
    | 'client.attached'
    | 'client.detached'
  >;
  readonly [call: `call:${string}`]: Named<
    MachineProtocol[`call:${string}`],
    'delivery.settled' | 'call.placed'
  >;
  readonly [batch: `batch:${string}`]: Named<
    MachineProtocol[`batch:${string}`],
    'batch.left' | 'batch.settled' | 'batch.replied' | 'batch.told'
  >;
  readonly [reach: `reach:${string}`]: Named<
    MachineProtocol[`reach:${string}`],
    'reach.claimed' | 'reach.heard' | 'reach.over'
  >;
}

/** A message from one machine to another in the same session. */
export type WiredMessage = MessageIn<WiredProtocol>;

/**
 * The effects of each of these machines, with their params. The kind of a machine, which is the part of its address
 * before the colon.
 */
export type MachineEffects = Prefixed<'session', SessionEffects> &
  Prefixed<'interaction', InteractionEffects> &
  Prefixed<'outbox', OutboxEffects> &
  Prefixed<'question', QuestionEffects> &
  Prefixed<'call', ToolCallEffects> &
  Prefixed<'reach', ReachEffects> &
  Prefixed<'batch', BatchEffects>;

/** Returns the batch in which a call's result is reported; null if there is none. */
type BatchOf = (callId: string) => string | null;

/** Returns whether the outbox has a free place. */
type HasRoom = () => boolean;

/** The messages that each effect sends within the session. */
const wiring = {
  'question.present': ({ requestId }) => [
    { actor: 'outbox', event: { type: 'outbox.add', item: questionItem(requestId) } },
  ],
  'question.retract': ({ requestId: deliveryId }) => [
    { actor: 'outbox', event: { type: 'outbox.retract', deliveryId } },
  ],
  'question.reply': ({ requestId }) => [wayOver(requestId)],
  'question.release': ({ requestId: id, epoch }) => [
    { actor: 'interaction', event: { type: 'interaction.release', id, epoch } },
  ],
  'interaction.grant': ({ id, epoch }) => [
    { actor: `question:${id}`, event: { type: 'question.granted', epoch } },
  ],
  'interaction.revoke': ({ id }) => [
    { actor: `question:${id}`, event: { type: 'question.withdraw', reason: 'revoked' } },
  ],
  'outbox.begun': ({ deliveryId }) => [
    { actor: `question:${deliveryId}`, event: { type: 'question.playing' } },
  ],
  'outbox.delivered': ({ deliveryId, grade, heardAt }) => [
    {
      actor: `question:${deliveryId}`,
      event: { type: 'question.heard', ...(heardAt !== undefined && { heardAt }) },
    },
    { actor: `call:${deliveryId}`, event: { type: 'delivery.settled' } },
    { actor: `batch:${deliveryId}`, event: { type: 'batch.told', grade } },
    { actor: `reach:${deliveryId}`, event: { type: 'reach.heard' } },
  ],
  'outbox.dismissed': ({ deliveryId }) => [
    { actor: `call:${deliveryId}`, event: { type: 'delivery.settled' } },
    wayOver(deliveryId),
  ],
  'outbox.dropped': ({ deliveryIds }) => deliveryIds.map(wayOver),
  'outbox.claimed': ({ deliveryId }) => [
    { actor: `reach:${deliveryId}`, event: { type: 'reach.claimed' } },
  ],
  'reach.claim': ({ deliveryId }) => [
    { actor: 'outbox', event: { type: 'outbox.claim', deliveryId } },
  ],
  'reach.unclaim': ({ deliveryId }) => [
    { actor: 'outbox', event: { type: 'outbox.unclaim', deliveryId } },
  ],
  'reach.read': ({ deliveryId }) => [
    { actor: 'outbox', event: { type: 'delivery.shown', deliveryId, grade: 'read' } },
  ],
  'call.reserve': ({ callId }, _batchOf, hasRoom) => {
    const granted = hasRoom();
    const placed = { actor: `call:${callId}`, event: { type: 'call.placed', granted } } as const;
    return granted ? [{ actor: 'outbox', event: { type: 'outbox.reserve' } }, placed] : [placed];
  },
  'call.deliver': ({ callId, delivery }, batchOf) => {
    const batchId = batchOf(callId);
    return batchId === null
      ? [{ actor: 'outbox', event: { type: 'outbox.add', item: resultItem(callId, delivery) } }]
      : [{ actor: `batch:${batchId}`, event: { type: 'batch.settled', callId } }];
  },
  'call.answer': ({ callId, answer }, batchOf) =>
    answer === 'pending' ? [] : leaving(callId, batchOf),
  // The call will have no result, or its result has already been reported, so its reserved place is released.
  'call.known': ({ callId }, batchOf) => [UNRESERVE, ...leaving(callId, batchOf)],
  'call.cancelSubagent': ({ callId }, batchOf) => [UNRESERVE, ...leaving(callId, batchOf)],
  'batch.tell': ({ batchId }) => [
    { actor: 'outbox', event: { type: 'outbox.add', item: resultItem(batchId) } },
  ],
  'batch.pass': ({ callId }) => [
    { actor: 'outbox', event: { type: 'outbox.add', item: resultItem(callId) } },
  ],
  'batch.passRead': ({ callId, reserved }) => [
    {
      actor: 'outbox',
      event: { type: 'outbox.add', item: { ...resultItem(callId), reserved, read: true } },
    },
  ],
  'batch.retract': ({ batchId: deliveryId }) => [
    { actor: 'outbox', event: { type: 'outbox.retract', deliveryId } },
    wayOver(deliveryId),
  ],
  'batch.free': ({ places }) => Array.from({ length: places }, () => UNRESERVE),
  'batch.delivered': ({ deliveryIds }) => deliveryIds.map(settled),
  'batch.dismissed': ({ deliveryIds }) => deliveryIds.map(settled),
} satisfies {
  readonly [Name in keyof MachineEffects]?: (
    params: MachineEffects[Name],
    batchOf: BatchOf,
    hasRoom: HasRoom,
  ) => readonly WiredMessage[];
};

const UNRESERVE: WiredMessage = { actor: 'outbox', event: { type: 'outbox.unreserve' } };

/** The effects that send messages within the session. Some of them also act outside the session. */
export type WiredEffect = keyof typeof wiring;

/**
 * Returns the messages that an effect sends within the session. `kind` is the part of the address before the colon;
 * `batchOf` returns the batch in which a call's result is reported, or null; `hasRoom` returns whether the outbox has a
 * free place.
 */
export function wire(
  kind: string,
  effect: string,
  params: unknown,
  batchOf: BatchOf = () => null,
  hasRoom: HasRoom = () => true,
): readonly WiredMessage[] {
  const name = `${kind}.${effect}`;
  return isWired(name) ? (wiring[name] as Wire)(params, batchOf, hasRoom) : [];
}

type Wire = (params: unknown, batchOf: BatchOf, hasRoom: HasRoom) => readonly WiredMessage[];

/** Returns whether this effect sends messages within the session. */
export function isWired(name: string): name is WiredEffect {
  return Object.hasOwn(wiring, name);
}

/** Returns the message with which a new question requests the floor, or which opens the question beside the floor. */
export function askingFor(requestId: string, beside = false): WiredMessage {
  if (beside) return { actor: `question:${requestId}`, event: { type: 'question.opened' } };
  return { actor: 'interaction', event: { type: 'interaction.request', id: requestId } };
}

/**
 * Returns the messages that pass an event of the session on to the other machines. `owner` is the question that has the
 * floor, `batch` is the batch of the request that is being answered, and `beside` are the questions beside the floor.
 */
export function shared(
  event: SessionMachineEvent,
  owner: string | null,
  batch: string | null = null,
  beside: readonly string[] = [],
): readonly WiredMessage[] {
  const replied: readonly WiredMessage[] =
    batch === null ? [] : [{ actor: `batch:${batch}`, event: { type: 'batch.replied' } }];
  const { type } = event;
  if (type === 'client.attached' || type === 'client.detached') return presence(type, owner);
  // The clients and connections ended when the process ended.
  if (type === 'session.recovered') return [...presence('client.detached', owner), ...replied];
  if (type === 'utterance.ended') return [{ actor: 'outbox', event: { type } }];
  if (!ENDS_REPLY.has(type)) return [];
  const asked = owner === null ? beside : [owner, ...beside];
  return [
    ...replied,
    ...asked.map((id) => ({ actor: `question:${id}`, event: { type: 'reply.ended' } }) as const),
  ];
}

/**
 * These events end the lead agent's reply. No more calls join its batch. Deliveries that are waiting for the end of the
 * reply are spoken.
 */
const ENDS_REPLY: ReadonlySet<SessionMachineEvent['type']> = new Set([
  'response.ended',
  'transport.lost',
  'transport.renewing',
  'transport.replaced',
] as const);

function presence(
  type: 'client.attached' | 'client.detached',
  owner: string | null,
): readonly WiredMessage[] {
  const outbox: WiredMessage = { actor: 'outbox', event: { type } };
  return owner === null ? [outbox] : [outbox, { actor: `question:${owner}`, event: { type } }];
}

/** Whether the outbox may speak. If not, whether it may interrupt the model for an urgent item. */
export type Gate = 'open' | 'interruptible' | 'closed';

/** Derives the state of the gate from the session's regions. `canInterrupt`: the transport can stop in mid-sentence. */
export function gateOf(session: SessionSnapshot, canInterrupt: boolean): Gate {
  if (gateIsOpen(session)) return 'open';
  // An urgent item does not interrupt if no client could hear it.
  const { client, user, model, playout } = session.value;
  // While the model is only waiting for a tool, there is nothing to interrupt.
  const isSpeaking = user === 'silent' && (model === 'generating' || playout === 'playing');
  return canInterrupt && isSpeaking && client === 'attached' ? 'interruptible' : 'closed';
}

/** Returns the message that informs the outbox of the state of its gate. */
export function gateMessage(gate: Gate): WiredMessage {
  return {
    actor: 'outbox',
    event:
      gate === 'open'
        ? { type: 'gate.opened' }
        : { type: 'gate.closed', interruptible: gate === 'interruptible' },
  };
}

/** Returns the outbox item for a question. The item precedes results, because a subagent is waiting for the answer. */
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

/** Returns the outbox item for a result or a batch. Its place was reserved when the work was accepted. */
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

/** An item that may interrupt is urgent. */
export function priorityOf(delivery: DeliveryMode): DeliveryPriority {
  return delivery === 'interrupt' ? 'urgent' : 'normal';
}

function restOf(delivery: DeliveryMode): Pick<OutboxItem, 'rests'> {
  if (delivery === 'silent') return { rests: 'always' };
  return delivery === 'skip_if_busy' ? { rests: 'if_busy' } : {};
}

function leaving(callId: string, batchOf: BatchOf): readonly WiredMessage[] {
  const batchId = batchOf(callId);
  return batchId === null
    ? []
    : [{ actor: `batch:${batchId}`, event: { type: 'batch.left', callId } }];
}

/** Returns the message that stops the channels from sending a delivery. */
function wayOver(deliveryId: string): WiredMessage {
  return { actor: `reach:${deliveryId}`, event: { type: 'reach.over' } };
}

function settled(callId: string): WiredMessage {
  return { actor: `call:${callId}`, event: { type: 'delivery.settled' } };
}
