// The input audio buffer of the fake. It only counts and stores audio. The test decides where speech starts and ends,
// and what is said.

import {
  checkCommitted,
  INPUT_SAMPLE_RATE_HZ,
  type InputAudioEvents,
  type Utterance,
  SoundBuffer,
} from '../../../adapters/local-voice/input-audio.ts';
import type { TurnDetection } from '../../../adapters/local-voice/session-config.ts';
import { ProviderError } from '../../../values/errors.ts';
import type { TranscriptTiming } from '../engine/control.ts';
import type { Timers } from '../engine/timers.ts';

/** This much silence before an utterance is kept. */
const PREFIX_MS = 1_000;

/** The text of an utterance, and when it becomes known. */
export interface Spoken {
  readonly text: string;
  readonly words: Promise<string>;
}

const nothingSaid: Spoken = { text: '', words: Promise.resolve('') };

export function fakeTranscriber(
  events: InputAudioEvents,
  onCommitted: (itemId: string, text: string) => void,
) {
  const buffer = new SoundBuffer(INPUT_SAMPLE_RATE_HZ);
  let listens = false;
  let openItem: string | null = null;
  /** Speech in a session without turn detection. It belongs to the next commit. */
  let unheard = nothingSaid;

  function utterance({ text, words }: Spoken, startMs: number, endMs: number): Utterance {
    const itemId = openItem ?? events.newItemId();
    openItem = null;
    onCommitted(itemId, text);
    return { itemId, samples: buffer.take(startMs, endMs), words };
  }

  return {
    /** All audio since the connection started. */
    get heardMs(): number {
      return buffer.endMs;
    },
    configure(detection: TurnDetection | null): void {
      listens = detection !== null;
      if (!listens) openItem = null;
    },
    append(samples: Int16Array): void {
      buffer.append(samples);
      if (listens && openItem === null) {
        buffer.dropBefore(buffer.endMs - PREFIX_MS);
      }
    },
    commit(): Utterance {
      const { startMs, endMs, durationMs } = buffer;
      checkCommitted(durationMs);
      const spoken = unheard;
      unheard = nothingSaid;
      return utterance(spoken, startMs, endMs);
    },
    clear(): void {
      buffer.dropBefore(buffer.endMs);
      openItem = null;
      unheard = nothingSaid;
    },
    close(): void {},
    begin(): void {
      if (!listens) return;
      openItem = events.newItemId();
      events.speechStarted(openItem, Math.round(buffer.endMs));
    },
    end(spoken: Spoken): void {
      if (!listens || openItem === null) {
        unheard = spoken;
        return;
      }
      const { startMs, endMs } = buffer;
      events.speechStopped(openItem, Math.round(endMs));
      events.committed(utterance(spoken, startMs, endMs));
    },
  };
}

export type FakeTranscriber = ReturnType<typeof fakeTranscriber>;

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
      // If the client wants transcripts, the session handles the error. Otherwise, the error does not matter.
      failed.catch(() => {});
      return failed;
    }
    case 'prompt':
    case 'early':
    case 'duplicated':
      return Promise.resolve(text);
  }
}
