export type { EndOfTurn, OpenQuestion } from './end-of-turn.ts';
export {
  defaultHearingOptions,
  defaultLocalVoiceOptions,
  localVoice,
  type HearingOptions,
  type LocalVoice,
  type LocalVoiceAddress,
  type LocalVoiceOptions,
} from './local-voice.ts';
export type { SpeechDetector, SpeechEngine, SpokenRequest } from './speech/speech-engine.ts';
export type { Transcriber, Voice, VoiceRequest } from '../../voice/speech/voice.ts';
