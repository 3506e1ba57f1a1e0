// The fake of the OpenAI Realtime server (GA). The local voice server (`RealtimeSession`) implements sessions, items
// and responses, with refusals that were captured from the real server. This module adds the transcriber, the script
// and the faults.
//
// Every event is typed against the official union at the place where it is created (`wire-events.ts`).

import { parseClientFrame } from '../../../adapters/local-voice/client-events.ts';
import { RealtimeSession } from '../../../adapters/local-voice/realtime-session.ts';
import type { ServerEventBody } from '../../../adapters/local-voice/wire-events.ts';
import type { FakeItem, VoiceCause, VoiceStep } from '../engine/control.ts';
import type { EnginePorts, VoiceEngine } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/reply-record.ts';
import { PIECE_MS, speechMs, tone } from '../engine/sound.ts';
import { timersOf } from '../engine/timers.ts';
import { fakeTranscriber, transcriptOf, type FakeTranscriber } from './fake-transcriber.ts';
import { causeOf, causeOfInput, fakeItems, openCalls, type ItemNotes } from './memory.ts';
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

const DEFAULT_MODEL = 'gpt-realtime-2.1';
const DEFAULT_SPEED = 4;
const CLOSE_EXPIRED = 1001;

/** A turn that the test has requested. */
interface OwnTurn {
  readonly reply: ReplyRecord;
  readonly steps: readonly VoiceStep[];
}

/** The request for a response, and the response's cause. */
interface Asking {
  readonly own: OwnTurn | null;
  /** If null, the newest item is the cause. */
  readonly cause: VoiceCause | null;
  readonly instructions: string | null;
}

const noRequester: Asking = { own: null, cause: null, instructions: null };

