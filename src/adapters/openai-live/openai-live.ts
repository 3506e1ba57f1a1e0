// The transport for the OpenAI Live API (`gpt-live-1`) over WebSocket, with client delegation: the model talks and
// delegates tasks to the session. This file contains a session's start, frames and end, and the protocol's abilities;
// `translator.ts` interprets the events.
//
// FORKED-CONNECTION-1. The second attempt is made once, and receives all messages that were sent before.
// FORKED-CONNECTION-2. Events of the first attempt are dropped once it has failed.

import { createHash } from 'node:crypto';
import { Subject, type Observable } from 'rxjs';
import { z } from 'zod';
import { wallTime } from '../../actors/ports/environment.ts';
import { unmarkedNotes, type NoteWriter } from '../../actors/notes/note-marks.ts';
import { type AudioFrame, frameDurationMs } from '../../voice/audio/audio-frame.ts';
import { createBoundedBuffer } from '../../voice/audio/bounded-buffer.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportConfiguration,
  TransportConnection,
  TransportContext,
  TransportEvent,
} from '../../voice/connection/transport.ts';
import { spokenLead } from '../../voice/spoken-lead.ts';
import { classifyRefusedStart } from '../socket/close-codes.ts';
import { bearerAddress } from '../socket/dial-options.ts';
import { takeEvent } from '../socket/event-table.ts';
import { createHeldStream } from '../socket/held-stream.ts';
import {
  SocketConnection,
  type SocketTransport,
  type ConnectionDiagnostics,
} from '../socket/socket-connection.ts';
import type { Wire, WireConnection } from '../socket/wire.ts';
import { historyOf } from './appends.ts';
import { InputClock, SILENCE_FRAME_MS } from './input-clock.ts';
import { startInstructions } from './model-words.ts';
import { resolveOptions, type OpenaiLiveOptions, type OpenaiLiveSettings } from './options.ts';
import { Translator } from './translator.ts';
import type { ServerEvent } from './wire.ts';
import * as wire from './wire.ts';

/** The transport of `openaiLive`; its connections also report server messages that they could not use. */
export type OpenaiLiveTransport = SocketTransport;

/**
 * Creates a transport to the OpenAI Live API. Uses the `ws` package, an optional peer dependency. The model listens and
 * speaks at the same time, and decides when to speak. It calls no tools: it delegates, and the session derives the calls.
 *
 * The server measures a session's time by the received audio: while the user sends none, the transport sends silence, which
 * is billed like an open microphone. A session's instructions cannot change: an agent that takes over gets a new
 * connection.
 *
 * This API has no browser keys: a page connects by WebRTC through your server.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION`, `INVALID_URL`, or
 * `MISSING_DEPENDENCY` if `ws` is not installed and no `webSocket` is given.
 */
export function openaiLive(options: OpenaiLiveOptions = {}): OpenaiLiveTransport {
  const settings = resolveOptions(options);
  return {
    name: 'openai-live',
    modelId: settings.model,
    lead: spokenLead,
    capabilities: openaiLiveCapabilities(settings),
    connect(configuration, context) {
      const stored = storedSession(context.resume);
      const isSame = stored?.configuration === fingerprintOf(settings, configuration);
      if (!settings.store || !stored || !isSame) return dial(settings, configuration, context);
      return new ForkedConnection({
        fork: () => dial(settings, configuration, context, stored),
        fresh: () => dial(settings, configuration, context),
        maxBufferedAudioMs: settings.maxBufferedAudioMs,
      });
    },
  };
}

function dial(
  settings: OpenaiLiveSettings,
  configuration: TransportConfiguration,
  context: TransportContext,
  forkOf?: StoredSession,
): SocketConnection {
  return new SocketConnection(
    {
      ...settings,
      connectTimeoutMs: forkOf ? settings.forkTimeoutMs : settings.connectTimeoutMs,
      inputSampleRateHz: settings.sampleRateHz,
      address: () => bearerAddress(settings, () => settings.url(forkOf?.sessionId)),
    },
    context,
    (connection) =>
      new LiveWire(
        {
          settings,
          configuration,
          forkOf: forkOf ?? null,
          history: context.history,
          notes: context.notes,
        },
        connection,
      ),
  );
}

const storedSessionSchema = z.object({
  sessionId: z.string().min(1),
  configuration: z.string(),
  untaken: z.array(z.string()),
});

/** Returns the stored session that a resume value names; null for any other value. */
function storedSession(resume: unknown): StoredSession | null {
  const checked = storedSessionSchema.safeParse(resume);
  return checked.success ? checked.data : null;
}

