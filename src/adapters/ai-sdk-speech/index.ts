export {
  aiSdkTranscriber,
  defaultAiSdkTranscriberOptions,
  type AiSdkTranscriberOptions,
} from './ai-sdk-speech.ts';
export { aiSdkVoice, defaultAiSdkVoiceOptions, type AiSdkVoiceOptions } from './ai-sdk-speech.ts';
export type { Transcriber, Voice, VoiceRequest } from '../../voice/speech/voice.ts';