export function realtimeEngine(ports: EnginePorts): VoiceEngine {
  const spoken = new Map<string, string>();
  const duplicatedTranscripts = new Set<string>();
  const ownTurns: OwnTurn[] = [];
  let transcriber: FakeTranscriber | null = null;
  /** The request for the next response, or `noRequester` if the end of an utterance starts it. */
  let asking: Asking = noRequester;
  let lastCommitted: string | null = null;
  let isConfigured = false;
  let isOver = false;
  const items = (): readonly FakeItem[] => fakeItems(session.items, notes());
  const notes = (): ItemNotes => ({ spoken, generated: watch.generated });
  const causeNow = (): VoiceCause => asking.cause ?? causeOf(session.items, notes());
  const { environment, url, speed } = ports;
  const timers = timersOf(environment.scheduler);
  const model = scriptModel(environment.scheduler, takeTurn);
  const watch = responseWatch(ports, say);
  const session = new RealtimeSession({
    environment,
    engine: model.voice,
    textModel: model,
    defaultVoice: 'marin',
    model: url.searchParams.get('model') ?? DEFAULT_MODEL,
    preset: ports.preset,
    send: onEvent,
    createInput: (events) => {
      transcriber = fakeTranscriber(events, (itemId, text) => {
        spoken.set(itemId, text);
        lastCommitted = itemId;
      });
      return transcriber;
    },
    whenReady: () =>
      new Promise((resolve) => {
        environment.scheduler.schedule(resolve, PIECE_MS / (speed ?? DEFAULT_SPEED));
      }),
  });

  function refusalOf(type: string): string | null {
    const { faults } = ports;
    if (type === 'session.update' && faults.refuseConfiguration !== null) {
      const code = faults.refuseConfiguration;
      faults.refuseConfiguration = null;
      return code;
    }
    if (type === 'response.create' && faults.refuseResponses.times > 0) {
      faults.refuseResponses.times -= 1;
      return faults.refuseResponses.code;
    }
    return null;
  }

  /** Called right after `response.created` has been sent. */
  function takeTurn(): readonly VoiceStep[] | null {
    const { own, instructions } = asking;
    return own?.steps ?? ports.nextTurn(causeNow(), instructions);
  }

  function takeOwnTurn(): void {
    if (isOver || watch.isBusy) return;
    const own = ownTurns.shift();
    if (own === undefined) return;
    const before = asking;
    asking = { own, cause: own.reply.cause, instructions: null };
    session.respond();
    asking = before;
  }

  function onEvent(text: string): void {
    const event = JSON.parse(text) as ServerEventBody;
    if (event.type === 'rate_limits.updated') {
      say({ type: 'rate_limits.updated', rate_limits: rateLimits });
      return;
    }
    if (event.type === 'response.created') {
      watch.begin(event, asking.own?.reply ?? null, causeNow());
    } else {
      watch.see(event);
    }
    ports.send(event, text);
    after(event);
  }

  function after(event: ServerEventBody): void {
    watch.after(event);
    if (event.type === 'session.updated' && !isConfigured) {
      isConfigured = true;
      ports.configured();
    } else if (event.type === 'response.done') {
      // The session can accept another response before it reports the end of this one.
      takeOwnTurn();
    } else if (
      event.type === 'conversation.item.input_audio_transcription.completed' &&
      duplicatedTranscripts.delete(event.item_id)
    ) {
      say(event);
    }
  }

  function say(event: ServerEventBody): void {
    ports.send({ ...event, event_id: ports.environment.ids.next('event') });
  }

  return {
    open: () => session.open(),
    receive(text) {
      const { eventId, event } = parseClientFrame(text);
      if (event instanceof Error) {
        session.receive(text);
        return;
      }
      const { type } = event;
      const body: Readonly<Record<string, unknown>> = { ...event };
      if (type !== 'input_audio_buffer.append') ports.received({ type, body });
      const refusal = refusalOf(type);
      if (refusal !== null) {
        const kind = refusal === 'server_error' ? refusal : 'invalid_request_error';
        const message = `Refused on purpose: ${type}`;
        const error = { type: kind, code: refusal, message, param: null, event_id: eventId };
        say({ type: 'error', error });
        return;
      }
      if (event.type === 'response.create') {
        const { input, instructions } = event.response ?? {};
        const cause = input ? causeOfInput(input, items()) : null;
        asking = { own: null, cause, instructions: instructions ?? null };
      }
      session.receive(text);
      asking = noRequester;
    },
    end() {
      isOver = true;
      timers.stop();
      session.close();
    },
    userBegins: () => transcriber?.begin(),
    /** The protocol sends the transcript only after the utterance has ended. */
    userSays() {},
    userEnds(text, _rest, transcript) {
      const words = transcriptOf(text, transcript, timers);
      lastCommitted = null;
      transcriber?.end({ text, words });
      if (transcript === 'duplicated' && lastCommitted !== null) {
        duplicatedTranscripts.add(lastCommitted);
      }
    },
    answers(steps) {
      const reply = ports.beginReply(environment.ids.next('reply'), { type: 'nothing' });
      ownTurns.push({ reply, steps });
      takeOwnTurn();
      return reply;
    },
    get heardMs() {
      return transcriber?.heardMs ?? 0;
    },
    get instructions() {
      return session.config.instructions;
    },
    get tools() {
      return session.config.tools.map(({ name, description, parameters }) => ({
        name,
        description: description ?? '',
        parameters: parameters ?? null,
      }));
    },
    get items() {
      return items();
    },
    get openCalls() {
      return openCalls(session.items);
    },
    expire() {
      const code = 'session_expired';
      const message = 'Your session hit the maximum duration of 60 minutes.';
      const type = 'invalid_request_error';
      say({ type: 'error', error: { type, code, message, param: null, event_id: null } });
      ports.close(CLOSE_EXPIRED, '');
    },
    unknownEvent: (type) => ({
      type,
      event_id: ports.environment.ids.next('event'),
      weather: 'fine',
    }),
  };
}

