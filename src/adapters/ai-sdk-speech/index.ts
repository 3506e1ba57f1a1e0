export { aiSdkEars, defaultAiSdkEarsOptions, type AiSdkEarsOptions } from './ai-sdk-ears.ts';
export { aiSdkVoice, defaultAiSdkVoiceOptions, type AiSdkVoiceOptions } from './ai-sdk-voice.ts';
export type { Ears, Voice, VoiceRequest } from '../../voice/speech/voice.ts';
