// The person's voice and the room around it, for the stages with audio: noise, a television, or the loudspeaker's echo.

import { noise } from '../support/speech-like.ts';
import { hum } from '../support/speech/hum.ts';
import { speak } from '../support/speech/speak.ts';
import type { Background } from './dialogue.ts';

export const ROOM_RATE_HZ = 24_000;
/** How loud a laptop's loudspeaker is in its microphone without an echo canceller. */
export const ECHO_DB = -20;
export const ECHO_DELAY_MS = 80;
/** Quieter than the user's voice. */
const TELEVISION_DB = -32;
const NOISE_DB = -50;
const ROOM_DB = -55;
const TELEVISION =
  'Good evening, and here is the news. The harbour will be closed on Thursday because of the storm. ' +
  'The mayor said that the new bridge would cost twelve million. And now to the weather in the north.';

/** A synthesiser spells these words letter by letter. */
const HUM = /^(?:mm-hm|uh-huh)\.$/i;

/** Returns the audio of a line in a Flite voice. */
export async function voiceOf(text: string, voice: string): Promise<Int16Array> {
  return HUM.test(text) ? hum() : speak(text, { voice });
}

/** Returns the room's audio, which repeats when it ends; null for a silent room. */
export async function roomSound(room: Background | undefined): Promise<Int16Array | null> {
  if (room === 'noise') return noiseOf(NOISE_DB, 4 * ROOM_RATE_HZ);
  if (room !== 'television') return null;
  const far = await speak(TELEVISION, { voice: 'awb' });
  // No room is as silent as a synthesiser, and the session uses the noise to distinguish far voices from near ones.
  const hiss = noiseOf(ROOM_DB, far.length);
  const level = 10 ** (TELEVISION_DB / 20);
  return far.map((sample, index) => sample * level + (hiss[index] ?? 0));
}

function noiseOf(db: number, length: number): Int16Array {
  const random = noise(5);
  return Int16Array.from({ length }, () => random() * 32_767 * 10 ** (db / 20));
}
