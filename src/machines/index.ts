// The statecharts, each usable by itself:
// `createActor(subagentMachine.provide({ actions, actors }), { input, inspect })`.

export { activity, effect, isEffect, type DeadlineInput, type Stamped } from './effect.ts';
export {
  interactionMachine,
  ownerOf,
  type InteractionEvent,
  type InteractionSnapshot,
} from './interaction-machine.ts';
export type { OutboxEvent, OutboxInput } from './outbox-events.ts';
export { outboxMachine, type OutboxSnapshot } from './outbox-machine.ts';
export {
  hasRoom,
  type DeliveryKind,
  type DeliveryPriority,
  type DropReason,
  type HearingGrade,
  type OutboxItem,
} from './outbox-queue.ts';
export type { Ending, Failure } from './outcome.ts';
export {
  questionMachine,
  type AnswerChannel,
  type QuestionEnd,
  type QuestionEvent,
  type QuestionInput,
  type QuestionSnapshot,
} from './question-machine.ts';
export {
  floorOf,
  gateIsOpen,
  sessionMachine,
  type SessionInput,
  type SessionMachineEvent,
  type SessionSnapshot,
} from './session-machine.ts';
export {
  askingFor,
  gateMessage,
  gateOf,
  questionItem,
  resultItem,
  shared,
  wire,
  type Gate,
  type WiredMessage,
} from './session-wiring.ts';
export {
  requestIdOf,
  type StepCall,
  type SubagentEvent,
  type SubagentInput,
} from './subagent-events.ts';
export { subagentMachine, type SubagentSnapshot } from './subagent-machine.ts';
export {
  toolCallMachine,
  type CallAnswer,
  type ToolCallEvent,
  type ToolCallInput,
  type ToolCallSnapshot,
} from './tool-call-machine.ts';
