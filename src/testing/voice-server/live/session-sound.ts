// Audio in the format of a Live session: PCM16 at 16 or 24 kHz, or G.711 at 8 kHz.

import { Refusal } from '../../../adapters/local-voice/wire-events.ts';
import { messageOf } from '../../../values/errors.ts';
import { decodePcm16Base64, encodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import { tone, type SpeechPiece } from '../engine/sound.ts';
import type { SessionResource } from './official.ts';

const TELEPHONE_RATE_HZ = 8_000;
/** Silence, in both laws of G.711. */
const TELEPHONE_SILENCE = 0xff;

/** Returns the duration of audio of the client, in milliseconds. @throws {Refusal} */
export function lengthOf(base64: string, { audio }: SessionResource): number {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') return pcmLength(base64, format.rate);
  return (Buffer.byteLength(base64, 'base64') * 1000) / TELEPHONE_RATE_HZ;
}

/** Returns the duration of PCM16 of this rate, in milliseconds. @throws {Refusal} */
export function pcmLength(base64: string, rateHz: number): number {
  try {
    return (decodePcm16Base64(base64).length * 1000) / rateHz;
  } catch (error) {
    throw new Refusal('invalid_value', `Invalid 'audio': ${messageOf(error)}`, 'audio');
  }
}

/** Returns silence of this duration, in base64. */
export function silenceOf(durationMs: number, { audio }: SessionResource): string {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') {
    return encodePcm16Base64(new Int16Array(Math.round((durationMs * format.rate) / 1000)));
  }
  const samples = Math.round((durationMs * TELEPHONE_RATE_HZ) / 1000);
  return Buffer.alloc(samples, TELEPHONE_SILENCE).toString('base64');
}

/** Returns the audio of a piece of speech, in base64. */
export function soundOf({ startMs, durationMs }: SpeechPiece, { audio }: SessionResource): string {
  const format = audio?.format;
  if (format?.type === 'audio/pcm') {
    return encodePcm16Base64(tone(startMs, durationMs, format.rate));
  }
  const samples = Math.round((durationMs * TELEPHONE_RATE_HZ) / 1000);
  return Buffer.alloc(samples, TELEPHONE_SILENCE).toString('base64');
}
