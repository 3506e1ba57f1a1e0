// A model's stream as one answer, and its words while they come. So a step that streams is
// a step like any other: the same checks, the same repairs, at a fraction of the cost of a
// stream that goes through the whole SDK.
//
// Invariants
//   STREAMED-ANSWER-1. The answer is what the model would have given at once: its parts in the order in
//       which they began, without those that hold nothing.
//   STREAMED-ANSWER-2. An error in the stream, and a stream without an end, are errors of the call.

import type { FinishReason } from 'ai';
import { ProviderError } from '../../values/errors.ts';
import type { Answer, ContentPart, Model } from './language-model.ts';

/** Words, as they come. */
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
 * @throws what the stream says is wrong, {ProviderError} STREAM_CUT_OFF, or `signal.reason`.
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
    // Nobody waits for it any more; leaving the loop cancels the stream.
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
        // What proves the reasoning may come without words.
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
 * Packages finish themselves what just ended. Some say so; of others it is known by this, that
 * the provider said neither why it ended nor what it cost.
 */
export function hasJustEnded(
  reason: FinishReason,
  raw: string | undefined,
  tokens: number | undefined,
): boolean {
  if (reason === 'interrupted') return true;
  return reason === 'other' && raw === undefined && tokens === undefined;
}

/** The error of a stream that ended before the provider had finished. */
export function cutOff(): ProviderError {
  return new ProviderError(
    'STREAM_CUT_OFF',
    'The stream of the model ended in mid-answer, before the provider had finished',
    { retryable: true },
  );
}

/** A provider may keep its reasoning to itself, and send only what proves it. */
function holdsSomething({ text, providerMetadata }: Words): boolean {
  return text !== '' || providerMetadata !== undefined;
}

function isWords(part: ContentPart): part is Words {
  return part.type === 'text' || part.type === 'reasoning';
}

/** Signatures and citations belong to the finished part; the last ones are whole. */
function note(words: Words | undefined, part: StreamPart): void {
  if (!words) return;
  if ('providerMetadata' in part && part.providerMetadata !== undefined)
    words.providerMetadata = part.providerMetadata;
  if (words.type === 'text' && 'citations' in part && part.citations !== undefined)
    words.citations = part.citations;
}
