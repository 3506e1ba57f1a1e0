// The transport for the OpenAI Realtime API (GA) over WebSocket, and for any compatible server. It contains the
// protocol's abilities, the configuration and the frames, and handles the end of a connection. `translator.ts`
// interprets the server's events.
//
// EXPIRY-1. The end of a connection is announced once, `NOTICE_MS` in advance, or immediately if less time is left.
// EXPIRY-2. An implausible end time is ignored, because the clocks may differ. In this case, the session uses
//     `maxConnectionMs`.

import { wallTime, type Environment } from '../../actors/ports/environment.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type {
  TransportCapabilities,
  TransportConfiguration,
} from '../../voice/connection/transport.ts';
import { spokenLead } from '../../voice/spoken-lead.ts';
import { classifyRefusedStart } from '../socket/close-codes.ts';
import { bearerAddress } from '../socket/dial-options.ts';
import { takeEvent } from '../socket/event-table.ts';
import {
  SocketConnection,
  type DialSettings,
  type SocketTransport,
} from '../socket/socket-connection.ts';
import type { Wire, WireConnection } from '../socket/wire.ts';
import {
  resolveOptions,
  type OpenaiRealtimeOptions,
  type OpenaiRealtimeSettings,
} from './options.ts';
import { Translator } from './translator.ts';
import {
  WIRE_SAMPLE_RATE_HZ,
  audioAppendText,
  parseServerEvent,
  type ServerEvent,
} from './wire.ts';

/**
 * The transport that `openaiRealtime` returns. Its connections also report server messages that they could not
 * interpret.
 */
export type OpenaiRealtimeTransport = SocketTransport;

/**
 * Creates a transport to the OpenAI Realtime API. Uses the `ws` package, an optional peer dependency. The server
 * detects and transcribes speech, but responds only when the session asks it to.
 *
 * A connection ends with `transport.closed`, which states whether a retry makes sense. The session then reconnects and
 * replays the conversation, because the server does not store it.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION`, `INVALID_URL`, or
 * `MISSING_DEPENDENCY` if `ws` is not installed and no `webSocket` is given.
 */
export function openaiRealtime(options: OpenaiRealtimeOptions = {}): OpenaiRealtimeTransport {
  const settings = resolveOptions(options);
  const dial: DialSettings = {
    ...settings,
    inputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
    address: () => bearerAddress(settings, () => settings.url()),
  };
  return {
    name: 'openai-realtime',
    modelId: settings.model,
    lead: spokenLead,
    capabilities: openaiRealtimeCapabilities(settings.output),
    connect: (configuration, context) =>
      new SocketConnection(dial, context, (connection) =>
        realtimeWire(settings, configuration, connection),
      ),
  };
}

/** Returns the protocol's abilities. `output`: the form of the model's responses. */
function openaiRealtimeCapabilities(
  output: TransportCapabilities['output'],
): TransportCapabilities {
  return Object.freeze({
    inputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
    outputSampleRateHz: WIRE_SAMPLE_RATE_HZ,
    output,
    utterances: 'reported',
    // Committing the input buffer ends the utterance.
    endsUtterances: true,
    responds: 'when_asked',
    correlatesResponses: true,
    cancelsResponses: true,
    // Only audio can be truncated.
    truncatesAudio: output === 'audio',
    deletesItems: true,
    speaksOutOfBand: true,
    silentContext: true,
    takesSystemMessages: true,
    // Only servers that announce the extension receive the question.
    takesOpenQuestion: true,
    toolCalls: 'named',
    defersToolResults: true,
    schedulesToolResults: false,
    updatesSession: true,
    resumes: false,
    acceptsImages: true,
    // A session lasts at most an hour. The server states its end in `expires_at`.
    maxConnectionMs: 60 * 60_000,
  });
}

/** One connection to the Realtime API. */
function realtimeWire(
  settings: OpenaiRealtimeSettings,
  configuration: TransportConfiguration,
  connection: WireConnection,
): Wire {
  let isReady = false;
  /** Whether the server announced the end of the connection in advance. */
  let isExpired = false;
  const translator = new Translator(configuration, connection);
  const expiry = watchedExpiry(connection.environment, (inMs) =>
    connection.emit({ type: 'transport.expiring', inMs }),
  );
  const start = translator.start(settings);

  function onEvent(event: ServerEvent): void {
    if (event.type === 'session.updated') {
      if (isReady) translator.configured();
      else {
        isReady = true;
        expiry.known(event.session?.expires_at);
        translator.extend(event.session?.extensions ?? []);
        connection.ready();
      }
      return;
    }
    translator.fromWire(event);
    if (event.type !== 'error') return;
    if (event.error.code === 'session_expired') isExpired = true;
    // No other event has been sent yet, so the error concerns session.update, even if it names no event.
    if (isReady) return;
    const message = translator.refusal(event.error.message);
    connection.finish(classifyRefusedStart({ ...event.error, message }));
  }

  return {
    start: () => [JSON.stringify(start)],
    write(command) {
      const event = translator.toWire(command);
      return event === null ? [] : [JSON.stringify(event)];
    },
    writeAudio: (frame) => audioAppendText(encodePcm16Base64(frame.samples)),
    read: (text) => takeEvent(parseServerEvent(text), connection, (event) => onEvent(event)),
    stop: () => expiry.stop(),
    closed: (ending) => ({ ...ending, retryable: ending.retryable || isExpired }),
  };
}

/** The time between the announcement and the end, which is enough to change the connection between two turns. */
const NOTICE_MS = 5 * 60_000;
/** The maximum plausible time until the end, because a session lasts at most an hour and clocks may differ slightly. */
const LONGEST_MS = 65 * 60_000;

/** Informs the session of the announced end of the connection, a few minutes in advance. */
export function watchedExpiry(environment: Environment, expiring: (inMs: number) => void) {
  let cancel: (() => void) | null = null;

  return {
    /** Handles the end time that the server states, in seconds since 1970. */
    known(expiresAt: number | null | undefined): void {
      if (cancel || typeof expiresAt !== 'number') return;
      const { clock, scheduler } = environment;
      const endsAt = expiresAt * 1000;
      const leftMs = endsAt - wallTime(clock);
      if (!(leftMs > 0) || leftMs > LONGEST_MS) return;
      cancel = scheduler.schedule(
        () => expiring(Math.max(0, endsAt - wallTime(clock))),
        leftMs - NOTICE_MS,
      );
    },
    stop: (): void => cancel?.(),
  };
}
