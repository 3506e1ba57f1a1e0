export {
  defaultLocalVoiceOptions,
  localVoice,
  type LocalVoice,
  type LocalVoiceAddress,
  type LocalVoiceOptions,
} from './local-voice.ts';
export type { SpeechDetector, SpeechEngine, SpokenRequest } from './speech/speech-engine.ts';
export type { Transcriber, Voice, VoiceRequest } from '../../voice/speech/voice.ts';
