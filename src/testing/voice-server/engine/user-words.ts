// Sends the last words of an utterance in a protocol that sends words piece by piece.

import type { TranscriptTiming } from './control.ts';
import type { Timers } from './timers.ts';

/** @param say sends a piece of the user's speech */
export function bringLastWords(
  words: string,
  timing: TranscriptTiming,
  timers: Timers,
  say: (words: string) => void,
): void {
  if (words === '' || timing === 'none' || timing === 'failed') return;
  if (typeof timing === 'object') {
    timers.later(() => say(words), timing.lateMs);
    return;
  }
  say(words);
  if (timing === 'duplicated') say(words);
}
