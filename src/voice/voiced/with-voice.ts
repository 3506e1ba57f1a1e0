// `withVoice` makes a transport with a text model look like a transport with a speaking model. A voice speaks the
// model's text, and the session receives audio, words and events as from any other transport.
//
// Owns:     which responses are spoken, in which order, and which of them were cancelled; the items that can still be
//           truncated, and the messages that replace them in the model's conversation. The model remembers the text
//           that it wrote, and is informed which part of it the user heard.
// Does not: speak the responses (spoken-response), or track playback (the client reports this).
//
// Invariants
//   VOICED-CONNECTION-1. Responses are spoken one after another, in the order in which they start.
//   VOICED-CONNECTION-2. A cancellation also cancels earlier requests that the model has not started to answer. If the
//        model is generating, the cancellation is also sent to the model.
//   VOICED-CONNECTION-3. A failure of the voice is reported once per response, as `transport.error`; the response then
//        ends as failed.
//   VOICED-MEMORY-1. If the transport can delete an item, the unheard part is removed by replacing the item with a
//        message that contains the heard part. The removed part is not restored later.
//   VOICED-MEMORY-2. On other transports, the session informs the model which part of a truncated item the user heard,
//        and this module informs the model about text that was never spoken.

import { Observable, type Subscriber } from 'rxjs';
import { z } from 'zod';
import { unmarkedNotes } from '../../actors/notes/note-marks.ts';
import { check, type ChecksOf } from '../../values/checks.ts';
import { codeOf, ConfigurationError, messageOf } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { readable } from '../../values/plain-checks.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { isSampleRateHz } from '../audio/resampler.ts';
import type {
  Transport,
  TransportCapabilities,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../connection/transport.ts';
import { noteMessages } from '../output/replay.ts';
import { UNPLAYED_NOTE, unheardNote } from '../output/speech-prompts.ts';
import { checkVoice, soundOf, type Voice } from '../speech/voice.ts';
import {
  SpokenResponse,
  type Ended,
  type ResponseOwner,
  type SpeechSettings,
  type SpokenItem,
  type Started,
  type Written,
} from './spoken-response.ts';

/** The number of newest items that can still be truncated. */
const MAX_ITEMS = 100;

/** The options of `withVoice`. */
export interface WithVoiceOptions {
  /** The text-to-speech voice: `aiSdkVoice(…)` from `offstage/ai-sdk-speech`, or your own implementation. */
  readonly voice: Voice;
  /** The sample rate of the audio that the session receives; the voice's audio is resampled. @defaultValue 24000 */
  readonly sampleRateHz?: number;
  /**
   * The next sentence is synthesised when at most this much audio is left to play, in milliseconds. If the user
   * interrupts, up to this much audio is wasted, although it has been paid for. @defaultValue 5000
   */
  readonly maxAheadMs?: number;
  /** The speaking rate, from 0.25 to 4; 1 is the normal pace of the voice. @defaultValue 1 */
  readonly speed?: number;
  /**
   * Returns the text to synthesise for a sentence of the model. If the result is empty, the sentence is skipped.
   * @defaultValue removes Markdown markup
   */
  readonly spoken?: (text: string) => string;
}

/** The defaults of `withVoice`: 24 kHz, 5 s ahead, speed 1. */
export const defaultWithVoiceOptions = {
  sampleRateHz: 24_000,
  maxAheadMs: 5000,
  speed: 1,
} as const satisfies Partial<WithVoiceOptions>;

const optionsSchema = z.strictObject({
  voice: z.custom<Voice>().optional(),
  sampleRateHz: z.number().refine(isSampleRateHz, 'expected 8000 to 48000').optional(),
  maxAheadMs: z.number().nonnegative().optional(),
  speed: z.number().min(0.25).max(4).optional(),
  spoken: z.custom<(text: string) => string>((value) => typeof value === 'function').optional(),
} satisfies ChecksOf<WithVoiceOptions>);

/** A transport whose text is spoken by a voice of the session. */
export interface VoicedTransport extends Transport {
  readonly voice: Voice;
}

/** The public `withVoice`. */
export function withVoice(transport: Transport, options: WithVoiceOptions): VoicedTransport {
  const { voice, sampleRateHz, maxAheadMs, speed, spoken } = checked(options);
  const { capabilities: inner } = transport;
  if (inner.output !== 'text') {
    throw new ConfigurationError(
      'TEXT_OUTPUT_NEEDED',
      `withVoice: the model of \`${transport.name}\` speaks itself. Expected a transport that answers in text, such as openaiRealtime({ output: 'text' })`,
    );
  }
  return {
    name: `${transport.name}+voice`,
    lead: transport.lead,
    voice,
    capabilities: Object.freeze({
      ...inner,
      output: 'audio',
      outputSampleRateHz: sampleRateHz,
      truncatesAudio: cutsWords(inner),
    }),
    connect: (configuration, context) =>
      voicedConnection(transport.connect(configuration, context), context, inner, {
        sampleRateHz,
        maxAheadMs,
        async *sound(text, signal) {
          const words = spoken(text);
          if (words !== '') yield* soundOf(voice, { text: words, speed, signal });
        },
      }),
  };
}

function checked(options: WithVoiceOptions) {
  const given = readable('withVoice', options);
  check('withVoice', optionsSchema, given);
  checkVoice('voice', given.voice);
  return { spoken: withoutMarks, ...defaultWithVoiceOptions, ...given };
}

/** Returns the text as it is read aloud; empty if there is nothing to say. */
function withoutMarks(text: string): string {
  const words = text
    .replace(/!?\[([^[\]\n]*)\]\([^)[\n]*\)/g, '$1')
    .replace(/[*_`#~|>]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /[\p{L}\p{N}]/u.test(words) ? words : '';
}

/** Returns whether this transport can truncate text that the model has written. */
function cutsWords(can: TransportCapabilities): boolean {
  return can.deletesItems && can.silentContext;
}

interface Remembered {
  readonly item: SpokenItem;
  /** The id of the message in the model's conversation; null if there is no such message. */
  memoryId: string | null;
  text: string;
  heardMs: number;
  cuts: number;
}

/** A request that the model has not started to answer. */
interface Request {
  readonly isOutOfBand: boolean;
  isCalledOff: boolean;
}

function voicedConnection(
  inner: TransportConnection,
  { environment, notes = unmarkedNotes }: TransportContext,
  can: TransportCapabilities,
  settings: SpeechSettings,
): TransportConnection & ResponseOwner {
  const requests = new Map<string, Request>();
  /** The responses that have not ended, in order. */
  let responses: readonly SpokenResponse[] = [];
  let hearing: Subscriber<TransportEvent> | null = null;
  let audioListener: Subscriber<AudioFrame> | null = null;
  /** The newest items that can be truncated, by id. */
  const spokenItems = new Map<string, Remembered>();
  const emit = (event: TransportEvent): void => hearing?.next(event);
  // The inner connection buffers its events until the session subscribes.
  const events = new Observable<TransportEvent>((listener) => {
    hearing = listener;
    return inner.events.subscribe({
      next: handle,
      error: (error: unknown) => listener.error(error),
      complete: () => listener.complete(),
    });
  });
  const audio = new Observable<AudioFrame>((listener) => {
    audioListener = listener;
  });

  function handle(event: TransportEvent): void {
    if (event.type === 'response.started') return modelStarted(event);
    if (event.type === 'response.ended') return modelEnded(event);
    if (event.type === 'assistant.transcribed') return modelWrote(event);
    if (event.type === 'transport.error') requests.delete(event.responseKey ?? '');
    const isClosed = event.type === 'transport.closed';
    if (isClosed) abandon();
    emit(event);
    if (isClosed) audioListener?.complete();
  }

  function modelStarted(event: Started): void {
    const { responseId, responseKey } = event;
    if (find(responseId)) return;
    const request = requests.get(responseKey ?? '');
    requests.delete(responseKey ?? '');
    const response = new SpokenResponse(event, request?.isOutOfBand === true, self);
    responses = [...responses, response];
    emit(event);
    if (request?.isCalledOff) response.cancel();
    if (responses[0] === response) response.begin();
  }

  /** Handles text from the model. Text of a response that has ended is dropped. */
  function modelWrote(event: Written): void {
    const response = find(event.responseId);
    response?.written(event);
    response?.items.forEach((item) => remember(item));
  }

  function modelEnded(event: Ended): void {
    requests.delete(event.responseKey ?? '');
    const response = find(event.responseId);
    // If the response is unknown, the request has failed.
    if (response === undefined) return emit(event);
    response.modelEnded(event);
  }

  function cancel(): void {
    const isGenerating = requests.size > 0 || responses.some((response) => response.isGenerating);
    for (const response of responses) response.cancel();
    for (const request of requests.values()) request.isCalledOff = true;
    if (isGenerating) inner.send({ type: 'response.cancel' });
  }

  function abandon(): void {
    for (const response of responses) response.abandon();
    responses = [];
    requests.clear();
  }

  function find(responseId: string): SpokenResponse | undefined {
    return responses.find((response) => response.responseId === responseId);
  }

  /** Truncates an item to the part that the user has heard. */
  function cutTo(itemId: string, playedMs: number): void {
    const remembered = spokenItems.get(itemId);
    if (remembered) cut(remembered, playedMs, false);
  }

  /** Records an item that can be truncated from now on. */
  function remember(item: SpokenItem): void {
    if (item.isOutOfBand || spokenItems.has(item.itemId)) return;
    const { itemId } = item;
    const begun = { item, memoryId: itemId, text: '', heardMs: Number.POSITIVE_INFINITY, cuts: 0 };
    spokenItems.set(itemId, begun);
    forgetOldest(spokenItems, MAX_ITEMS);
  }

  /** Corrects the model's memory after a response that was only partly spoken. */
  function correctMemory({ items, isOutOfBand }: SpokenResponse): void {
    if (isOutOfBand) return;
    if (cutsWords(can)) {
      // The model may have written more before it was informed of the cancellation.
      for (const { itemId } of items) {
        const remembered = spokenItems.get(itemId);
        if (remembered) cut(remembered, Number.POSITIVE_INFINITY, true);
      }
      return;
    }
    const soundMs = items.reduce((sum, item) => sum + item.soundMs, 0);
    const isWritten = items.some(({ written }) => written.trim() !== '');
    if (!isWritten || !can.silentContext) return;
    const spoken = items.map((item) => item.textUntil(Number.POSITIVE_INFINITY)).join('');
    const note = soundMs === 0 ? UNPLAYED_NOTE : unheardNote(spoken.trim(), soundMs);
    const noteId = environment.ids.next('note');
    for (const message of noteMessages(notes, noteId, note)) inner.send(message);
  }

  function cut(remembered: Remembered, playedMs: number, isUnsure: boolean): void {
    if (!cutsWords(can)) return;
    const { item, memoryId, cuts } = remembered;
    remembered.heardMs = Math.min(remembered.heardMs, playedMs);
    const text = item.textUntil(remembered.heardMs).trimEnd();
    const isKnown = cuts > 0 || !isUnsure;
    const before = cuts > 0 ? remembered.text : item.written.trimEnd();
    if (memoryId === null || (isKnown && text === before)) return;
    remembered.cuts += 1;
    remembered.text = text;
    remembered.memoryId = text === '' ? null : `${item.itemId}.${remembered.cuts}`;
    if (remembered.memoryId !== null) {
      inner.send({
        type: 'message.add',
        itemId: remembered.memoryId,
        role: 'assistant',
        text,
        afterItemId: memoryId,
      });
    }
    inner.send({ type: 'item.delete', itemId: memoryId });
  }

  const self: TransportConnection & ResponseOwner = {
    events,
    audio,
    environment,
    settings,
    sendAudio: (frame) => inner.sendAudio(frame),
    send(command) {
      if (command.type === 'response.cancel') return cancel();
      if (command.type === 'playout.truncate') return cutTo(command.itemId, command.playedMs);
      if (command.type === 'response.request') {
        const { responseKey, outOfBand: isOutOfBand = false } = command;
        requests.set(responseKey, { isOutOfBand, isCalledOff: false });
      }
      inner.send(command);
    },
    close() {
      abandon();
      return inner.close();
    },
    emit,
    emitAudio: (frame) => audioListener?.next(frame),
    responseFailed(response, error) {
      const code = codeOf(error, 'VOICE_FAILED');
      const message = `The voice failed: ${messageOf(error)}`;
      emit({ type: 'transport.error', code, message, responseKey: null, raw: error });
      if (response.isGenerating && can.cancelsResponses) inner.send({ type: 'response.cancel' });
    },
    responseEnded(response, end) {
      responses = responses.filter((other) => other !== response);
      const isWhole = end.status === 'completed' || end.status === 'incomplete';
      if (!isWhole) correctMemory(response);
      emit(end);
      responses[0]?.begin();
    },
  };
  return self;
}
