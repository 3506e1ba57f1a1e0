// A script as a Realtime session's language model and voice: text and calls for its responses, and a tone for its speech.
import {
  toUsage,
  type TextModel,
  type TextModelPart,
} from '../../../adapters/local-voice/language-model.ts';
import { SentenceChunker } from '../../../voice/speech/sentence-chunker.ts';
import type { SpeechEngine } from '../../../adapters/local-voice/speech/speech-engine.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { ProviderError } from '../../../values/errors.ts';
import { argumentsText } from '../engine/call-step.ts';
import type { VoiceStep } from '../engine/control.ts';
import { speechMs, tone } from '../engine/sound.ts';

const SAMPLE_RATE_HZ = 24_000;
const CHARACTERS_PER_TOKEN = 4;
/** A writing model streams about twenty words a second. */
const WRITTEN_WORD_MS = 50;

export class ScriptModel implements TextModel {
  readonly #scheduler: Scheduler;
  readonly #takeTurn: () => readonly VoiceStep[] | null;
  /** The speaking time of the sentences in steps with an explicit duration. */
  readonly #chosenMs = new Map<string, number>();

  /** @param takeTurn called when a response starts; returns its steps */
  constructor(scheduler: Scheduler, takeTurn: () => readonly VoiceStep[] | null) {
    this.#scheduler = scheduler;
    this.#takeTurn = takeTurn;
  }

  async *respond({
    signal,
    modality,
  }: {
    readonly signal: AbortSignal;
    readonly modality: 'text' | 'audio';
  }): AsyncGenerator<TextModelPart> {
    const steps = this.#takeTurn();
    if (steps === null) {
      await aborted(signal);
      return;
    }
    let characters = 0;
    for (const step of steps) {
      if (signal.aborted) return;
      if ('say' in step) {
        this.#note(step);
        characters += step.say.length;
        if (modality === 'text') yield* this.#write(step.say, signal);
        else yield { type: 'text', text: step.say, isWhole: true };
      } else if ('call' in step) {
        const { call: name, callId } = step;
        yield { type: 'call', name, arguments: argumentsText(step), callId };
      } else if ('waitMs' in step) await this.#sleep(step.waitMs, signal);
      else if ('until' in step) await Promise.allSettled([step.until]);
      else if ('fail' in step) throw new ProviderError('server_error', step.fail);
    }
    const outputTokens = Math.ceil(characters / CHARACTERS_PER_TOKEN);
    yield { type: 'end', reason: 'completed', usage: toUsage({ inputTokens: 50, outputTokens }) };
  }

  /** The voice: a tone as long as the spoken text. It does not transcribe; `FakeTranscriber` does. */
  readonly voice: SpeechEngine = {
    voices: ['marin'],
    start: async () => {},
    close: async () => {},
    transcribe: async () => '',
    createDetector: () => ({ windowMs: 32, push: async () => [], close: () => {} }),
    synthesize: async ({ text, speed }) => {
      const durationMs = (this.#chosenMs.get(text) ?? speechMs(text)) / speed;
      return { samples: tone(0, durationMs, SAMPLE_RATE_HZ), sampleRateHz: SAMPLE_RATE_HZ };
    },
  };

  #note({ say, durationMs }: Extract<VoiceStep, { say: string }>): void {
    const chunker = new SentenceChunker();
    for (const sentence of [...chunker.push(say), ...chunker.flush()]) {
      if (durationMs === undefined) this.#chosenMs.delete(sentence);
      else this.#chosenMs.set(sentence, (durationMs * sentence.length) / say.length);
    }
  }

  /** Writes word by word, like a real model. */
  async *#write(text: string, signal: AbortSignal): AsyncGenerator<TextModelPart> {
    for (const word of text.match(/(?:^\s+)?\S+\s*/g) ?? [text]) {
      if (signal.aborted) return;
      yield { type: 'text', text: word };
      await this.#sleep(WRITTEN_WORD_MS, signal);
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#scheduler.schedule(resolve, ms);
      signal.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });
}
