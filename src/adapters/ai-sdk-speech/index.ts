export {
  aiSdkTranscriber,
  defaultAiSdkTranscriberOptions,
  type AiSdkTranscriberOptions,
} from './ai-sdk-transcriber.ts';
export { aiSdkVoice, defaultAiSdkVoiceOptions, type AiSdkVoiceOptions } from './ai-sdk-voice.ts';
export type { Transcriber, Voice, VoiceRequest } from '../../voice/speech/voice.ts';
