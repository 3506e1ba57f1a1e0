// The transport for the OpenAI Live API (`gpt-live-1`) over WebSocket, with client delegation: the model talks and
// delegates tasks to the session. This file handles the start, the frames and the end of a session, and states the
// protocol's abilities. `translator.ts` interprets the events.
//
// FORKED-CONNECTION-1. There is at most one second attempt. It receives all messages that have been sent so far.
// FORKED-CONNECTION-2. After the first attempt has failed, its events are dropped.

import { createHash } from 'node:crypto';
import { Subject } from 'rxjs';
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

/**
 * The transport that `openaiLive` returns. Its connections also report server messages that they could not interpret.
 */
export type OpenaiLiveTransport = SocketTransport;

/**
 * Creates a transport to the OpenAI Live API. Uses the `ws` package, an optional peer dependency. The model listens and
 * speaks at the same time and decides on its own when to speak. It calls no tools. Instead it delegates, and the
 * session derives the calls.
 *
 * The server measures a session's time by the audio that it receives. While the user sends no audio, the transport
 * sends silence, which is billed like an open microphone. A session's instructions cannot change, so a new lead agent
 * gets a new connection.
 *
 * This API has no keys for browsers. A page connects by WebRTC through your server.
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
      return forkedConnection({
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
      liveWire(
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

/** Returns the stored session to which a resume value refers; null for any other value. */
function storedSession(resume: unknown): StoredSession | null {
  const checked = storedSessionSchema.safeParse(resume);
  return checked.success ? checked.data : null;
}

/** The abilities of the Live protocol, as this transport uses it. */
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
    // A response has the key of its request only if it cannot have any other cause.
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
  /**
   * The fingerprint of its configuration. A fork inherits the configuration, so the two configurations must be equal.
   */
  readonly configuration: string;
  /** The texts that were sent to the session but have not been accepted yet. */
  readonly untaken: readonly string[];
}

