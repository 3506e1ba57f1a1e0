// The conformance suite for voice transports.

export { ConformanceError } from './conformance-error.ts';
export { transportConformance, type ConformanceCase } from './transport-conformance.ts';
export type {
  ConformanceFault,
  ConformanceMemory,
  ConformanceResponder,
  ConformanceModel,
  ConformanceReply,
  ConformanceSetup,
  ConformanceStage,
  ConformanceStep,
  ConformanceTranscript,
  ConformanceTurn,
  ConformanceWorld,
} from './stage.ts';
