// Simulation of an app: conversations by chance, with all possible faults.

export type {
  AppContext,
  ProgramHost,
  SimulatedApp,
  SimulatedAppLike,
  SimulatedProgram,
} from './log/app.ts';
export { defaultApp } from './default-app.ts';
export {
  defaultFaults,
  FAULT_POINTS,
  faultPoints,
  type FaultPlan,
  type FaultPoint,
  type FaultRule,
  type Strike,
} from './log/fault-points.ts';
export type { GenerateOptions } from './generate-script.ts';
export { eventsOf, logInWords, type Happening, type LogEntry, type RunRecord } from './log/log.ts';
export type { Broken, PromiseCheck } from './promises/broken.ts';
export {
  parseScript,
  scriptInWords,
  type Script as SimulationScript,
  type Step as SimulationStep,
} from './log/script.ts';
export {
  crashEverywhere,
  replayScript,
  simulate,
  simulateOnce,
  type CrashEverywhereOptions,
  type SimulateOptions,
  type SimulationOptions,
  type SimulationReport,
} from './simulate.ts';
export { SimulationError, type SimulationFailure } from './simulation-error.ts';
export { simulatedVoice } from './voice-stage.ts';
export type { Work } from './work.ts';
export type { Effect as SimulatedEffect } from './log/log.ts';
