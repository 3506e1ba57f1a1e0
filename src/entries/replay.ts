// The entry `offstage/replay`: replays sessions from their journal step by step, and creates recordings and forks.

export { replaySession } from '../actors/replay/replay-session.ts';
export type { ReplayStep } from '../actors/replay/replay-session.ts';
export {
  checkRecording,
  exportRecording,
  importRecording,
  parseRecording,
} from '../actors/replay/recording.ts';
export type { RecordedStep, Recording, RecordingDifference } from '../actors/replay/recording.ts';
export { forkSession } from '../actors/replay/fork-session.ts';
export type {
  Changes,
  ReplayCall,
  ReplayDelivery,
  ReplayItem,
  ReplaySubagent,
  ReplayView,
} from '../actors/replay/replay-view.ts';
