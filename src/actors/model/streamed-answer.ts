// Collects a model's stream into one answer, and passes on its words as they arrive. So a streaming step is a
// step like any other: the same checks, the same repairs, at a fraction of the cost of a stream that passes
// through the whole SDK.
//
// Invariants
//   STREAMED-ANSWER-1. The answer equals the one without streaming: its parts in the order in which they
//       began, without empty ones.
//   STREAMED-ANSWER-2. An error in the stream, and a stream without an end, are errors of the call.

import type { FinishReason } from 'ai';
import { ProviderError } from '../../values/errors.ts';
import type { Answer, ContentPart, Model } from './language-model.ts';

/** A piece of text as it arrives. */
export interface Delta {
  readonly type: 'text' | 'reasoning';
  readonly delta: string;
}

type Stream = Awaited<ReturnType<Model['doStream']>>;
type StreamPart = Stream['stream'] extends ReadableStream<infer Part> ? Part : never;
type Words = Extract<ContentPart, { type: 'text' | 'reasoning' }>;
type Finish = Extract<StreamPart, { type: 'finish' }>;

/**
 * Reads the stream to its end.
 * @throws the error that the stream reports, {ProviderError} STREAM_CUT_OFF, or `signal.reason`.
 */
export async function streamedAnswer(
  { stream, request, response }: Stream,
  signal: AbortSignal | undefined,
  told: (delta: Delta) => void,
): Promise<Answer> {
  const content: ContentPart[] = [];
  const open = new Map<string, Words>();
  let warnings: Answer['warnings'] = [];
  const metadata: NonNullable<Answer['response']> = { ...response };
  let finish: Finish | null = null;
  for await (const part of stream) {
    // The answer is no longer wanted; leaving the loop cancels the stream.
    signal?.throwIfAborted();
    switch (part.type) {
      case 'stream-start':
        warnings = part.warnings;
        break;
      case 'response-metadata': {
        const { type: _, ...rest } = part;
        Object.assign(metadata, rest);
        break;
      }
      case 'text-start':
      case 'reasoning-start': {
        const type = part.type === 'text-start' ? 'text' : 'reasoning';
        const words: Words = { type, text: '' };
        open.set(`${type}/${part.id}`, words);
        content.push(words);
        note(words, part);
        break;
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const type = part.type === 'text-delta' ? 'text' : 'reasoning';
        const words = open.get(`${type}/${part.id}`);
        // The signature of the reasoning may arrive without words.
        note(words, part);
        if (!words || part.delta === '') break;
        words.text += part.delta;
        told({ type, delta: part.delta });
        break;
      }
      case 'text-end':
      case 'reasoning-end':
        note(open.get(`${part.type === 'text-end' ? 'text' : 'reasoning'}/${part.id}`), part);
        break;
      case 'finish':
        finish = part;
        break;
      case 'error':
        throw part.error;
      // The call itself follows, in one piece.
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
      case 'ping':
      case 'raw':
        break;
      case 'tool-call':
      case 'tool-result':
      case 'tool-approval-request':
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'custom':
        content.push(part);
        break;
      default:
        break;
    }
  }
  if (finish === null) throw cutOff();
  const { usage, finishReason, providerMetadata } = finish;
  const tokens = usage.inputTokens.total ?? usage.outputTokens.total;
  if (hasJustEnded(finishReason.unified, finishReason.raw, tokens)) throw cutOff();
  return {
    content: content.filter((part) => !isWords(part) || holdsSomething(part)),
    finishReason,
    usage,
    warnings,
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
    ...(request === undefined ? {} : { request }),
    ...(Object.keys(metadata).length === 0 ? {} : { response: metadata }),
  };
}

/**
 * Returns whether the stream was cut off: provider packages end such streams as if they were complete. Some
 * packages report it; otherwise the sign is that the provider gave neither a finish reason nor token counts.
 */
export function hasJustEnded(
  reason: FinishReason,
  raw: string | undefined,
  tokens: number | undefined,
): boolean {
  if (reason === 'interrupted') return true;
  return reason === 'other' && raw === undefined && tokens === undefined;
}

/** Returns the error of a stream that ended before the provider had finished. */
export function cutOff(): ProviderError {
  return new ProviderError(
    'STREAM_CUT_OFF',
    'The stream of the model ended in mid-answer, before the provider had finished',
    { retryable: true },
  );
}

/** A provider may withhold its reasoning and send only its signature. */
function holdsSomething({ text, providerMetadata }: Words): boolean {
  return text !== '' || providerMetadata !== undefined;
}

function isWords(part: ContentPart): part is Words {
  return part.type === 'text' || part.type === 'reasoning';
}

/** Signatures and citations belong to the finished part; the last ones are complete. */
function note(words: Words | undefined, part: StreamPart): void {
  if (!words) return;
  if ('providerMetadata' in part && part.providerMetadata !== undefined)
    words.providerMetadata = part.providerMetadata;
  if (words.type === 'text' && 'citations' in part && part.citations !== undefined)
    words.citations = part.citations;
}
