// Test helpers for programs that are built on Offstage. Offstage's own tests use them too.

export * from './check/index.ts';
export { ConformanceError } from './conformance/conformance-error.ts';
export { reachConformance } from './conformance/reach-conformance.ts';
export { transportConformance, type ConformanceCase } from './conformance/transport-conformance.ts';
export type {
  ConformanceFault,
  ConformanceResponder,
  ConformanceModel,
  ConformanceSetup,
  ConformanceStage,
  ConformanceTranscript,
  ConformanceTurn,
} from './conformance/stage.ts';
export type { AppContext, SimulatedApp, SimulatedProgram } from './simulate/log/app.ts';
export { defaultApp } from './simulate/default-app.ts';
export { defaultFaults, FAULT_POINTS, type FaultPlan } from './simulate/log/fault-points.ts';
export type { GenerateOptions } from './simulate/generate-script.ts';
export { eventsOf, type RunRecord } from './simulate/log/log.ts';
export type { Broken, PromiseCheck } from './simulate/promises/broken.ts';
export { parseScript } from './simulate/log/script.ts';
export {
  crashEverywhere,
  replayScript,
  simulate,
  simulateOnce,
  type SimulateOptions,
  type SimulationReport,
} from './simulate/simulate.ts';
export { SimulationError } from './simulate/simulation-error.ts';
export { simulatedVoice } from './simulate/voice-stage.ts';
export type { Work } from './simulate/work.ts';
export { journalConformance } from './journal-conformance/journal-conformance.ts';
export type { JournalConformanceSetup, JournalStage } from './journal-conformance/stage.ts';
export * from './recording/index.ts';
export {
  simulatedEnvironment,
  type SimulatedEnvironment,
} from './doubles/simulated-environment.ts';
export { readNotes, readTask, type ReadNote, type ReadTask } from '../actors/notes/note.ts';
export {
  scriptedVoice,
  type ScriptedVoice,
  type ScriptedVoiceOptions,
} from './doubles/scripted-voice.ts';
export {
  scriptedRelay,
  type ScriptedRelay,
  type ScriptedRelayOptions,
} from './doubles/scripted-relay.ts';
export { actsPrompt, type RelayAct } from './doubles/relay-acts.ts';
export { simulatedJobs, type SimulatedJobs } from './doubles/simulated-jobs.ts';
export { simulatedRuns, type SimulatedRuns } from './doubles/simulated-runs.ts';
export {
  providerRefusals,
  providerRules,
  refusalBody,
  refusalError,
  type ProviderApi,
  type ProviderRefusal,
  type ProviderRule,
  type RuledCall,
} from './doubles/provider-rules.ts';
export {
  scriptedModel,
  type Script,
  type ScriptedCall,
  type ScriptedModelOptions,
  type ScriptedPrompt,
  type ScriptedStep,
  type ScriptLike,
} from './doubles/scripted-model.ts';
