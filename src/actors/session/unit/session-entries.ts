// The entries that a session writes about itself, and the shapes of all events in its unit. These entries record that
// the session was opened or lost; lifecycle/session-journal.ts defines its snapshots.
//
// The first entry contains the initial inputs of the session's machines and records. A process that continues the
// session may have other options. With those, folding the same events would lead to a different state.

import { z } from 'zod';
import { DELIVERY_MODES, type OutboxInput, type SessionInput } from '../../../machines/index.ts';
import { budgetLimits } from '../../admission/budget.ts';
import type { BudgetLimits } from '../../contracts/config.ts';
import { noteSchema, type ConversationLimits } from '../../conversation/items.ts';
import { echoSchema } from '../../../values/echo.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import {
  amount,
  failure,
  flag,
  maybe,
  misshapen,
  outcome,
  table,
  text,
  type EventShapes,
} from '../../runtime/event-shapes.ts';
import { quarantinedIn, type UnfoldableEntry } from '../../runtime/quarantine.ts';
import { changedInput, delegationShape, mayDiffer } from '../../subagent/subagent-events.ts';
import { APPROVAL_SCOPES, MEANINGS, SETTLE_ACTIONS } from '../../contracts/records.ts';
import type { ConsolidationOptions } from '../state/batches.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';

/**
 * The version of the session's definition. Increase it when a machine changes, or when the meaning of its effects
 * changes. Entries of another version are not folded.
 */
export const SESSION_VERSION = 2;

export const OPENED = 'session.opened';

/**
 * The type of a session's last entry if the session was given up because it could not fold an entry (`onUnfoldable:
 * 'lose'`).
 */
export const LOST = 'session.lost';

export interface SessionInputs {
  readonly session: SessionInput;
  readonly outbox: OutboxInput;
  /** Whether the lead agent's speech can be stopped in mid-sentence. */
  readonly canInterrupt: boolean;
  /** The rules for reporting results together; null if each result is reported separately. @defaultValue null */
  readonly batches?: ConsolidationOptions | null;
  /**
   * The records' inputs in the process that started the session. Other processes may have other options.
   * @defaultValue unknown
   */
  readonly books?: {
    /** The first lead agent. */
    readonly agentName: string;
    readonly limits: Partial<ConversationLimits>;
    readonly promptStyle: PromptStyle;
    /** `maxConcurrentPerSession`. @defaultValue unknown */
    readonly runSlots?: number;
    /** The session's budget. @defaultValue none, or unknown */
    readonly budget?: BudgetLimits;
  };
}

/**
 * Builds the first entry of a session.
 * @param traceparent The W3C trace context of the request that opened the session.
 */
