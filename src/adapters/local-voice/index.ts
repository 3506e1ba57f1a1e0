export type { OpenQuestion } from './end-of-turn.ts';
export {
  defaultHearingOptions,
  localVoice,
  type HearingOptions,
  type LocalVoice,
  type LocalVoiceAddress,
  type LocalVoiceOptions,
} from './local-voice.ts';
export type { SpeechDetector, SpeechEngine } from './speech/speech-engine.ts';