/** The abilities of the Live protocol as this transport uses it. */
function openaiLiveCapabilities({
  sampleRateHz,
  store,
}: Pick<OpenaiLiveSettings, 'sampleRateHz' | 'store'>): TransportCapabilities {
  return Object.freeze({
    inputSampleRateHz: sampleRateHz,
    outputSampleRateHz: sampleRateHz,
    output: 'audio',
    utterances: 'inferred',
    endsUtterances: true,
    responds: 'by_itself',
    // Only a response with a single possible cause has its request's key.
    correlatesResponses: true,
    // The model keeps speaking, but the transport drops its audio.
    cancelsResponses: true,
    truncatesAudio: false,
    deletesItems: false,
    speaksOutOfBand: false,
    speaksInRealTime: true,
    silentContext: true,
    takesSystemMessages: true,
    toolCalls: 'delegation',
    defersToolResults: true,
    schedulesToolResults: false,
    updatesSession: false,
    resumes: store,
    acceptsImages: false,
    // The server states a session's end in `expires_at`.
    maxConnectionMs: null,
  });
}

/** The value of `transport.resumable`: a stored session that can be resumed. */
interface StoredSession {
  readonly sessionId: string;
  /** The fingerprint of its configuration: a fork inherits the configuration, so both must be equal. */
  readonly configuration: string;
  /** The texts that were sent to the session but not accepted yet. */
  readonly untaken: readonly string[];
}

interface LiveWireOptions {
  readonly settings: OpenaiLiveSettings;
  readonly configuration: TransportConfiguration;
  /** The session that the connection resumes; null for a new one. */
  readonly forkOf: StoredSession | null;
  /** Writes the notes that the session itself does not write. @defaultValue without marks */
  readonly notes?: NoteWriter | undefined;
  /** The conversation so far, as commands; called when the protocol session starts. */
  readonly history?: (() => readonly TransportCommand[]) | undefined;
}

