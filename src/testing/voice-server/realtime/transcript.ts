// The time at which the words of an utterance are known.

import { ProviderError } from '../../../values/errors.ts';
import type { TranscriptTiming } from '../engine/control.ts';
import type { Timers } from '../engine/timers.ts';

export function transcriptOf(
  text: string,
  timing: TranscriptTiming,
  timers: Timers,
): Promise<string> {
  if (typeof timing === 'object') {
    return new Promise((resolve) => {
      timers.later(() => resolve(text), timing.lateMs);
    });
  }
  switch (timing) {
    case 'none':
      return new Promise(() => {});
    case 'failed': {
      const failed = Promise.reject(
        new ProviderError('audio_unintelligible', 'The audio could not be transcribed.'),
      );
      // The session reads it if the client wants transcripts; otherwise the rejection is no failure.
      failed.catch(() => {});
      return failed;
    }
    case 'prompt':
    case 'early':
    case 'duplicated':
      return Promise.resolve(text);
  }
}
