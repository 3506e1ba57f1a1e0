// The statechart model checker of `offstage/testing`.

export { checkMachine } from './check-machine.ts';
export { checkSystem } from './check-system.ts';
export type { Untaken } from './checks.ts';
export type { CheckReport, Path } from './report.ts';
export type { Trace, TraceStep } from './trace.ts';
export { Violation, ViolationError, type ViolationKind } from './violation.ts';
export type {
  ActorDefinition,
  ActorId,
  BuiltInEffect,
  CommonChecks,
  Delivery,
  Effect,
  EffectOf,
  EventOf,
  Ghost,
  MachineCheck,
  Machines,
  Message,
  Outcome,
  Step,
  StepKind,
  SystemCheck,
  Verdict,
  WaitRule,
  World,
} from './types.ts';
export { interpreter, type InterpreterOptions } from './interpreter.ts';
export { replay, type ReplayOptions, type ReplayReport } from './replay.ts';
export type { ReplayHarness } from './types.ts';
export type { ReplayRun } from './types.ts';
export type { SnapshotLike } from './types.ts';
