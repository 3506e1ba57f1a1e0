// Audio of the user in Gemini's format: PCM16 of a rate that its type names.

import { decodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import { InvalidMessage, type Blob } from './client-messages.ts';

const DEFAULT_RATE_HZ = 16_000;

/** Returns the duration of the audio, in milliseconds. @throws {InvalidMessage} */
export function readSound({ mimeType, data }: Blob): number {
  const type = /^audio\/pcm(?:;\s*rate=(\d+))?$/.exec(mimeType);
  if (type === null) throw new InvalidMessage('Request contains an invalid argument.');
  const rateHz = type[1] === undefined ? DEFAULT_RATE_HZ : Number(type[1]);
  try {
    return (decodePcm16Base64(data).length * 1000) / rateHz;
  } catch {
    throw new InvalidMessage('Request contains an invalid argument.');
  }
}
