// The API for authors of transports and of audio components.

export { frameDurationMs, type AudioFrame } from './audio/audio-frame.ts';
export {
  createBoundedBuffer,
  type BoundedBuffer,
  type BoundedBufferOptions,
} from './audio/bounded-buffer.ts';
export { decodeMuLaw, encodeMuLaw } from './audio/mu-law.ts';
export { decodePcm16, decodePcm16Base64, encodePcm16, encodePcm16Base64 } from './audio/pcm16.ts';
export { workingSound, type WorkingSoundOptions } from './audio/working-sound.ts';
export { decodeWav, encodeWav, isWav } from './audio/wav.ts';
export { createResampler, isSampleRateHz, type Resampler } from './audio/resampler.ts';
export { SentenceChunker } from './speech/sentence-chunker.ts';
export type { Transcriber, Voice, VoiceRequest } from './speech/voice.ts';
export type {
  Transport,
  TransportCapabilities,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
  TransportTool,
} from './connection/transport.ts';
export type { AcknowledgementOptions, AcknowledgementPhrases } from './output/acknowledgement.ts';
export type { FillerOptions, ThinkingSoundOptions } from './output/waiting.ts';
export type { PlayoutReport } from './voice-session.ts';
export type { VoicedTransport, WithVoiceOptions } from './voiced/with-voice.ts';
export { reframe } from './audio/frame-operators.ts';
export { resampleFrames } from './audio/frame-operators.ts';