/** Returns a fingerprint that is equal for equal configurations. */
function fingerprintOf(
  { model, voice }: Pick<OpenaiLiveSettings, 'model' | 'voice'>,
  configuration: TransportConfiguration,
): string {
  const text = JSON.stringify([model, voice, startInstructions(configuration)]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** One connection to the Live API. */
class LiveWire implements Wire {
  readonly #options: LiveWireOptions;
  readonly #connection: WireConnection;
  readonly #translator: Translator;
  readonly #notes: NoteWriter;
  readonly #clock: InputClock;
  readonly #silence: string;
  readonly #fingerprint: string;
  #isReady = false;
  #sessionId = '';
  /** The resume value offered last. */
  #offered = '';
  #cancelExpiry: () => void = () => {};

  constructor(options: LiveWireOptions, connection: WireConnection) {
    this.#options = options;
    this.#connection = connection;
    this.#notes = options.notes ?? unmarkedNotes;
    const { sampleRateHz } = options.settings;
    this.#fingerprint = fingerprintOf(options.settings, options.configuration);
    const frame = new Int16Array((sampleRateHz * SILENCE_FRAME_MS) / 1000);
    this.#silence = wire.audioAppendText(encodePcm16Base64(frame));
    this.#clock = new InputClock(connection.environment, () => connection.send(this.#silence));
    this.#translator = new Translator(connection, options.settings, this.#clock, this.#notes);
  }

  start(): readonly string[] {
    const { settings, configuration, forkOf, history } = this.#options;
    const eventId = this.#translator.newEventId();
    const start = forkOf
      ? wire.forkStart(eventId, settings)
      : wire.sessionStart(
          eventId,
          settings,
          startInstructions(configuration),
          historyOf(history?.() ?? [], this.#notes),
        );
    return [JSON.stringify(start)];
  }

  write(command: TransportCommand): readonly string[] {
    const events = this.#translator.toWire(command);
    this.#offer();
    return events.map((event) => JSON.stringify(event));
  }

  writeAudio(frame: AudioFrame): string {
    this.#clock.sent(frameDurationMs(frame));
    return wire.audioAppendText(encodePcm16Base64(frame.samples));
  }

  read(text: string): void {
    takeEvent(wire.parseServerEvent(text), this.#connection, (event) => this.#onEvent(event));
  }

  /** Asks the server to close, so that it first completes its session record. */
  farewell(): readonly string[] {
    return [JSON.stringify(wire.sessionClose(this.#translator.newEventId()))];
  }

  stop(): void {
    this.#cancelExpiry();
    this.#clock.stop();
    this.#translator.stop();
  }

  #onEvent(event: ServerEvent): void {
    if (event.type === 'session.started') this.#onStarted(event.session);
    else if (event.type === 'session.closed') this.#onClosed(event);
    else {
      this.#translator.fromWire(event);
      this.#offer();
      // No other event has been sent yet, so the error concerns session.start, with or without an event id.
      if (event.type === 'error' && !this.#isReady)
        this.#connection.finish(classifyRefusedStart(event.error));
    }
  }

  #onStarted(session: { readonly id: string; readonly expires_at?: number | null }): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#sessionId = session.id;
    const { forkOf, history } = this.#options;
    const untaken = forkOf?.untaken.flatMap((text) => this.#translator.tell(text)) ?? [];
    for (const event of untaken) this.#connection.send(JSON.stringify(event));
    this.#clock.start();
    this.#connection.ready(forkOf !== null, forkOf === null && history !== undefined);
    this.#offer();
    if (session.expires_at) this.#watchExpiry(session.expires_at * 1000);
  }

  /** Offers the resume value if it has changed. */
  #offer(): void {
    if (!this.#options.settings.store || !this.#isReady) return;
    const resume: StoredSession = {
      sessionId: this.#sessionId,
      configuration: this.#fingerprint,
      untaken: this.#translator.untaken,
    };
    const offered = JSON.stringify(resume);
    if (offered === this.#offered) return;
    this.#offered = offered;
    this.#connection.emit({ type: 'transport.resumable', resume });
  }

  #watchExpiry(expiresAt: number): void {
    const { clock, scheduler } = this.#connection.environment;
    const { expiryNoticeMs } = this.#options.settings;
    const delayMs = expiresAt - expiryNoticeMs - wallTime(clock);
    // An earlier time shows that the client and server clocks differ.
    if (delayMs <= 0) return;
    this.#cancelExpiry = scheduler.schedule(
      () => this.#connection.emit({ type: 'transport.expiring', inMs: expiryNoticeMs }),
      delayMs,
      { isBackground: true },
    );
  }

  #onClosed({ reason, usage }: Extract<ServerEvent, { type: 'session.closed' }>): void {
    if (usage)
      this.#connection.emit({
        type: 'usage.reported',
        inputTokens: null,
        outputTokens: null,
        raw: usage,
      });
    this.#connection.finish({
      code: null,
      reason: `The server ended the session: ${this.#connection.redact(reason)}`,
      retryable: !FINAL_REASONS.has(reason),
    });
  }
}

/** The reasons after which a new session would end the same way: a requested end, or the content. */
const FINAL_REASONS: ReadonlySet<string> = new Set(['close_requested', 'content']);

type Attempt = TransportConnection & { readonly diagnostics: ConnectionDiagnostics };

interface ForkedConnectionOptions {
  readonly fork: () => Attempt;
  readonly fresh: () => Attempt;
  readonly maxBufferedAudioMs: number;
}

/**
 * A connection that resumes a stored session if the server permits it, and otherwise starts a new one, so that a
 * missing recording does not end the conversation.
 *
 *   forking ──ready──▶ settled
 *      └── refused, too late ──▶ fresh (settled, whether or not it succeeds)
 *
 * Owns: the commands and audio sent before this is settled.
 */
class ForkedConnection implements TransportConnection {
  readonly events: Observable<TransportEvent>;
  readonly audio: Observable<AudioFrame>;
  readonly #events = createHeldStream<TransportEvent>();
  readonly #audio = new Subject<AudioFrame>();
  readonly #options: ForkedConnectionOptions;
  readonly #commands: TransportCommand[] = [];
  readonly #frames;
  #attempt: Attempt;
  #isSettled = false;

  constructor(options: ForkedConnectionOptions) {
    this.#options = options;
    this.events = this.#events.stream;
    this.audio = this.#audio.asObservable();
    this.#frames = createBoundedBuffer({ maxMs: options.maxBufferedAudioMs, keep: 'newest' });
    this.#attempt = options.fork();
    this.#listen(this.#attempt);
  }

  sendAudio(frame: AudioFrame): void {
    if (!this.#isSettled) this.#frames.push(frame);
    else this.#attempt.sendAudio(frame);
  }

  send(command: TransportCommand): void {
    if (!this.#isSettled) this.#commands.push(command);
    else this.#attempt.send(command);
  }

  close(): Promise<void> {
    this.#isSettled = true;
    return this.#attempt.close();
  }

  get diagnostics(): ConnectionDiagnostics {
    return this.#attempt.diagnostics;
  }

  #listen(attempt: Attempt): void {
    const isOurs = (): boolean => this.#attempt === attempt;
    attempt.audio.subscribe((frame) => {
      if (isOurs()) this.#audio.next(frame);
    });
    attempt.events.subscribe({
      next: (event) => {
        if (isOurs()) this.#onEvent(event);
      },
      complete: () => {
        if (!isOurs()) return;
        this.#events.complete();
        this.#audio.complete();
      },
    });
  }

  #onEvent(event: TransportEvent): void {
    // FORKED-CONNECTION-2: the final reason includes earlier reports.
    if (this.#isSettled) {
      this.#events.next(event);
    } else if (event.type === 'transport.ready') {
      this.#events.next(event);
      this.#settle();
    } else if (event.type === 'transport.closed') {
      this.#events.next({
        type: 'transport.error',
        code: 'RESUME_REFUSED',
        message: `The stored session could not be resumed, so a new one begins: ${event.reason}`,
        responseKey: null,
        raw: null,
      });
      this.#attempt = this.#options.fresh();
      this.#listen(this.#attempt);
      this.#settle();
    }
  }

  /** Sends the held commands and audio to this attempt, which queues them until it is ready. */
  #settle(): void {
    this.#isSettled = true;
    for (const command of this.#commands.splice(0)) this.#attempt.send(command);
    for (const frame of this.#frames.drain()) this.#attempt.sendAudio(frame);
  }
}
