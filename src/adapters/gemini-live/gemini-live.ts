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

/** The transport of `geminiLive`: its connections also say what they could not use. */
export type GeminiLiveTransport = SocketTransport;

/**
 * Makes a transport to the Gemini Live API. Speaks through the `ws` package, an optional peer
 * dependency. The model answers what it hears by itself; what it can do beyond that depends on the
 * family of `model`, and `capabilities` say so.
 *
 * A connection ends with `transport.closed`, which says whether trying again makes sense. The next one
 * goes on where it ended if the server gave a handle for it, or is told the conversation.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` when there is no key, `INVALID_OPTION` (also for thinking
 * that the model does not take), `INVALID_URL`, or `MISSING_DEPENDENCY` when `ws` is not installed and
 * no `webSocket` is given.
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
