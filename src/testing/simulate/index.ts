// Simulation of an app: conversations by chance, with all possible faults.

export type { AppContext, SimulatedApp, SimulatedProgram } from './log/app.ts';
export { defaultApp } from './default-app.ts';
export { defaultFaults, FAULT_POINTS, type FaultPlan } from './log/fault-points.ts';
export type { GenerateOptions } from './generate-script.ts';
export { eventsOf, type RunRecord } from './log/log.ts';
export type { Broken, PromiseCheck } from './promises/broken.ts';
export { parseScript } from './log/script.ts';
export {
  crashEverywhere,
  replayScript,
  simulate,
  simulateOnce,
  type SimulateOptions,
  type SimulationReport,
} from './simulate.ts';
export { SimulationError } from './simulation-error.ts';
export { simulatedVoice } from './voice-stage.ts';
export type { Work } from './work.ts';
