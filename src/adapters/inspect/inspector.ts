// Shows the actors of sessions in an inspector, as one tree, while they run.
//
// Owns:     the choice of the transport to the viewer, and the shutdown.
// Does not: observe (stream), convert (line) or redact (redact).

import type { InspectionEvent } from 'xstate';
import { ConfigurationError } from '../../values/errors.ts';
import { openBrowserViewer, type BrowserWindow } from './browser-viewer.ts';
import { resolveOptions, type InspectorOptions, type InspectorSettings } from './options.ts';
import { InspectionStream } from './stream.ts';
import { openWebSocketViewer } from './web-socket-viewer.ts';

export interface Inspector {
  /** For `createRuntime({ inspect })`, or `createActor(machine, { inspect })`. Never throws. */
  readonly inspect: (event: InspectionEvent) => void;
  /** Relay only: the page to open in a browser. It contains the token, which permits watching. */
  readonly url?: string;
  /** Relay only: the address for `createWebSocketReceiver({ server })`. It contains the token. */
  readonly streamUrl?: string;
  /** Sends the waiting messages and disconnects all viewers. Later reports of actors are ignored. */
  stop(): Promise<void>;
}

type Opened = Omit<Inspector, 'inspect'>;

/**
 * Creates an inspector.
 * @throws {ConfigurationError} `INVALID_OPTION`; `MISSING_DEPENDENCY` if a package for this mode is missing;
 *   `CANNOT_LISTEN` if a relay's port is taken; `NO_WINDOW` if there is no browser.
 */
export async function createInspector(options: InspectorOptions): Promise<Inspector> {
  const settings = resolveOptions(options);
  const stream = new InspectionStream(settings);
  const { stop, ...addresses } = await open(stream, settings);
  return {
    inspect: stream.inspect,
    ...addresses,
    async stop() {
      stream.stop();
      await stop();
    },
  };
}

async function open(
  stream: InspectionStream,
  { to, environment, onError }: InspectorSettings,
): Promise<Opened> {
  switch (to.mode) {
    case 'relay': {
      // Node.js only, so a browser must not load it.
      const { startRelay } = await import('./relay.ts');
      return startRelay(stream, environment, to);
    }
    case 'browser': {
      const window = to.window ?? (globalThis as { window?: BrowserWindow }).window;
      if (!window)
        throw new ConfigurationError(
          'NO_WINDOW',
          "Expected a `window` for the mode 'browser', got none: use 'relay' outside of browsers",
        );
      const close = await openBrowserViewer(stream, window, to);
      return { stop: () => Promise.resolve(close()) };
    }
    case 'webSocket':
      return { stop: openWebSocketViewer(stream, to.url, environment, onError) };
    case 'sink': {
      const detach = stream.attach({
        isReady: () => true,
        send: ({ message }) => to.send(message),
      });
      return { stop: () => Promise.resolve(detach()) };
    }
  }
}
