// The person's voice and the room around it, for the stages that hear them: noise, a television, or the loudspeaker's echo.

import { noise } from '../support/speech-like.ts';
import { hum } from '../support/speech/hum.ts';
import { speak } from '../support/speech/speak.ts';
import type { Background } from './dialogue.ts';

export const ROOM_RATE_HZ = 24_000;
/** A loudspeaker that is heard by the microphone, as a laptop without an echo canceller has it. */
export const ECHO_DB = -20;
export const ECHO_DELAY_MS = 80;
/** Below the user's voice. */
const TELEVISION_DB = -32;
const NOISE_DB = -50;
const ROOM_DB = -55;
const TELEVISION =
  'Good evening, and here is the news. The harbour will be closed on Thursday because of the storm. ' +
  'The mayor said that the new bridge would cost twelve million. And now to the weather in the north.';

/** A synthesiser spells these. */
const HUM = /^(?:mm-hm|uh-huh)\.$/i;

/** Returns the sound of a line, said by a voice of Flite. */
export async function voiceOf(text: string, voice: string): Promise<Int16Array> {
  return HUM.test(text) ? hum() : speak(text, { voice });
}

/** Returns the sound of the room, which begins anew at its end; null: it is silent. */
export async function roomSound(room: Background | undefined): Promise<Int16Array | null> {
  if (room === 'noise') return noiseOf(NOISE_DB, 4 * ROOM_RATE_HZ);
  if (room !== 'television') return null;
  const far = await speak(TELEVISION, { voice: 'awb' });
  // No room is as silent as a synthesiser: the session tells far voices from near ones by the noise.
  const hiss = noiseOf(ROOM_DB, far.length);
  const level = 10 ** (TELEVISION_DB / 20);
  return far.map((sample, index) => sample * level + (hiss[index] ?? 0));
}

function noiseOf(db: number, length: number): Int16Array {
  const random = noise(5);
  return Int16Array.from({ length }, () => random() * 32_767 * 10 ** (db / 20));
}
