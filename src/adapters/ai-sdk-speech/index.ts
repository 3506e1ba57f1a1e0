export { aiSdkTranscriber } from './ai-sdk-speech.ts';
export { aiSdkVoice, type AiSdkVoiceOptions } from './ai-sdk-speech.ts';