interface LiveWireOptions {
  readonly settings: OpenaiLiveSettings;
  readonly configuration: TransportConfiguration;
  /** The session that the connection resumes; null for a new one. */
  readonly forkOf: StoredSession | null;
  /** Writes the notes that this transport adds for the model. @defaultValue without marks */
  readonly notes?: NoteWriter | undefined;
  /** Returns the conversation so far as commands; called when the protocol session starts. */
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
function liveWire(options: LiveWireOptions, connection: WireConnection): Wire {
  const { settings, configuration, forkOf, history } = options;
  let isReady = false;
  let sessionId = '';
  /** The resume value that was offered last. */
  let lastOffered = '';
  let cancelExpiry: () => void = () => {};
  const notes = options.notes ?? unmarkedNotes;
  const { sampleRateHz } = options.settings;
  const fingerprint = fingerprintOf(options.settings, options.configuration);
  const quiet = new Int16Array((sampleRateHz * SILENCE_FRAME_MS) / 1000);
  const silence = wire.audioAppendText(encodePcm16Base64(quiet));
  const inputClock = new InputClock(connection.environment, () => connection.send(silence));
  const translator = new Translator(connection, options.settings, inputClock, notes);

  function onEvent(event: ServerEvent): void {
    if (event.type === 'session.started') onStarted(event.session);
    else if (event.type === 'session.closed') onClosed(event);
    else {
      translator.fromWire(event);
      offer();
      // No other event has been sent yet, so the error concerns session.start, even if it names no event.
      if (event.type === 'error' && !isReady) connection.finish(classifyRefusedStart(event.error));
    }
  }

  function onStarted(session: { readonly id: string; readonly expires_at?: number | null }): void {
    if (isReady) return;
    isReady = true;
    sessionId = session.id;
    const untaken = forkOf?.untaken.flatMap((text) => translator.tell(text)) ?? [];
    for (const event of untaken) connection.send(JSON.stringify(event));
    inputClock.start();
    connection.ready(forkOf !== null, forkOf === null && history !== undefined);
    offer();
    if (session.expires_at) watchExpiry(session.expires_at * 1000);
  }

  /** Offers the resume value if it has changed. */
  function offer(): void {
    if (!options.settings.store || !isReady) return;
    const resume: StoredSession = {
      sessionId,
      configuration: fingerprint,
      untaken: translator.untaken,
    };
    const offered = JSON.stringify(resume);
    if (offered === lastOffered) return;
    lastOffered = offered;
    connection.emit({ type: 'transport.resumable', resume });
  }

  function watchExpiry(expiresAt: number): void {
    const { clock, scheduler } = connection.environment;
    const { expiryNoticeMs } = options.settings;
    const delayMs = expiresAt - expiryNoticeMs - wallTime(clock);
    // An earlier time means that the clocks of the client and the server differ.
    if (delayMs <= 0) return;
    cancelExpiry = scheduler.schedule(
      () => connection.emit({ type: 'transport.expiring', inMs: expiryNoticeMs }),
      delayMs,
      { isBackground: true },
    );
  }

  function onClosed({ reason, usage }: Extract<ServerEvent, { type: 'session.closed' }>): void {
    if (usage)
      connection.emit({
        type: 'usage.reported',
        inputTokens: null,
        outputTokens: null,
        raw: usage,
      });
    connection.finish({
      code: null,
      reason: `The server ended the session: ${connection.redact(reason)}`,
      retryable: !FINAL_REASONS.has(reason),
    });
  }

  return {
    start() {
      const eventId = translator.newEventId();
      const start = forkOf
        ? wire.forkStart(eventId, settings)
        : wire.sessionStart(
            eventId,
            settings,
            startInstructions(configuration),
            historyOf(history?.() ?? [], notes),
          );
      return [JSON.stringify(start)];
    },
    write(command) {
      const events = translator.toWire(command);
      offer();
      return events.map((event) => JSON.stringify(event));
    },
    writeAudio(frame) {
      inputClock.sent(frameDurationMs(frame));
      return wire.audioAppendText(encodePcm16Base64(frame.samples));
    },
    read: (text) => takeEvent(wire.parseServerEvent(text), connection, (event) => onEvent(event)),
    /** Asks the server to close the session, so that the server first completes its record of the session. */
    farewell: () => [JSON.stringify(wire.sessionClose(translator.newEventId()))],
    stop() {
      cancelExpiry();
      inputClock.stop();
      translator.stop();
    },
  };
}

/** The end reasons that would also end a new session: the end was requested, or caused by the content. */
const FINAL_REASONS: ReadonlySet<string> = new Set(['close_requested', 'content']);

type Attempt = TransportConnection & { readonly diagnostics: ConnectionDiagnostics };

interface ForkedConnectionOptions {
  readonly fork: () => Attempt;
  readonly fresh: () => Attempt;
  readonly maxBufferedAudioMs: number;
}

/**
 * A connection that resumes a stored session if the server permits it and otherwise starts a new one, so that a missing
 * recording does not end the conversation.
 *
 *   forking ──ready──▶ settled
 *      └── refused, too late ──▶ fresh (settled, whether or not it succeeds)
 *
 * Owns: the commands and audio sent before this is settled.
 */
function forkedConnection(options: ForkedConnectionOptions): Attempt {
  const heldEvents = createHeldStream<TransportEvent>();
  const heldAudio = new Subject<AudioFrame>();
  const commands: TransportCommand[] = [];
  let current: Attempt;
  let isSettled = false;
  const events = heldEvents.stream;
  const audio = heldAudio.asObservable();
  const frames = createBoundedBuffer({ maxMs: options.maxBufferedAudioMs, keep: 'newest' });
  current = options.fork();
  listen(current);

  function listen(attempt: Attempt): void {
    const isOurs = (): boolean => current === attempt;
    attempt.audio.subscribe((frame) => {
      if (isOurs()) heldAudio.next(frame);
    });
    attempt.events.subscribe({
      next: (event) => {
        if (isOurs()) onEvent(event);
      },
      complete: () => {
        if (!isOurs()) return;
        heldEvents.complete();
        heldAudio.complete();
      },
    });
  }

  function onEvent(event: TransportEvent): void {
    // FORKED-CONNECTION-2: the final reason includes earlier reports.
    if (isSettled) {
      heldEvents.next(event);
    } else if (event.type === 'transport.ready') {
      heldEvents.next(event);
      settle();
    } else if (event.type === 'transport.closed') {
      heldEvents.next({
        type: 'transport.error',
        code: 'RESUME_REFUSED',
        message: `The stored session could not be resumed, so a new one begins: ${event.reason}`,
        responseKey: null,
        raw: null,
      });
      current = options.fresh();
      listen(current);
      settle();
    }
  }

  /** Sends the held commands and audio to this attempt, which queues them until it is ready. */
  function settle(): void {
    isSettled = true;
    for (const command of commands.splice(0)) current.send(command);
    for (const frame of frames.drain()) current.sendAudio(frame);
  }

  return {
    events,
    audio,
    sendAudio(frame) {
      if (!isSettled) frames.push(frame);
      else current.sendAudio(frame);
    },
    send(command) {
      if (!isSettled) commands.push(command);
      else current.send(command);
    },
    close() {
      isSettled = true;
      return current.close();
    },
    get diagnostics() {
      return current.diagnostics;
    },
  };
}
