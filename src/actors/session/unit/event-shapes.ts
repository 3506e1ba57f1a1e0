// The shapes of the events of a session's unit (runtime/event-shapes.ts): the events of clients, models and
// transports (records.ts, machines/*), and those that the session writes about itself.

import { noteSchema } from '../../conversation/items.ts';
import { z } from 'zod';
import { DELIVERY_MODES } from '../../../machines/index.ts';
import {
  amount,
  failure,
  flag,
  maybe,
  outcome,
  table,
  text,
  type EventShapes,
} from '../../runtime/event-shapes.ts';
import { delegationShape } from '../../subagent/event-shapes.ts';
import { inputsShape, OPENED } from './session-inputs.ts';

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
});

const answer = z.looseObject({ userResponse: text, optionId: maybe(text), approved: maybe(flag) });

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
/** `deadline.execution` and similar events come from a deadline, or from a call that its journal knows. */
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
    'ceiling',
    'grace',
  ].map((name) => [`deadline.${name}`, deadline]),
);

/** The name of a state: an empty name is none. */
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

const snapshot = z.looseObject({
  inputs: inputsShape,
  unit: z.looseObject({
    machines,
    questions: z.array(member),
    calls: z.array(member),
    batches: z.looseObject({ members: z.array(member) }),
    placed: z.array(text),
  }),
  books: z.looseObject({
    agentName: text,
    requestId: maybe(text),
    turns: amount,
    directives: z.array(z.looseObject({ key: text, value: text })),
    questions: z.array(asked.extend({ answer: maybe(answer) })),
    calls: z.array(
      z.looseObject({ callId: text, name: text, arguments: text, outcome: maybe(outcome) }),
    ),
    deliveries: z.array(
      z.looseObject({ deliveryId: text, text, prompt: z.union([text, noteSchema]), label: text }),
    ),
  }),
  services: z.record(z.string(), z.looseObject({ seq: amount, machine, events: z.array(table) })),
  delegation: delegationShape,
});

export const SESSION_SHAPES: EventShapes = {
  ...deadlines,
  [OPENED]: z.looseObject({ inputs: inputsShape }),
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
  }),
  'answer.given': z.looseObject({
    ticket: text,
    requestId: text,
    optionId: maybe(text),
    text: maybe(text),
    approved: maybe(flag),
  }),
  'question.asked': asked,
  'question.answer': z.looseObject({
    channel: z.enum(['speech', 'typing', 'button']),
    utteranceStartedAt: maybe(amount),
    decisive: flag,
    answer: maybe(answer),
  }),
  'question.withdraw': z.looseObject({ reason: text }),
  'conversation.noted': z.looseObject({
    itemId: text,
    role: z.enum(['system', 'user']),
    text,
    saidAt: amount,
    note: maybe(noteSchema),
  }),
  'assistant.said': z.looseObject({ itemId: text, text, saidAt: amount, before: maybe(text) }),
  'assistant.cut': z.looseObject({
    itemId: text,
    text,
    audioHeardMs: amount,
    saidAt: maybe(amount),
    before: maybe(text),
  }),
  'conversation.summarised': z.looseObject({ summary: text, covers: z.array(text) }),
  'tool.called': z.looseObject({
    callId: text,
    name: text,
    arguments: text,
    calledAt: maybe(amount),
    agentName: maybe(text),
    requestId: maybe(text),
    isFollowed: maybe(flag),
    timeoutMs: maybe(amount),
    isConsolidated: maybe(flag),
  }),
  'call.answered': z.looseObject({ callId: text, answeredAt: amount, isOver: flag }),
  'call.validated': z.looseObject({
    execution: z.enum(['inline', 'background']),
    acknowledge: flag,
    message: maybe(text),
    delivery: maybe(z.enum(DELIVERY_MODES)),
  }),
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
    result: maybe(z.looseObject({ toolName: text, text, notes: z.array(text) })),
  }),
  'result.expected': z.looseObject({ deliveryId: text, requestId: text }),
  'invocation.wanted': z.looseObject({ eventId: text }),
  'outbox.add': z.looseObject({ item }),
  'outbox.retract': delivery,
  'outbox.outdate': delivery,
  'delivery.shown': delivery,
  'delivery.dismissed': delivery,
  'delivery.playing': attempt,
  'delivery.interrupted': attempt,
  'delivery.failed': attempt,
  'delivery.heard': z.looseObject({ generation: amount, grade: z.enum(['played', 'assumed']) }),
  'batch.joined': ofCall,
  'batch.left': ofCall,
  'batch.settled': ofCall,
  'batch.asking': ofCall,
  'batch.resumed': ofCall,
};
