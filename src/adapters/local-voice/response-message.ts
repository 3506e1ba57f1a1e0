// One message of a response: as text, or spoken.
//
// Spoken: the text is cut into sentences; each is synthesised in turn and sent in pieces of 100 ms, far
// faster than it plays, each preceded by the words that begin to sound in it. Between two pieces the event
// loop gets a turn, and the server waits for a slow client.
//
// RESPONSE-MESSAGE-1. The events of a message: output_item.added, conversation.item.added (unless out of band),
//     content_part.added, deltas, the `done`s of the content, content_part.done,
//     conversation.item.done, output_item.done.
// RESPONSE-MESSAGE-2. After `close` no event of the message is sent.
// RESPONSE-MESSAGE-3. Words whose sound was not sent are neither in the item nor in the model's memory.

import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import { createResampler } from '../../voice/audio/resampler.ts';
import type { Conversation, ConversationItem } from './conversation.ts';
import { SentenceChunker } from '../../voice/speech/sentence-chunker.ts';
import { SpokenWords, placeWords } from '../../voice/speech/spoken-words.ts';
import type { Emit, WireItem } from './wire-events.ts';

const WIRE_SAMPLE_RATE_HZ = 24_000;
const SAMPLES_PER_MS = WIRE_SAMPLE_RATE_HZ / 1000;
const PIECE_SAMPLES = WIRE_SAMPLE_RATE_HZ / 10;

/** The destination of a message. */
export interface MessageContext {
  readonly emit: Emit;
  readonly responseId: string;
  readonly outputIndex: number;
  readonly itemId: string;
  /** `null` for an out-of-band response. */
  readonly conversation: Conversation | null;
}

/** The speech functions of a message. */
export interface Speaking {
  /** Returns the sound of one sentence. */
  readonly synthesize: (text: string) => Promise<AudioFrame>;
  /** Resolves in another turn of the event loop, when the client can take more. */
  readonly whenReady: () => Promise<void>;
}

export interface ResponseMessage {
  /** Adds text. `isWhole`: it is spoken without waiting for the end of a sentence. */
  write(text: string, isWhole?: boolean): void;
  /** Resolves when all added text was sent. @throws the error of `synthesize` */
  drain(): Promise<void>;
  /** Ends it at once. @returns the final item */
  close(status: 'completed' | 'incomplete'): WireItem;
}

/** Begins a message and announces it. */
export function openMessage(context: MessageContext, speaking: Speaking | null): ResponseMessage {
  return speaking === null ? new WrittenMessage(context) : new SpokenMessage(context, speaking);
}

abstract class MessageBase {
  protected readonly context: MessageContext;
  protected readonly words = new SpokenWords();
  readonly #item: ConversationItem;
  #closed: WireItem | undefined;

  constructor(context: MessageContext) {
    this.context = context;
    const { emit, itemId: id, conversation, outputIndex, responseId } = context;
    this.#item = {
      id,
      wire: { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] },
      remembered: {
        kind: 'message',
        role: 'assistant',
        parts: [{ type: 'speech', words: this.words }],
      },
      sound: [],
    };
    emit({
      type: 'response.output_item.added',
      response_id: responseId,
      output_index: outputIndex,
      item: this.#item.wire,
    });
    if (conversation !== null) {
      const previousId = conversation.add(this.#item);
      emit({
        type: 'conversation.item.added',
        previous_item_id: previousId,
        item: this.#item.wire,
      });
    }
  }

  protected get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** The position that every event of the content states. */
  protected get place() {
    const { responseId, itemId, outputIndex } = this.context;
    return {
      response_id: responseId,
      item_id: itemId,
      output_index: outputIndex,
      content_index: 0,
    };
  }

  protected keepSound(piece: Int16Array): void {
    if (this.context.conversation !== null) this.#item.sound.push(piece);
  }

  close(status: 'completed' | 'incomplete'): WireItem {
    if (this.#closed !== undefined) return this.#closed;
    const { emit, conversation, itemId: id, outputIndex, responseId } = this.context;
    const wire: WireItem = {
      id,
      type: 'message',
      status,
      role: 'assistant',
      content: [this.endContent()],
    };
    this.#closed = wire;
    this.#item.wire = wire;
    if (conversation?.find(id) !== undefined) {
      emit({
        type: 'conversation.item.done',
        previous_item_id: conversation.previousId(id),
        item: wire,
      });
    }
    emit({
      type: 'response.output_item.done',
      response_id: responseId,
      output_index: outputIndex,
      item: wire,
    });
    return wire;
  }

  /** Announces the end of the content. @returns the content of the item */
  protected abstract endContent():
    | { type: 'output_text'; text: string }
    | { type: 'output_audio'; transcript: string };
}

