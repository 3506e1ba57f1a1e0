// The conformance suite for journals.

export { journalConformance } from './journal-conformance.ts';
export type { JournalConformanceSetup, JournalFeature, JournalStage } from './stage.ts';
