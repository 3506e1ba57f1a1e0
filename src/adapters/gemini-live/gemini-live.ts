// The transport for the Gemini Live API over WebSocket. It configures, resumes and closes the connection, and sends its
// frames. `translator.ts` interprets the messages.

import { unmarkedNotes } from '../../actors/notes/note-marks.ts';
import { OffstageError, messageOf } from '../../values/errors.ts';
import { frameDurationMs } from '../../voice/audio/audio-frame.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { TransportConfiguration, TransportContext } from '../../voice/connection/transport.ts';
import { spokenLead } from '../../voice/spoken-lead.ts';
import {
  SocketConnection,
  type DialSettings,
  type SocketTransport,
} from '../socket/socket-connection.ts';
import type { Wire, WireConnection } from '../socket/wire.ts';
import { capabilitiesOf } from './models.ts';
import { resolveOptions, type GeminiLiveOptions, type GeminiLiveSettings } from './options.ts';
import { Resumption, usableToken } from './resumption.ts';
import { ToolCalls } from './tool-calls.ts';
import { Translator } from './translator.ts';
import { INPUT_SAMPLE_RATE_HZ } from './wire.ts';
import * as wire from './wire.ts';

/**
 * The transport that `geminiLive` returns. Its connections also report server messages that they could not interpret.
 */
export type GeminiLiveTransport = SocketTransport;

/**
 * Creates a transport to the Gemini Live API. Uses the `ws` package, an optional peer dependency. The model responds to
 * speech on its own. Other abilities depend on the model family and are listed in `capabilities`.
 *
 * When a connection ends, `transport.closed` states whether a retry makes sense. The next connection resumes the
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
      new SocketConnection(dial, context, (connection) =>
        geminiWire(settings, configuration, connection, context),
      ),
  };
}

/** After this time without audio, the microphone counts as off. */
const STREAM_END_MS = 1_000;
/** The close codes that may also mean that the server rejects a resumption handle. */
const REFUSED_HANDLE_CODES: ReadonlySet<number | null> = new Set([1007, 1008, 1011]);

/** One connection to the Gemini Live API. */
function geminiWire(
  settings: GeminiLiveSettings,
  configuration: TransportConfiguration,
  connection: WireConnection,
  {
    resume,
    history,
    notes = unmarkedNotes,
  }: Pick<TransportContext, 'resume' | 'history' | 'notes'>,
): Wire {
  let isReady = false;
  /** Whether the server has confirmed the resumption. */
  let hasGoneOn = false;
  let isExpiring = false;
  let soundAt = 0;
  let cancelStreamEnd: (() => void) | null = null;
  /** Whether the server is waiting for a history, which must come first. */
  const isSeeded = (): boolean => settings.traits.seedsHistory && (seed?.length ?? 0) > 0;
  const token = usableToken(resume);
  const calls = token?.calls ?? new ToolCalls();
  const resumption = new Resumption(connection, calls);
  const translator = new Translator(connection, resumption, notes, settings.traits, calls);
  // A resumed session already has the history.
  const seed = token || !history ? null : translator.history(history());

  function onMessage(message: wire.ServerMessage, raw: unknown): void {
    if (message.setupComplete && !isReady) becomeReady();
    if (message.serverContent || message.toolCall) hasGoneOn = true;
    if (message.goAway) {
      isExpiring = true;
      const inMs = wire.durationMs(message.goAway.timeLeft) ?? 0;
      connection.emit({ type: 'transport.expiring', inMs });
    }
    translator.fromWire(message, raw);
    // The server may not have processed the history before it sends its first message.
    const isKnown = hasGoneOn || (seed ?? []).length === 0;
    if (message.sessionResumptionUpdate && isKnown) {
      resumption.updated(message.sessionResumptionUpdate);
    }
  }

  function becomeReady(): void {
    isReady = true;
    const unconsumed = token?.unconsumed ?? [];
    for (const message of unconsumed) resumption.send(message, message);
    if (seed?.length) resumption.send(wire.clientContent(seed, isSeeded()), null);
    translator.open();
    connection.ready(token !== null, seed !== null);
  }

  /** Detects that the user's audio has stopped. A single timer serves many frames. */
  function watchSound(delayMs: number): void {
    const { clock, scheduler } = connection.environment;
    cancelStreamEnd = scheduler.schedule(() => {
      const leftMs = soundAt + STREAM_END_MS - clock.now();
      if (leftMs > 0) return watchSound(leftMs);
      cancelStreamEnd = null;
      resumption.send(wire.audioStreamEnd(), null);
    }, delayMs);
  }

  return {
    start() {
      const { traits } = settings;
      const message = wire.setup(settings, configuration, {
        toolBehavior: traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null,
        beginsWithHistory: isSeeded(),
        handle: token?.handle ?? null,
      });
      return [JSON.stringify(message)];
    },
    /** Defers each message to the end of the current tick so that the translator can combine commands. */
    write(command) {
      translator.toWire(command);
      return [];
    },
    writeAudio(frame) {
      translator.soundSent(frameDurationMs(frame));
      soundAt = connection.environment.clock.now();
      if (cancelStreamEnd === null) watchSound(STREAM_END_MS);
      resumption.sent(null);
      return wire.audioText(encodePcm16Base64(frame.samples));
    },
    read(text) {
      const parsed = wire.parseServerMessage(text);
      if (parsed.kind === 'malformed') return connection.malformed(parsed.message, parsed.raw);
      for (const name of parsed.unknown) connection.unknown(name, parsed.raw);
      try {
        onMessage(parsed.message, parsed.raw);
      } catch (error) {
        const code = error instanceof OffstageError ? error.code : 'INTERNAL';
        connection.malformed(messageOf(error), parsed.raw, code);
      }
    },
    closed(ending) {
      if (token !== null && !hasGoneOn && REFUSED_HANDLE_CODES.has(ending.code)) {
        token.isRefused = true;
        return { ...ending, retryable: true };
      }
      // Before the connection is ready, these codes mean that the server rejects the key, the model or the setup.
      // Later, they may be temporary.
      const mayPass = isReady && (ending.code === 1007 || ending.code === 1008);
      return { ...ending, retryable: ending.retryable || mayPass || isExpiring };
    },
    stop() {
      cancelStreamEnd?.();
      translator.stop();
    },
  };
}
