// The statecharts. Each can be used on its own: `createActor(subagentMachine.provide({ actions, actors }), { input,
// inspect })`.

export { backoffMs, type BackoffInput } from './backoff.ts';
export {
  batchMachine,
  type AtCeiling,
  type BatchEvent,
  type BatchInput,
  type BatchSnapshot,
} from './batch-machine.ts';
export {
  clientCallMachine,
  type ClientCallEvent,
  type ClientCallInput,
  type ClientCallSnapshot,
} from './client-call-machine.ts';
export {
  activities,
  activity,
  deadline,
  effect,
  isEffect,
  stopActivity,
  withDeadlines,
  type Activity,
  type ActivityStop,
  type Carrying,
  type Deadline,
  type DeadlineInput,
  type MessageIn,
  type Stamped,
  type Unstamped,
} from './effect.ts';
export {
  eventSourceMachine,
  type EventSourceEvent,
  type EventSourceInput,
  type EventSourceSnapshot,
} from './event-source-machine.ts';
export {
  interactionMachine,
  ownerOf,
  type InteractionEvent,
  type InteractionSnapshot,
} from './interaction-machine.ts';
export { outboxMachine, type OutboxSnapshot } from './outbox-machine.ts';
export {
  DELIVERY_MODES,
  hasRoom,
  type DeliveryKind,
  type DeliveryMode,
  type DeliveryPriority,
  type DropReason,
  type HearingGrade,
  type OutboxEvent,
  type OutboxInput,
  type OutboxItem,
} from './outbox-setup.ts';
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
  reachMachine,
  type ReachEvent,
  type ReachInput,
  type ReachReceipt,
  type ReachSnapshot,
  type ReachStep,
  type Sent,
} from './reach-machine.ts';
export { scheduleMachine, type ScheduleEvent, type ScheduleSnapshot } from './schedule-machine.ts';
export {
  serviceMachine,
  sourceMessages,
  type EventDropReason,
  type EventPriority,
  type ServiceInput,
  type ServiceMachineEvent,
  type ServiceSnapshot,
} from './service-machine.ts';
export {
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_TRANSFER_TIMEOUT_MS,
  floorOf,
  gateIsOpen,
  outageOf,
  restMs,
  sessionMachine,
  type SessionInput,
  type SessionMachineEvent,
  type SessionSnapshot,
} from './session-machine.ts';
export {
  askingFor,
  gateMessage,
  gateOf,
  priorityOf,
  questionItem,
  resultItem,
  shared,
  wire,
  type Gate,
  type MachineEffects,
  type MachineProtocol,
  type WiredEffect,
  type WiredMessage,
} from './session-wiring.ts';
export { subagentMachine, type SubagentSnapshot } from './subagent-machine.ts';
export {
  requestIdOf,
  type MessageMode,
  type StepCall,
  type SubagentEvent,
  type SubagentInput,
} from './subagent-setup.ts';
export {
  toolCallMachine,
  type CallAnswer,
  type ToolCallEnd,
  type ToolCallEvent,
  type ToolCallInput,
  type ToolCallSnapshot,
} from './tool-call-machine.ts';
export {
  isInDoubt,
  modelIsBusy,
  replyIsComing,
  replyIsExpected,
  replyIsWanted,
  turnMachine,
  userHasFloor,
  type TurnSnapshot,
} from './turn-machine.ts';
export type {
  AwaitedCall,
  TurnEffects,
  TurnEvent,
  TurnFact,
  TurnInput,
  TurnNow,
  TurnResponse,
} from './turn-setup.ts';
export type { ServiceWork, Wait, WaitCause, WaitingState, WorkOf } from './why-waiting.ts';