class WrittenMessage extends MessageBase implements ResponseMessage {
  constructor(context: MessageContext) {
    super(context);
    context.emit({
      type: 'response.content_part.added',
      ...this.place,
      part: { type: 'text', text: '' },
    });
  }

  write(text: string): void {
    if (this.isClosed) return;
    this.words.addWord({ text, startMs: 0, endMs: 0 });
    this.context.emit({ type: 'response.output_text.delta', ...this.place, delta: text });
  }

  async drain(): Promise<void> {}

  protected endContent() {
    const text = this.words.text();
    this.context.emit({ type: 'response.output_text.done', ...this.place, text });
    this.context.emit({
      type: 'response.content_part.done',
      ...this.place,
      part: { type: 'text', text },
    });
    return { type: 'output_text' as const, text };
  }
}

class SpokenMessage extends MessageBase implements ResponseMessage {
  readonly #speaking: Speaking;
  readonly #chunker = new SentenceChunker();
  /** Settles when all text added so far is sent, in order. */
  #sent: Promise<void> = Promise.resolve();

  constructor(context: MessageContext, speaking: Speaking) {
    super(context);
    this.#speaking = speaking;
    context.emit({
      type: 'response.content_part.added',
      ...this.place,
      part: { type: 'audio', transcript: '' },
    });
  }

  write(text: string, isWhole = false): void {
    for (const sentence of this.#chunker.push(text)) this.#enqueue(sentence);
    if (isWhole) this.#flush();
  }

  async drain(): Promise<void> {
    this.#flush();
    await this.#sent;
  }

  #flush(): void {
    for (const sentence of this.#chunker.flush()) this.#enqueue(sentence);
  }

  #enqueue(sentence: string): void {
    this.#sent = this.#sent.then(() => this.#say(sentence));
    // Reported by `drain`, which may come later.
    this.#sent.catch(() => undefined);
  }

  async #say(sentence: string): Promise<void> {
    if (this.isClosed) return;
    const sound = await this.#speaking.synthesize(sentence);
    const startMs = this.words.durationMs;
    const lengthMs = (sound.samples.length * 1000) / sound.sampleRateHz;
    const words = placeWords(sentence, startMs, lengthMs);
    for (const piece of piecesOf(sound)) {
      if (this.isClosed) return;
      this.#sendWords(words, this.words.durationMs + piece.length / SAMPLES_PER_MS);
      this.#sendSound(piece);
      await this.#speaking.whenReady();
    }
    if (!this.isClosed) this.#sendWords(words, Infinity);
  }

  /** Sends the words that begin before `untilMs`, and removes them from the list. */
  #sendWords(words: ReturnType<typeof placeWords>, untilMs: number): void {
    const later = words.findIndex((word) => word.startMs >= untilMs);
    const due = words.splice(0, later < 0 ? words.length : later);
    if (due.length === 0) return;
    for (const word of due) this.words.addWord(word);
    this.context.emit({
      type: 'response.output_audio_transcript.delta',
      ...this.place,
      delta: due.map((word) => word.text).join(''),
    });
  }

  #sendSound(piece: Int16Array): void {
    this.words.addSound(piece.length / SAMPLES_PER_MS);
    this.keepSound(piece);
    this.context.emit({
      type: 'response.output_audio.delta',
      ...this.place,
      delta: encodePcm16Base64(piece),
    });
  }

  protected endContent() {
    const transcript = this.words.text();
    const { emit } = this.context;
    emit({ type: 'response.output_audio.done', ...this.place });
    emit({ type: 'response.output_audio_transcript.done', ...this.place, transcript });
    emit({
      type: 'response.content_part.done',
      ...this.place,
      part: { type: 'audio', transcript },
    });
    return { type: 'output_audio' as const, transcript };
  }
}

/**
 * Yields sound of any rate in pieces of at most 100 ms at the rate of the wire. Lazy: each costs its own
 * turn.
 */
function* piecesOf(sound: AudioFrame): Generator<Int16Array> {
  const resampler = createResampler({ fromHz: sound.sampleRateHz, toHz: WIRE_SAMPLE_RATE_HZ });
  const step = Math.max(1, Math.floor((PIECE_SAMPLES * sound.sampleRateHz) / WIRE_SAMPLE_RATE_HZ));
  for (let start = 0; start < sound.samples.length; start += step) {
    const piece = resampler.process(sound.samples.subarray(start, start + step));
    if (piece.length > 0) yield piece;
  }
  const rest = resampler.flush();
  if (rest.length > 0) yield rest;
}