/** The remaining limits of an account that has used little. */
const rateLimits = [
  { name: 'requests' as const, limit: 1_000, remaining: 999, reset_seconds: 60 },
  { name: 'tokens' as const, limit: 50_000, remaining: 49_000, reset_seconds: 60 },
];

const BYTES_PER_MS = 48;

type EventOf<Type extends ServerEventBody['type']> = Extract<ServerEventBody, { type: Type }>;
type Delta = EventOf<
  | 'response.output_audio.delta'
  | 'response.output_audio_transcript.delta'
  | 'response.output_text.delta'
>;

interface Watched {
  readonly reply: ReplyRecord;
  readonly isOutOfBand: boolean;
  /** The last delta of each type. */
  readonly deltas: Map<string, Delta>;
}

/** Records the responses of a session for the test, and applies the faults that send a part of them again. */
function responseWatch(ports: EnginePorts, say: (event: ServerEventBody) => void) {
  const responses = new Map<string, Watched>();
  /** The items that the model has generated. */
  const generated = new Set<string>();

  function end({ response }: EventOf<'response.done'>): void {
    const watched = responses.get(response.id ?? '');
    if (watched === undefined) return;
    responses.delete(response.id ?? '');
    const { status } = response;
    const isPlain = status === 'cancelled' || status === 'failed';
    watched.reply.end(isPlain ? status : 'completed');
    if (status !== 'cancelled' || !ports.faults.deltasAfterCancel) return;
    for (const delta of watched.deltas.values()) say(delta);
  }

  return {
    generated,
    /** Returns whether a response that belongs to the conversation is in progress. */
    get isBusy(): boolean {
      return [...responses.values()].some(({ isOutOfBand }) => !isOutOfBand);
    },
    begin(
      { response }: EventOf<'response.created'>,
      own: ReplyRecord | null,
      cause: VoiceCause,
    ): void {
      const id = response.id ?? '';
      responses.set(id, {
        reply: own ?? ports.beginReply(id, cause),
        isOutOfBand: response.conversation_id === null,
        deltas: new Map(),
      });
    },
    /** Called right before an event is sent. */
    see(event: ServerEventBody): void {
      if (event.type === 'response.output_item.added') {
        generated.add(event.item.id ?? '');
        return;
      }
      if (
        event.type !== 'response.output_audio.delta' &&
        event.type !== 'response.output_audio_transcript.delta' &&
        event.type !== 'response.output_text.delta'
      ) {
        return;
      }
      const watched = responses.get(event.response_id);
      if (watched === undefined) return;
      watched.deltas.set(event.type, event);
      if (event.type === 'response.output_audio.delta') {
        watched.reply.audioMs += Buffer.byteLength(event.delta, 'base64') / BYTES_PER_MS;
      } else {
        watched.reply.text += event.delta;
      }
    },
    /** Called right after an event has been sent. */
    after(event: ServerEventBody): void {
      const { faults } = ports;
      if (event.type === 'response.function_call_arguments.done' && faults.duplicateCalls) {
        say(event);
      } else if (
        event.type === 'response.output_item.done' &&
        event.item.type === 'function_call' &&
        faults.duplicateCalls
      ) {
        say(event);
      } else if (event.type === 'response.done') {
        end(event);
      }
    },
  };
}

const SAMPLE_RATE_HZ = 24_000;
const CHARACTERS_PER_TOKEN = 4;
/** When the model writes, it streams about twenty words per second. */
const WRITTEN_WORD_MS = 50;

/** A script that acts as a session's language model and voice: it supplies text and calls, and a tone as speech. */
function scriptModel(
  scheduler: Scheduler,
  takeTurn: () => readonly VoiceStep[] | null,
): TextModel & { readonly voice: SpeechEngine } {
  /** The duration of sentences in steps that specify a duration. */
  const chosenMs = new Map<string, number>();
  /** The voice: a tone that is as long as the spoken text. It does not transcribe, because `fakeTranscriber` does. */
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

  /** Streams the text word by word, like a real model. */
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
