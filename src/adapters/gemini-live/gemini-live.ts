// The transport for the Gemini Live API over WebSocket: it configures, resumes and ends the connection, and sends its
// frames. `translator.ts` interprets the messages.

import { unmarkedNotes } from '../../actors/notes/note-marks.ts';
import { OffstageError, messageOf } from '../../values/errors.ts';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type {
  TransportCommand,
  TransportConfiguration,
  TransportContext,
} from '../../voice/connection/transport.ts';
import { spokenLead } from '../../voice/spoken-lead.ts';
import type { Ending } from '../socket/close-codes.ts';
import {
  SocketConnection,
  type DialSettings,
  type SocketTransport,
} from '../socket/socket-connection.ts';
import type { Wire, WireConnection } from '../socket/wire.ts';
import { capabilitiesOf } from './models.ts';
import { resolveOptions, type GeminiLiveOptions, type GeminiLiveSettings } from './options.ts';
import { Resumption, usableToken, type ResumeToken } from './resumption.ts';
import { ToolCalls } from './tool-calls.ts';
import { Translator } from './translator.ts';
import { INPUT_SAMPLE_RATE_HZ } from './wire.ts';
import * as wire from './wire.ts';

/** The transport of `geminiLive`; its connections also report server messages that they could not use. */
export type GeminiLiveTransport = SocketTransport;

/**
 * Creates a transport to the Gemini Live API. Uses the `ws` package, an optional peer dependency. The model responds to
 * speech by itself; other abilities depend on the model family, and `capabilities` states them.
 *
 * A connection ends with `transport.closed`, which states whether a retry makes sense. The next connection resumes the
 * previous session if the server issued a resumption handle; otherwise it receives the conversation.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION` (including a thinking setting that
 * the model does not accept), `INVALID_URL`, or `MISSING_DEPENDENCY` if `ws` is not installed and no `webSocket` is given.
 */
export function geminiLive(options: GeminiLiveOptions = {}): GeminiLiveTransport {
  const settings = resolveOptions(options);
  const dial: DialSettings = { ...settings, inputSampleRateHz: INPUT_SAMPLE_RATE_HZ };
  return {
    name: 'gemini-live',
    modelId: settings.model,
    lead: spokenLead,
    capabilities: capabilitiesOf(settings.traits),
    connect: (configuration, context) =>
      new SocketConnection(
        dial,
        context,
        (connection) => new GeminiWire(settings, configuration, connection, context),
      ),
  };
}

/** After this time without audio, the microphone counts as off. */
const STREAM_END_MS = 1_000;
/** The close codes that the server also uses to reject a resumption handle. */
const REFUSED_HANDLE_CODES: ReadonlySet<number | null> = new Set([1007, 1008, 1011]);

/** One connection to the Gemini Live API. */
class GeminiWire implements Wire {
  readonly #connection: WireConnection;
  readonly #settings: GeminiLiveSettings;
  readonly #configuration: TransportConfiguration;
  readonly #token: ResumeToken | null;
  readonly #translator: Translator;
  readonly #resumption: Resumption;
  /**
   * The history that the model receives before all other messages; null if the session replays the conversation instead.
   */
  readonly #history: readonly wire.Turn[] | null;
  #isReady = false;
  /** Whether the server has confirmed the resumption. */
  #hasGoneOn = false;
  #isExpiring = false;
  #soundAt = 0;
  #cancelStreamEnd: (() => void) | null = null;

  constructor(
    settings: GeminiLiveSettings,
    configuration: TransportConfiguration,
    connection: WireConnection,
    {
      resume,
      history,
      notes = unmarkedNotes,
    }: Pick<TransportContext, 'resume' | 'history' | 'notes'>,
  ) {
    this.#connection = connection;
    this.#settings = settings;
    this.#configuration = configuration;
    this.#token = usableToken(resume);
    const calls = this.#token?.calls ?? new ToolCalls();
    this.#resumption = new Resumption(connection, calls);
    this.#translator = new Translator(connection, this.#resumption, notes, settings.traits, calls);
    // A resumed session already has the history.
    this.#history = this.#token || !history ? null : this.#translator.history(history());
  }

