// A remote inspector server over a WebSocket: a relay, or a server of `@statelyai/inspect`. The server may connect
// late, disconnect and reconnect. On each connection, it receives all current actors.

import { propertiesOf } from '../../values/json.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import { ProviderError, ConfigurationError } from '../../values/errors.ts';
import type { InspectionStream } from './stream.ts';

/** An inspector target that sends its messages to a remote server. */
export interface WebSocketTarget {
  /** Selects a remote inspector server. */
  readonly mode: 'webSocket';
  /** The server's URL, `ws:` or `wss:`, including its token if it requires one. */
  readonly url: string;
}

/** The part of `WebSocket` that this module uses. `WebSocket` is built into Node.js and browsers. */
interface Socket {
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
  addEventListener(type: 'open' | 'close' | 'error', listener: () => void): void;
}

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;
const MAX_BUFFERED_BYTES = 1_048_576;
/** The maximum time to send the last messages before the process may exit. */
const CLOSE_TIMEOUT_MS = 1_000;

/** @returns a function that closes the connection after all messages have been sent */
export function openWebSocketViewer(
  stream: InspectionStream,
  url: string,
  environment: Environment,
  onError: (error: unknown, where: string) => void,
): () => Promise<void> {
  const { scheduler } = environment;
  let socket: Socket;
  let retryMs = FIRST_RETRY_MS;
  let cancelRetry = (): void => {};
  let isClosed = true;
  let onClosed = (): void => {};
  let isStopped = false;

  const connect = (): void => {
    let detach = (): void => {};
    const opened: Socket = new WebSocket(url);
    socket = opened;
    isClosed = false;
    opened.addEventListener('open', () => {
      retryMs = FIRST_RETRY_MS;
      if (isStopped) return;
      detach = stream.attach({
        isReady: () => opened.bufferedAmount < MAX_BUFFERED_BYTES,
        send: ({ text }) => opened.send(text),
      });
    });
    // Every `error` is followed by `close`. Without a listener, the error would be thrown.
    opened.addEventListener('error', () => {});
    opened.addEventListener('close', () => {
      isClosed = true;
      detach();
      onClosed();
      if (isStopped) return;
      onError(
        // Omits the query, because it may contain a token.
        new ProviderError(
          'CONNECTION_LOST',
          `No connection to the inspector at ${url.replace(/\?.*$/s, '')}; trying again in ${retryMs} ms`,
          { retryable: true },
        ),
        'inspector connection',
      );
      cancelRetry = scheduler.schedule(connect, retryMs);
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    });
  };
  connect();

  return () => {
    isStopped = true;
    cancelRetry();
    if (isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = scheduler.schedule(resolve, CLOSE_TIMEOUT_MS);
      onClosed = () => {
        cancel();
        resolve();
      };
      socket.close();
    });
  };
}

/** The part of a page's `window` that this module uses. */
export interface BrowserWindow {
  /** Like `window.open`. `@statelyai/inspect` opens the inspector with it. */
  open(url: string, name: string): unknown;
  /** Like `window.addEventListener`. It reports when the inspector has connected. */
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  /** Like `window.removeEventListener`. It is called when the inspector is stopped. */
  removeEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

/** An inspector target that sends its messages to the Stately Inspector in a page. */
export interface BrowserTarget {
  /** A window or frame with the Stately Inspector. Requires `@statelyai/inspect`. */
  readonly mode: 'browser';
  /** @defaultValue the global `window` */
  readonly window?: BrowserWindow;
  /** An `HTMLIFrameElement` for the inspector. @defaultValue a separate window */
  readonly iframe?: object;
  /** The inspector's page. @defaultValue 'https://stately.ai/inspect' */
  readonly url?: string;
}

const CONNECTED = '@statelyai.connected';

/**
 * Opens the Stately Inspector in a window or frame of the page. The package `@statelyai/inspect` opens the window and
 * sends the messages. Whenever the inspector connects or reconnects, this module sends it all current actors, as it
 * does for any late viewer. The stream is therefore complete.
 *
 * @returns a function that disconnects the inspector
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` without `@statelyai/inspect`.
 */
export async function openBrowserViewer(
  stream: InspectionStream,
  window: BrowserWindow,
  target: BrowserTarget,
): Promise<() => void> {
  const { createBrowserInspector } = await loadPeer(
    '@statelyai/inspect',
    () => import('@statelyai/inspect'),
  );
  const { adapter } = createBrowserInspector({
    window,
    ...(target.iframe ? { iframe: target.iframe } : {}),
    ...(target.url === undefined ? {} : { url: target.url }),
    // The package itself would store only its latest messages, without the actors.
    maxDeferredEvents: 0,
    serialize: (message) => message,
  });
  let detach = (): void => {};
  // The package has added its listener first, so it can already send messages when this listener runs.
  const onMessage = ({ data }: { readonly data: unknown }): void => {
    if (propertiesOf(data)['type'] !== CONNECTED) return;
    detach();
    detach = stream.attach({
      isReady: () => true,
      send: ({ message }) => adapter.send(message as never),
    });
  };
  window.addEventListener('message', onMessage);
  return () => {
    window.removeEventListener('message', onMessage);
    detach();
    adapter.stop();
  };
}

/**
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` if the package is not installed; the message contains the install
 *   command.
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `createInspector needs the package \`${name}\` for this: run \`npm install ${name}\``,
      { cause },
    );
  }
}
