// The transport for the OpenAI Live API (`gpt-live-1`) over WebSocket, with client delegation: the model
// talks, and delegates tasks to the session.

import { z } from 'zod';
import type { TransportConfiguration, TransportContext } from '../../voice/connection/transport.ts';
import { SocketConnection, type SocketTransport } from '../socket/socket-connection.ts';
import { bearerAddress } from '../socket/dial-options.ts';
import { openaiLiveCapabilities } from './capabilities.ts';
import { ForkedConnection } from './forked-connection.ts';
import { LiveWire, fingerprintOf, type StoredSession } from './live-wire.ts';
import { resolveOptions, type OpenaiLiveOptions, type OpenaiLiveSettings } from './options.ts';

/** The transport of `openaiLive`: its connections also report the messages that they could not use. */
export type OpenaiLiveTransport = SocketTransport;

/**
 * Creates a transport to the OpenAI Live API. Uses the `ws` package, an optional peer dependency. The model
 * listens and speaks at the same time and decides itself when; it calls no tools, but delegates, and the
 * session derives the calls.
 *
 * The time of a session is the sound that it gets: when the user sends none, silence is sent, and is billed
 * like an open microphone. Its instructions cannot change: an agent that takes over gets a connection of its
 * own.
 *
 * There are no keys for browsers on this API: a page connects by WebRTC through your server.
 *
 * @throws {ConfigurationError} `MISSING_API_KEY` if there is no key, `INVALID_OPTION`, `INVALID_URL`, or
 *   `MISSING_DEPENDENCY` if `ws` is not installed and no `webSocket` is given.
 */
export function openaiLive(options: OpenaiLiveOptions = {}): OpenaiLiveTransport {
  const settings = resolveOptions(options);
  return {
    name: 'openai-live',
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
    (ports) =>
      new LiveWire(
        {
          settings,
          configuration,
          forkOf: forkOf ?? null,
          history: context.history,
          notes: context.notes,
        },
        ports,
      ),
  );
}

const storedSessionSchema = z.object({
  sessionId: z.string().min(1),
  configuration: z.string(),
  untaken: z.array(z.string()),
});

/** Returns the stored session of a resume value; null for any other value. */
function storedSession(resume: unknown): StoredSession | null {
  const checked = storedSessionSchema.safeParse(resume);
  return checked.success ? checked.data : null;
}
