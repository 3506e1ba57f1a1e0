// The fake of the OpenAI Realtime server (GA). The local voice server (`RealtimeSession`) implements sessions, items and
// responses, with refusals captured from the real server; this module adds its transcriber, its script and its faults.
//
// Every event is typed against the official union where it is created (`wire-events.ts`).

import { parseClientFrame } from '../../../adapters/local-voice/client-events.ts';
import { RealtimeSession } from '../../../adapters/local-voice/realtime-session.ts';
import type { ServerEventBody } from '../../../adapters/local-voice/wire-events.ts';
import type {
  FakeItem,
  FakeTool,
  TranscriptTiming,
  VoiceCause,
  VoiceStep,
} from '../engine/control.ts';
import type { EnginePorts, VoiceEngine } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/fake-replies.ts';
import { PIECE_MS } from '../engine/sound.ts';
import { Timers } from '../engine/timers.ts';
import { FakeTranscriber, transcriptOf } from './fake-transcriber.ts';
import { causeOf, causeOfInput, fakeItems, openCalls, type ItemNotes } from './memory.ts';
import { ResponseWatch } from './response-watch.ts';
import { ScriptModel } from './script-model.ts';
const DEFAULT_MODEL = 'gpt-realtime-2.1';
const DEFAULT_SPEED = 4;
const CLOSE_EXPIRED = 1001;

/** A turn that the test requested. */
interface OwnTurn {
  readonly reply: ReplyRecord;
  readonly steps: readonly VoiceStep[];
}

/** A response's requester and cause. */
interface Asking {
  readonly own: OwnTurn | null;
  /** If null, the cause is the newest item. */
  readonly cause: VoiceCause | null;
  readonly instructions: string | null;
}

const noRequester: Asking = { own: null, cause: null, instructions: null };

export class RealtimeEngine implements VoiceEngine {
  readonly #ports: EnginePorts;
  readonly #session: RealtimeSession;
  readonly #watch: ResponseWatch;
  readonly #spoken = new Map<string, string>();
  readonly #duplicatedTranscripts = new Set<string>();
  readonly #timers: Timers;
  readonly #ownTurns: OwnTurn[] = [];
  #transcriber: FakeTranscriber | null = null;
  /** The requester of the next response; `noRequester` if the end of an utterance starts it. */
  #asking: Asking = noRequester;
  #lastCommitted: string | null = null;
  #isConfigured = false;
  #isOver = false;

