// The transport for the Gemini Live API over WebSocket.

import {
  SocketConnection,
  type DialSettings,
  type SocketTransport,
} from '../socket/socket-connection.ts';
import { GeminiWire } from './gemini-wire.ts';
import { capabilitiesOf } from './models.ts';
import { resolveOptions, type GeminiLiveOptions } from './options.ts';
import { INPUT_SAMPLE_RATE_HZ } from './wire/index.ts';

/** The transport of `geminiLive`: its connections also report the messages that they could not use. */
export type GeminiLiveTransport = SocketTransport;

/**
 * Creates a transport to the Gemini Live API. Uses the `ws` package, an optional peer dependency. The model
 * answers the words that it hears by itself; its further abilities depend on the family of `model`, and
 * `capabilities` states them.
 *
 * A connection ends with `transport.closed`, which says whether a retry makes sense. The next connection
 * resumes where it ended if the server gave a handle, or gets the conversation.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION` (also for thinking that
 *   the model does not accept), `INVALID_URL`, or `MISSING_DEPENDENCY` if `ws` is not installed and no
 *   `webSocket` is given.
 */
export function geminiLive(options: GeminiLiveOptions = {}): GeminiLiveTransport {
  const settings = resolveOptions(options);
  const dial: DialSettings = { ...settings, inputSampleRateHz: INPUT_SAMPLE_RATE_HZ };
  return {
    name: 'gemini-live',
    capabilities: capabilitiesOf(settings.traits),
    connect: (configuration, context) =>
      new SocketConnection(
        dial,
        context,
        (ports) => new GeminiWire(settings, configuration, ports, context),
      ),
  };
}
