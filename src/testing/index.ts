// Helpers for the tests of programs built on Offstage; Offstage itself is tested with them.

export * from './check/index.ts';
export { ConformanceError } from './conformance/conformance-error.ts';
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
export * from './simulate/index.ts';
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