  constructor(ports: EnginePorts) {
    this.#ports = ports;
    const { environment, url, speed } = ports;
    this.#timers = new Timers(environment.scheduler);
    const model = new ScriptModel(environment.scheduler, () => this.#takeTurn());
    this.#watch = new ResponseWatch(ports, (event) => this.#say(event));
    this.#session = new RealtimeSession({
      environment,
      engine: model.voice,
      textModel: model,
      defaultVoice: 'marin',
      model: url.searchParams.get('model') ?? DEFAULT_MODEL,
      preset: ports.preset,
      send: (text) => this.#onEvent(text),
      createInput: (events) => {
        this.#transcriber = new FakeTranscriber(events, (itemId, text) => {
          this.#spoken.set(itemId, text);
          this.#lastCommitted = itemId;
        });
        return this.#transcriber;
      },
      whenReady: () =>
        new Promise((resolve) => {
          environment.scheduler.schedule(resolve, PIECE_MS / (speed ?? DEFAULT_SPEED));
        }),
    });
  }

  open(): void {
    this.#session.open();
  }

  receive(text: string): void {
    const { eventId, event } = parseClientFrame(text);
    if (event instanceof Error) {
      this.#session.receive(text);
      return;
    }
    const { type } = event;
    const body: Readonly<Record<string, unknown>> = { ...event };
    if (type !== 'input_audio_buffer.append') this.#ports.received({ type, body });
    const refusal = this.#refusalOf(type);
    if (refusal !== null) {
      const kind = refusal === 'server_error' ? refusal : 'invalid_request_error';
      const message = `Refused on purpose: ${type}`;
      const error = { type: kind, code: refusal, message, param: null, event_id: eventId };
      this.#say({ type: 'error', error });
      return;
    }
    if (event.type === 'response.create') {
      const { input, instructions } = event.response ?? {};
      const cause = input ? causeOfInput(input, this.items) : null;
      this.#asking = { own: null, cause, instructions: instructions ?? null };
    }
    this.#session.receive(text);
    this.#asking = noRequester;
  }

  end(): void {
    this.#isOver = true;
    this.#timers.stop();
    this.#session.close();
  }

  userBegins(): void {
    this.#transcriber?.begin();
  }

  /** The protocol sends words only after the end. */
  userSays(): void {}

  userEnds(text: string, _rest: string, transcript: TranscriptTiming): void {
    const words = transcriptOf(text, transcript, this.#timers);
    this.#lastCommitted = null;
    this.#transcriber?.end({ text, words });
    if (transcript === 'duplicated' && this.#lastCommitted !== null) {
      this.#duplicatedTranscripts.add(this.#lastCommitted);
    }
  }

  answers(steps: readonly VoiceStep[]): ReplyRecord {
    const { environment, replies } = this.#ports;
    const reply = replies.begin(environment.ids.next('reply'), { type: 'nothing' });
    this.#ownTurns.push({ reply, steps });
    this.#takeOwnTurn();
    return reply;
  }

  get heardMs(): number {
    return this.#transcriber?.heardMs ?? 0;
  }

  get instructions(): string {
    return this.#session.config.instructions;
  }

  get tools(): readonly FakeTool[] {
    return this.#session.config.tools.map(({ name, description, parameters }) => ({
      name,
      description: description ?? '',
      parameters: parameters ?? null,
    }));
  }

  get items(): readonly FakeItem[] {
    return fakeItems(this.#session.items, this.#notes);
  }

  get openCalls() {
    return openCalls(this.#session.items);
  }

  expire(): void {
    const code = 'session_expired';
    const message = 'Your session hit the maximum duration of 60 minutes.';
    const type = 'invalid_request_error';
    this.#say({ type: 'error', error: { type, code, message, param: null, event_id: null } });
    this.#ports.close(CLOSE_EXPIRED, '');
  }

  unknownEvent(type: string): object {
    return { type, event_id: this.#ports.environment.ids.next('event'), weather: 'fine' };
  }

  get #notes(): ItemNotes {
    return { spoken: this.#spoken, generated: this.#watch.generated };
  }

  #refusalOf(type: string): string | null {
    const { faults } = this.#ports;
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

  /** Called right after `response.created` was sent. */
  #takeTurn(): readonly VoiceStep[] | null {
    const { own, instructions } = this.#asking;
    return own?.steps ?? this.#ports.turns.next(this.#cause, instructions);
  }

  get #cause(): VoiceCause {
    return this.#asking.cause ?? causeOf(this.#session.items, this.#notes);
  }

  #takeOwnTurn(): void {
    if (this.#isOver || this.#watch.isBusy) return;
    const own = this.#ownTurns.shift();
    if (own === undefined) return;
    const before = this.#asking;
    this.#asking = { own, cause: own.reply.cause, instructions: null };
    this.#session.respond();
    this.#asking = before;
  }

  #onEvent(text: string): void {
    const event = JSON.parse(text) as ServerEventBody;
    if (event.type === 'rate_limits.updated') {
      this.#say({ type: 'rate_limits.updated', rate_limits: rateLimits });
      return;
    }
    if (event.type === 'response.created') {
      this.#watch.begin(event, this.#asking.own?.reply ?? null, this.#cause);
    } else {
      this.#watch.see(event);
    }
    this.#ports.send(event, text);
    this.#after(event);
  }

  #after(event: ServerEventBody): void {
    this.#watch.after(event);
    if (event.type === 'session.updated' && !this.#isConfigured) {
      this.#isConfigured = true;
      this.#ports.configured();
    } else if (event.type === 'response.done') {
      // The session releases the response before it reports its end.
      this.#takeOwnTurn();
    } else if (
      event.type === 'conversation.item.input_audio_transcription.completed' &&
      this.#duplicatedTranscripts.delete(event.item_id)
    ) {
      this.#say(event);
    }
  }

  #say(event: ServerEventBody): void {
    this.#ports.send({ ...event, event_id: this.#ports.environment.ids.next('event') });
  }
}

/** The remaining limits of an account with little usage. */
const rateLimits = [
  { name: 'requests' as const, limit: 1_000, remaining: 999, reset_seconds: 60 },
  { name: 'tokens' as const, limit: 50_000, remaining: 49_000, reset_seconds: 60 },
];
