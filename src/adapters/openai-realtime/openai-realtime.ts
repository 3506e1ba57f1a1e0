// The transport for the OpenAI Realtime API (GA) over WebSocket, and for every server
// that speaks its wire.

import { openaiRealtimeCapabilities } from './capabilities.ts';
import {
  SocketConnection,
  type DialSettings,
  type SocketTransport,
} from '../socket/socket-connection.ts';
import { bearerAddress } from '../socket/dial-options.ts';
import { RealtimeWire } from './realtime-wire.ts';
import { resolveOptions, type OpenaiRealtimeOptions } from './options.ts';
import { WIRE_SAMPLE_RATE_HZ } from './wire/index.ts';

/** The transport of `openaiRealtime`: its connections also report the messages that they could not use. */
export type OpenaiRealtimeTransport = SocketTransport;

/**
 * Creates a transport to the OpenAI Realtime API. Uses the `ws` package, an optional peer dependency. The
 * server detects and transcribes speech, but answers only when the session asks.
 *
 * A connection ends with `transport.closed`, which says whether a retry makes sense; the session retries, and
 * replays the conversation, since the server keeps none.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION`, `INVALID_URL`, or
 *   `MISSING_DEPENDENCY` if `ws` is not installed and no `webSocket` is given.
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
    capabilities: openaiRealtimeCapabilities(settings.output),
    connect: (configuration, context) =>
      new SocketConnection(
        dial,
        context,
        (ports) => new RealtimeWire(settings, configuration, ports),
      ),
  };
}