  start(): readonly string[] {
    const { traits } = this.#settings;
    const message = wire.setup(this.#settings, this.#configuration, {
      toolBehavior: traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null,
      beginsWithHistory: this.#isSeeded,
      handle: this.#token?.handle ?? null,
    });
    return [JSON.stringify(message)];
  }

  /** Defers each message to the end of the current tick, so that the translator can combine commands. */
  write(command: TransportCommand): readonly string[] {
    this.#translator.toWire(command);
    return [];
  }

  writeAudio(frame: AudioFrame): string {
    this.#translator.soundSent(frameDurationMs(frame));
    this.#soundAt = this.#connection.environment.clock.now();
    if (this.#cancelStreamEnd === null) this.#watchSound(STREAM_END_MS);
    this.#resumption.sent(null);
    return wire.audioText(encodePcm16Base64(frame.samples));
  }

  read(text: string): void {
    const parsed = wire.parseServerMessage(text);
    if (parsed.kind === 'malformed') return this.#connection.malformed(parsed.message, parsed.raw);
    for (const name of parsed.unknown) this.#connection.unknown(name, parsed.raw);
    try {
      this.#onMessage(parsed.message, parsed.raw);
    } catch (error) {
      const code = error instanceof OffstageError ? error.code : 'INTERNAL';
      this.#connection.malformed(messageOf(error), parsed.raw, code);
    }
  }

  closed(ending: Ending): Ending {
    if (this.#token !== null && !this.#hasGoneOn && REFUSED_HANDLE_CODES.has(ending.code)) {
      this.#token.isRefused = true;
      return { ...ending, retryable: true };
    }
    // Before readiness, these codes mean that the server rejects the key, the model or the setup; later they may be
    // temporary.
    const mayPass = this.#isReady && (ending.code === 1007 || ending.code === 1008);
    return { ...ending, retryable: ending.retryable || mayPass || this.#isExpiring };
  }

  stop(): void {
    this.#cancelStreamEnd?.();
    this.#translator.stop();
  }

  /** Whether the server expects a history first, and waits for it. */
  get #isSeeded(): boolean {
    return this.#settings.traits.seedsHistory && (this.#history?.length ?? 0) > 0;
  }

  #onMessage(message: wire.ServerMessage, raw: unknown): void {
    if (message.setupComplete && !this.#isReady) this.#becomeReady();
    if (message.serverContent || message.toolCall) this.#hasGoneOn = true;
    if (message.goAway) {
      this.#isExpiring = true;
      const inMs = wire.durationMs(message.goAway.timeLeft) ?? 0;
      this.#connection.emit({ type: 'transport.expiring', inMs });
    }
    this.#translator.fromWire(message, raw);
    // Until the server sends its first message, it may not have processed the history.
    const isKnown = this.#hasGoneOn || (this.#history ?? []).length === 0;
    if (message.sessionResumptionUpdate && isKnown) {
      this.#resumption.updated(message.sessionResumptionUpdate);
    }
  }

  #becomeReady(): void {
    this.#isReady = true;
    const unconsumed = this.#token?.unconsumed ?? [];
    for (const message of unconsumed) this.#resumption.send(message, message);
    const history = this.#history ?? [];
    if (history.length > 0) {
      this.#resumption.send(wire.clientContent(history, this.#isSeeded), null);
    }
    this.#translator.open();
    this.#connection.ready(this.#token !== null, this.#history !== null);
  }

  /** Detects the end of the user's audio; one timer serves many frames. */
  #watchSound(delayMs: number): void {
    const { clock, scheduler } = this.#connection.environment;
    this.#cancelStreamEnd = scheduler.schedule(() => {
      const leftMs = this.#soundAt + STREAM_END_MS - clock.now();
      if (leftMs > 0) return this.#watchSound(leftMs);
      this.#cancelStreamEnd = null;
      this.#resumption.send(wire.audioStreamEnd(), null);
    }, delayMs);
  }
}
