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

export function scriptModel(
  scheduler: Scheduler,
  takeTurn: () => readonly VoiceStep[] | null,
): TextModel & { readonly voice: SpeechEngine } {
  /** The speaking time of the sentences in steps with an explicit duration. */
  const chosenMs = new Map<string, number>();
  /** The voice: a tone as long as the spoken text. It does not transcribe; `fakeTranscriber` does. */
  const voice: SpeechEngine = {
    voices: ['marin'],
    start: async () => {},
    close: async () => {},
    transcribe: async () => '',
    createDetector: () => ({ windowMs: 32, push: async () => [], close: () => {} }),
    synthesize: async ({ text, speed }) => {
      const durationMs = (chosenMs.get(text) ?? speechMs(text)) / speed;
      return { samples: tone(0, durationMs, SAMPLE_RATE_HZ), sampleRateHz: SAMPLE_RATE_HZ };
    },
  };

  function note({ say, durationMs }: Extract<VoiceStep, { say: string }>): void {
    const chunker = new SentenceChunker();
    for (const sentence of [...chunker.push(say), ...chunker.flush()]) {
      if (durationMs === undefined) chosenMs.delete(sentence);
      else chosenMs.set(sentence, (durationMs * sentence.length) / say.length);
    }
  }

  /** Writes word by word, like a real model. */
  async function* write(text: string, signal: AbortSignal): AsyncGenerator<TextModelPart> {
    for (const word of text.match(/(?:^\s+)?\S+\s*/g) ?? [text]) {
      if (signal.aborted) return;
      yield { type: 'text', text: word };
      await sleep(WRITTEN_WORD_MS, signal);
    }
  }

  function sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = scheduler.schedule(resolve, ms);
      signal.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }

  return {
    async *respond({ signal, modality }) {
      const steps = takeTurn();
      if (steps === null) {
        await aborted(signal);
        return;
      }
      let characters = 0;
      for (const step of steps) {
        if (signal.aborted) return;
        if ('say' in step) {
          note(step);
          characters += step.say.length;
          if (modality === 'text') yield* write(step.say, signal);
          else yield { type: 'text', text: step.say, isWhole: true };
        } else if ('call' in step) {
          const { call: name, callId } = step;
          yield { type: 'call', name, arguments: argumentsText(step), callId };
        } else if ('waitMs' in step) await sleep(step.waitMs, signal);
        else if ('until' in step) await Promise.allSettled([step.until]);
        else if ('fail' in step) throw new ProviderError('server_error', step.fail);
      }
      const outputTokens = Math.ceil(characters / CHARACTERS_PER_TOKEN);
      yield { type: 'end', reason: 'completed', usage: toUsage({ inputTokens: 50, outputTokens }) };
    },
    voice,
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });
}
