// The statechart model checker of `offstage/testing`.

export { checkMachine } from './check-machine.ts';
export { checkSystem } from './check-system.ts';
export type { Untaken } from './checks.ts';
export type { CheckReport, Path } from './report.ts';
export type { Trace, TraceStep } from './trace.ts';
export { Violation, ViolationError } from './violation.ts';
export type {
  Delivery,
  Effect,
  MachineCheck,
  Machines,
  Message,
  Outcome,
  Step,
  SystemCheck,
  World,
} from './types.ts';
export { interpreter } from './interpreter.ts';
export { replay, type ReplayReport } from './replay.ts';
export type { ReplayHarness, ReplayRun, SnapshotLike } from './types.ts';