export function openedWith(
  inputs: SessionInputs,
  traceparent?: string,
): {
  readonly type: typeof OPENED;
  readonly inputs: unknown;
  readonly traceparent?: string;
} {
  return {
    type: OPENED,
    inputs: JSON.parse(JSON.stringify(inputs, infinityAsText)) as unknown,
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** The actor that the first entry belongs to. */
export const OPENING_ACTOR = 'opening';

/** Returns whether this entry is the first of a session. */
export function isOpening({ actor, event }: JournalEntry): boolean {
  return event.type === OPENED && actor === OPENING_ACTOR;
}

/** Returns the inputs from the journal's first entry, or null if that entry is missing. */
export function inputsIn(entries: readonly JournalEntry[]): SessionInputs | null {
  const [first] = entries;
  if (!first || !isOpening(first) || quarantinedIn(entries).has(first.seq)) return null;
  if (misshapen(first.event, SESSION_SHAPES)) return null;
  try {
    return inputsOf((first.event as ReturnType<typeof openedWith>).inputs);
  } catch {
    // The inputs are nested too deeply.
    return null;
  }
}

/** Restores the inputs from the form in which `openedWith` wrote them. */
export function inputsOf(inputs: unknown): SessionInputs {
  return JSON.parse(JSON.stringify(inputs), infinityFromText) as SessionInputs;
}

export function isSameInputs(one: SessionInputs, other: SessionInputs): boolean {
  return JSON.stringify(openedWith(one)) === JSON.stringify(openedWith(other));
}

// JSON has no number for infinity ("no limit").
const NO_LIMIT = 'Infinity';
const infinityAsText = (_key: string, value: unknown): unknown =>
  value === Infinity ? NO_LIMIT : value;
const infinityFromText = (_key: string, value: unknown): unknown =>
  value === NO_LIMIT ? Infinity : value;

/** Returns the event that ends a lost session. The next session with its id starts from the beginning. */
export function lostBy({ entry: { seq, event, reason } }: UnfoldableEntry): UnitEvent {
  const lost = { type: LOST, seq, event, reason };
  return lost;
}

const limit = z.union([amount, z.literal('Infinity')]);

/** The shape of the recorded inputs. */
const inputsShape = z.looseObject({
  session: z.looseObject({
    maxReconnects: limit,
    connectTimeoutMs: maybe(limit),
    transferTimeoutMs: maybe(limit),
    settleTimeoutMs: limit,
    closeGraceMs: limit,
    detachGraceMs: maybe(limit),
  }),
  outbox: z.looseObject({
    capacity: limit,
    quietMs: limit,
    answerMs: maybe(limit),
    offerTimeoutMs: limit,
    playTimeoutMs: limit,
    maxAttempts: limit,
  }),
  canInterrupt: flag,
  batches: maybe(
    z.looseObject({
      interactiveCeilingMs: limit,
      backgroundCeilingMs: limit,
      atCeiling: z.enum(['deliver', 'cancel']),
      graceMs: limit,
    }),
  ),
  books: maybe(
    z.looseObject({
      agentName: text,
      limits: z.record(z.string(), z.union([z.int().positive(), z.literal('Infinity')])),
      promptStyle: z.enum(['notice', 'turn']),
      runSlots: maybe(amount),
      budget: maybe(budgetLimits),
    }),
  ),
});

const option = z.looseObject({ id: text, label: text });

const action = z.looseObject({ toolName: text });

const asked = z.looseObject({
  requestId: text,
  subagentId: text,
  subagentName: text,
  kind: z.enum(['question', 'approval']),
  question: text,
  options: z.array(option),
  timeoutMs: amount,
  action: maybe(action),
  byButton: maybe(z.literal(true)),
  beside: maybe(z.literal(true)),
  mayDiffer: maybe(mayDiffer),
  returned: maybe(z.looseObject({ words: text, reason: text })),
});

const answer = z.looseObject({
  userResponse: text,
  optionId: maybe(text),
  approved: maybe(flag),
  changed: maybe(changedInput),
  lasts: maybe(z.enum(APPROVAL_SCOPES)),
});

const priority = z.enum(['normal', 'high', 'urgent']);

const item = z.looseObject({
  deliveryId: text,
  kind: z.enum(['result', 'question', 'notice', 'progress']),
  priority,
  replaces: maybe(text),
  reserved: flag,
  expiresAt: maybe(amount),
});

const attempt = z.looseObject({ generation: amount });

const delivery = z.looseObject({ deliveryId: text });

const ofCall = z.looseObject({ callId: text });

const deadline = z.looseObject({ dueAt: amount });

/** The shapes of events such as `deadline.execution`, which come from a deadline or from a call in the journal. */
const deadlines = Object.fromEntries(
  [
    'connect',
    'transfer',
    'reconnect',
    'settle',
    'detach',
    'close',
    'quiet',
    'offer',
    'play',
    'answer',
    'execution',
    'detachment',
    'ceiling',
    'grace',
    'client',
    'reading',
  ].map((name) => [`deadline.${name}`, deadline]),
);

const failedCall = z.looseObject({
  agentName: text,
  failed: amount,
  error: failure,
  tookMs: maybe(amount),
  model: maybe(z.looseObject({ provider: text, modelId: text })),
});

/** The shape of the records' `LeadTrouble`. */
const trouble = z.looseObject({
  failed: amount,
  code: text,
  attempts: maybe(amount),
  retryAt: maybe(amount),
});

const leadUsage = z.looseObject({
  inputTokens: maybe(amount),
  outputTokens: maybe(amount),
  cachedInputTokens: maybe(amount),
  cacheWriteTokens: maybe(amount),
  reasoningTokens: maybe(amount),
  audioInputTokens: maybe(amount),
  audioOutputTokens: maybe(amount),
  cost: maybe(amount),
});

/** A state's name, which is never empty. */
const name = z.string().min(1);

const machine = z.looseObject({
  value: z.union([name, z.record(z.string(), z.unknown())]),
  context: z.looseObject({}),
});

const member = z.looseObject({ id: text, state: machine });

const waiting = item.extend({ attempts: amount, resting: flag });

const machines = z.looseObject({
  session: machine.extend({
    value: z.record(z.string(), z.union([text, z.record(z.string(), text)])),
  }),
  interaction: machine.extend({
    value: text,
    context: z.looseObject({ owner: text.nullable(), queue: z.array(text), epoch: amount }),
  }),
  outbox: machine.extend({
    value: z.looseObject({ gate: name, slot: z.union([name, z.record(z.string(), name)]) }),
    context: z.looseObject({
      pending: z.array(waiting),
      current: waiting.nullable(),
      generation: amount,
      reserved: amount,
    }),
  }),
});

const schedule = z.looseObject({
  key: text,
  dueAt: amount,
  everyMs: maybe(amount),
  cron: maybe(text),
  timeZone: text,
  missed: z.enum(['once', 'all', 'skip']),
  say: maybe(text),
  task: maybe(z.looseObject({ subagent: text, task: text })),
});

const plannedStep = z.looseObject({ step: amount, by: text, dueAt: amount, afterMs: amount });

const snapshot = z.looseObject({
  inputs: inputsShape,
  unit: z.looseObject({
    machines,
    questions: z.array(member),
    calls: z.array(member),
    clientCalls: maybe(z.array(member)),
    schedules: maybe(z.array(member)),
    ways: maybe(z.array(member)),
    batches: z.looseObject({ members: z.array(member) }),
    placed: z.array(text),
  }),
  books: z.looseObject({
    agentName: text,
    requestId: maybe(text),
    turns: amount,
    usage: maybe(leadUsage),
    raised: maybe(budgetLimits),
    trouble: maybe(trouble),
    directives: z.array(z.looseObject({ key: text, value: text })),
    questions: z.array(asked.extend({ answer: maybe(answer) })),
    answered: maybe(z.array(asked.extend({ answer, answeredAt: amount }))),
    lasting: maybe(z.array(asked.extend({ answer, answeredAt: amount }))),
    calls: z.array(
      z.looseObject({ callId: text, name: text, arguments: text, outcome: maybe(outcome) }),
    ),
    clientCalls: maybe(z.array(z.looseObject({ id: text, name: text, user: maybe(text) }))),
    schedules: maybe(z.array(schedule)),
    deliveries: z.array(
      z.looseObject({ deliveryId: text, text, prompt: z.union([text, noteSchema]), label: text }),
    ),
  }),
  services: z.record(z.string(), z.looseObject({ seq: amount, machine, events: z.array(table) })),
  delegation: delegationShape,
});

export const SESSION_SHAPES: EventShapes = {
  ...deadlines,
  [OPENED]: z.looseObject({ inputs: inputsShape, traceparent: maybe(text) }),
  'session.snapshot': snapshot,
  'session.recovered': z.looseObject({ lastAt: maybe(amount) }),
  'transport.lost': z.looseObject({ error: failure, retryInMs: maybe(amount) }),
  'transfer.requested': z.looseObject({ transferId: text, to: text, enters: maybe(flag) }),
  'transfer.started': z.looseObject({ transferId: text, to: text, enters: maybe(flag) }),
  'transfer.ended': z.looseObject({ transferId: text, error: maybe(failure) }),
  'agent.entered': z.looseObject({ agentName: text }),
  'directive.set': z.looseObject({
    key: text,
    value: maybe(text),
    scope: z.enum(['session', 'agent']),
  }),
  'user.said': z.looseObject({
    utteranceId: text,
    text,
    channel: z.enum(['speech', 'typing']),
    startedAt: amount,
    language: maybe(text),
    putsOff: maybe(text),
    traceparent: maybe(text),
  }),
  'budget.raised': z.looseObject({ limits: budgetLimits, by: maybe(text) }),
  'model.retried': failedCall.extend({ attempts: amount, retryAt: amount }),
  'model.failed': failedCall,
  'usage.reported': z.looseObject({
    agentName: text,
    usage: leadUsage,
    beganAt: maybe(amount),
    tookMs: maybe(amount),
  }),
  'answer.given': z.looseObject({
    ticket: text,
    requestId: text,
    optionId: maybe(text),
    text: maybe(text),
    approved: maybe(flag),
    changed: maybe(changedInput),
    lasts: maybe(z.enum(APPROVAL_SCOPES)),
    onlyOpen: maybe(flag),
  }),
  'question.settled': z.looseObject({
    callId: text,
    utteranceId: text,
    requestId: text,
    action: z.enum(SETTLE_ACTIONS),
    optionId: maybe(text),
    text: maybe(text),
    proposed: maybe(
      z.looseObject({
        changed: changedInput,
        lasts: maybe(z.enum(APPROVAL_SCOPES)),
        question: text,
        alone: maybe(text),
        byButton: maybe(z.literal(true)),
      }),
    ),
    quote: text,
    refused: maybe(text),
    readsBack: maybe(flag),
  }),
  'question.asked': asked,
  'question.answer': z.looseObject({
    channel: z.enum(['speech', 'typing', 'button']),
    utteranceStartedAt: maybe(amount),
    decisive: flag,
    answer: maybe(answer),
  }),
  'question.withdraw': z.looseObject({ reason: text }),
  'reading.begun': z.looseObject({
    utteranceId: text,
    channel: z.enum(['speech', 'typing']),
    startedAt: amount,
  }),
  'reading.ended': z.looseObject({
    utteranceId: text,
    gives: z.enum(['consent', 'answer', 'again', 'nothing']),
    change: maybe(amount),
    read: z.looseObject({
      means: z.enum(MEANINGS).nullable(),
      optionId: maybe(text),
      tookMs: amount,
    }),
    reading: maybe(z.looseObject({ to: text })),
  }),
  'conversation.noted': z.looseObject({
    itemId: text,
    role: z.enum(['system', 'user']),
    text,
    saidAt: amount,
    note: maybe(noteSchema),
  }),
  'assistant.said': z.looseObject({
    itemId: text,
    text,
    saidAt: amount,
    before: maybe(text),
    after: maybe(text),
    repliesTo: maybe(text.nullable()),
    echo: maybe(echoSchema),
  }),
  'assistant.cut': z.looseObject({
    itemId: text,
    text,
    audioHeardMs: amount,
    saidAt: maybe(amount),
    before: maybe(text),
    repliesTo: maybe(text.nullable()),
  }),
  'conversation.summarised': z.looseObject({ summary: text, covers: z.array(text) }),
  'tool.called': z.looseObject({
    callId: text,
    name: text,
    arguments: text,
    calledAt: maybe(amount),
    agentName: maybe(text),
    requestId: maybe(text),
    repliesTo: maybe(text.nullable()),
    isFollowed: maybe(flag),
    responseId: maybe(text),
    after: maybe(text),
    echo: maybe(echoSchema),
    timeoutMs: maybe(amount),
    isConsolidated: maybe(flag),
  }),
  'call.answered': z.looseObject({
    callId: text,
    answeredAt: amount,
    isOver: flag,
    wantsReply: maybe(flag),
  }),
  'call.validated': z.looseObject({
    execution: z.enum(['inline', 'background']),
    acknowledge: flag,
    message: maybe(text),
    delivery: maybe(z.enum(DELIVERY_MODES)),
    detach: maybe(z.looseObject({ afterMs: maybe(amount), wordsMs: maybe(amount) })),
  }),
  'client.called': z.looseObject({
    id: text,
    callId: text,
    name: text,
    subagentId: maybe(text),
    user: maybe(text),
    timeoutMs: amount,
    absent: z.enum(['wait', 'fail']),
    idempotent: flag,
  }),
  'schedule.set': z.looseObject({ schedule }),
  'schedule.moved': deadline.extend({ isTask: flag }),
  'schedule.started': deadline,
  'deadline.schedule': deadline.extend({ next: maybe(amount), late: maybe(text) }),
  'reach.planned': plannedStep.extend({ deliveryId: text, since: amount, isQuestion: flag }),
  'deadline.reach': deadline.extend({ until: maybe(amount) }),
  'reach.ended': z.looseObject({
    attempt: amount,
    receipt: z.enum(['failed', 'sent', 'delivered', 'read']),
    error: maybe(text),
    next: plannedStep.nullable(),
  }),
  'reach.reported': z.looseObject({ step: amount, receipt: z.enum(['delivered', 'read']) }),
  'client.claimed': z.looseObject({ by: text }),
  'client.left': z.looseObject({ by: maybe(text) }),
  'client.answered': z.looseObject({ by: text, failed: maybe(flag) }),
  'call.invalid': z.looseObject({ error: maybe(failure) }),
  'subagent.accepted': z.looseObject({ subagentId: text }),
  'subagent.rejected': z.looseObject({ error: maybe(failure) }),
  'subagent.ended': z.looseObject({ outcome }),
  'notice.posted': z.looseObject({
    deliveryId: text,
    kind: z.enum(['result', 'notice', 'progress']),
    priority,
    label: text,
    text,
    prompt: z.union([text, noteSchema]),
    subagentId: maybe(text),
    ttlMs: maybe(amount),
    reserved: flag,
    replaces: maybe(text),
    result: maybe(z.looseObject({ toolName: text, text, notes: z.array(text) })),
  }),
  'result.expected': z.looseObject({ deliveryId: text, requestId: text }),
  'result.told': delivery,
  'invocation.wanted': z.looseObject({ eventId: text }),
  'outbox.add': z.looseObject({ item }),
  'outbox.retract': delivery,
  'outbox.outdate': delivery,
  'delivery.shown': delivery,
  'delivery.dismissed': delivery,
  'delivery.read': delivery,
  'delivery.unread': delivery,
  'delivery.playing': attempt,
  'delivery.interrupted': attempt.extend({ begun: maybe(flag) }),
  'delivery.failed': attempt,
  'delivery.heard': z.looseObject({ generation: amount, grade: z.enum(['played', 'assumed']) }),
  'batch.joined': ofCall,
  'batch.left': ofCall,
  'batch.settled': ofCall,
  'batch.asking': ofCall,
  'batch.resumed': ofCall,
};
