// The API for authors of transports and audio components.

export { frameDurationMs, type AudioFrame } from './audio/audio-frame.ts';
export { decodeMuLaw, encodeMuLaw } from './audio/mu-law.ts';
export { decodePcm16, decodePcm16Base64, encodePcm16, encodePcm16Base64 } from './audio/pcm16.ts';
export { workingSound } from './audio/working-sound.ts';
export { decodeWav, encodeWav } from './audio/wav.ts';
export { createResampler, type Resampler } from './audio/resampler.ts';
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
export type { PlayoutReport } from './spoken-lead.ts';
export type { VoicedTransport } from './voiced/with-voice.ts';
export { reframe } from './audio/frame-operators.ts';
