// Inspection in a browser: the Stately Inspector in a window or frame of the page. The package opens it and
// sends to it; this module keeps the stream complete: at each (re)connection the inspector gets all current
// actors, as any late viewer.

import { loadPeer } from './peer.ts';
import type { InspectionStream } from './stream.ts';

/** The part of a page's `window` that is used. */
export interface BrowserWindow {
  open(url: string, name: string): unknown;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  removeEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
}

export interface BrowserTarget {
  /** A window or frame with the Stately Inspector. Needs `@statelyai/inspect`. */
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
 * Opens the inspector. @returns a function that disconnects it
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
    // The package would keep only the latest messages, without the actors.
    maxDeferredEvents: 0,
    serialize: (message) => message,
  });
  let detach = (): void => {};
  // The package's listener was added first and runs first: after it messages can be sent.
  const onMessage = ({ data }: { readonly data: unknown }): void => {
    if ((data as { type?: unknown } | null)?.type !== CONNECTED) return;
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
