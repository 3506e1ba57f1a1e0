// A local server for inspectors: a page with the Stately Inspector, and a WebSocket for any `@statelyai/inspect` receiver.
//
// Owns:     the page, and access control for the stream.
// Does not: reject untrusted requests (`listen/guard.ts`), or store messages that were sent (the stream sends late
//           viewers all actors).
//
// Invariants
//   RELAY-1. The relay listens only on 127.0.0.1 and responds only to its own host names, because any other name
//       indicates DNS rebinding.
//   RELAY-2. The stream requires the token. A browser must also come from an allowed origin: the origin of the relay's
//       page or one of `allowedOrigins`. Programs do not send an origin.
//   RELAY-3. Viewers only receive. Messages from receivers are ignored. Their size is limited.
//   RELAY-PAGE-1. Only the frame that contains the inspector may request and receive the stream. The page checks the
//       origin in both directions.
//   RELAY-PAGE-2. Whenever the inspector connects or reconnects, it receives all actors again.

import type { OutgoingHttpHeaders } from 'node:http';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { isSameSecret, loopbackHosts } from '../listen/access.ts';
import { createGuard, type RequestVisit, type Verdict, type Visit } from '../listen/guard.ts';
import { pageHeaders } from '../listen/page-headers.ts';
import type { InspectionStream } from './stream.ts';

/** An inspector target that serves its messages on 127.0.0.1, together with a page. */
export interface RelayTarget {
  /** Selects a server in this process, on 127.0.0.1. Requires `ws`. */
  readonly mode: 'relay';
  /** @defaultValue 0: any free port */
  readonly port?: number;
  /** The secret that viewers must present. @defaultValue generated with `environment.ids` */
  readonly token?: string;
  /** The inspector that the page shows. @defaultValue 'https://stately.ai/inspect' */
  readonly inspectorUrl?: string;
  /** Other web pages that may use the token to read the stream. @defaultValue none */
  readonly allowedOrigins?: readonly string[];
}

export interface Relay {
  /** The page to open in a browser. The URL fragment contains the token. */
  readonly url: string;
  /** The URL for `createWebSocketReceiver({ server })`. The query contains the token. */
  readonly streamUrl: string;
  /** Resolves when the port is free and all earlier messages have been sent. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
const STREAM_PATH = '/stream';
const DEFAULT_INSPECTOR_URL = 'https://stately.ai/inspect';
const MAX_VIEWERS = 16;
const MAX_VIEWER_MESSAGE_BYTES = 1_024;
const MAX_BUFFERED_BYTES = 1_048_576;
const CLOSE_TIMEOUT_MS = 1_000;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` if `ws` is not installed; `CANNOT_LISTEN` if the port is taken. */
export async function startRelay(
  stream: InspectionStream,
  environment: Environment,
  target: RelayTarget,
): Promise<Relay> {
  const { ids } = environment;
  const token = target.token ?? `${ids.next('see')}${ids.next('')}`;
  const { allowedOrigins = [], inspectorUrl = DEFAULT_INSPECTOR_URL } = target;
  const guard = await createGuard({
    name: 'createInspector',
    environment,
    maxClients: MAX_VIEWERS,
    isHost: (host, port) => loopbackHosts(port).includes(host),
    isOrigin: (origin, port) =>
      loopbackHosts(port).some((host) => origin === `http://${host}`) ||
      allowedOrigins.includes(origin),
    request: (visit) => servePage(visit, inspectorUrl),
    webSocket: {
      maxMessageBytes: MAX_VIEWER_MESSAGE_BYTES,
      upgrade: (visit) => verdictOn(visit, token, stream),
    },
  });
  const { port } = await guard
    .listen({ port: target.port ?? 0, host: HOST })
    .catch((cause: unknown) => {
      const where = `${HOST}:${target.port ?? 0}`;
      const message = `The relay of the inspector cannot listen on ${where}: ${messageOf(cause)}`;
      throw new ConfigurationError('CANNOT_LISTEN', message, { cause });
    });
  return {
    url: `http://${HOST}:${port}/#token=${encodeURIComponent(token)}`,
    streamUrl: `ws://${HOST}:${port}${STREAM_PATH}?token=${encodeURIComponent(token)}`,
    stop: () => guard.close({ graceMs: CLOSE_TIMEOUT_MS }),
  };
}

function servePage({ request, response, target }: RequestVisit, inspectorUrl: string): void {
  const { host = '' } = request.headers;
  const headers: OutgoingHttpHeaders = { ...pageHeaders };
  const answer = (status: number, type: string, body: string): void => {
    response.writeHead(status, { ...headers, 'content-type': `${type}; charset=utf-8` });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return answer(405, 'text/plain', 'Only GET');
  const page = relayPage(inspectorUrl, host);
  headers['content-security-policy'] = page.contentSecurityPolicy;
  switch (target.path) {
    case '/':
      return answer(200, 'text/html', page.html);
    case '/page.js':
      return answer(200, 'text/javascript', page.script);
    case '/page.css':
      return answer(200, 'text/css', relayStyle);
    default:
      return answer(404, 'text/plain', 'Nothing here');
  }
}

function verdictOn({ target }: Visit, token: string, stream: InspectionStream): Verdict {
  if (target.path !== STREAM_PATH)
    return { type: 'refuse', refusal: { status: 404, message: `Expected ${STREAM_PATH}` } };
  if (!isSameSecret(target.query.get('token'), token))
    return { type: 'refuse', refusal: { status: 401, message: 'Expected the token' } };
  return {
    type: 'open',
    open: (viewer) => {
      const detach = stream.attach({
        isReady: () => viewer.bufferedAmount < MAX_BUFFERED_BYTES,
        send: ({ text }) => viewer.send(text),
      });
      viewer.on('close', detach);
    },
  };
}

/**
 * The relay's page. The page shows an inspector in a frame and forwards the WebSocket's messages to it. The URL
 * fragment contains the token, because browsers do not send the fragment.
 */
interface RelayPage {
  readonly html: string;
  readonly script: string;
  readonly contentSecurityPolicy: string;
}

/** `inspectorUrl` is shown in the frame, and `host` is the relay's own `name:port`. */
function relayPage(inspectorUrl: string, host: string): RelayPage {
  const { origin } = new URL(inspectorUrl);
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Offstage in the Stately Inspector</title>
<link rel="stylesheet" href="/page.css">
<p id="state" role="status">Waiting for the inspector at ${escaped(origin)} (this needs the network)</p>
<iframe id="inspector" title="Stately Inspector" src="${escaped(inspectorUrl)}"></iframe>
<script src="/page.js" data-origin="${escaped(origin)}"></script>
</html>
`;
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src 'self'`,
    `connect-src ws://${host}`,
    `frame-src ${origin}`,
    `frame-ancestors 'none'`,
    `base-uri 'none'`,
    `form-action 'none'`,
  ].join('; ');
  return { html, script, contentSecurityPolicy };
}

const relayStyle = `html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; font: 14px system-ui, sans-serif; }
p { margin: 0; padding: 6px 12px; }
iframe { flex: 1; border: 0; }
`;

const script = `const { origin } = document.currentScript.dataset;
const frame = document.getElementById('inspector');
const state = document.getElementById('state');
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
let socket;
function connect() {
  socket?.close();
  const opened = new WebSocket('ws://' + location.host + '/stream?token=' + encodeURIComponent(token));
  socket = opened;
  opened.onopen = () => { state.textContent = 'Connected'; };
  opened.onmessage = ({ data }) => frame.contentWindow.postMessage(JSON.parse(data), origin);
  opened.onclose = () => {
    if (socket !== opened) return;
    state.textContent = 'Not connected: the program has ended, or this address is an old one';
    setTimeout(() => { if (socket === opened) connect(); }, 2000);
  };
}
addEventListener('message', (event) => {
  if (event.origin !== origin || event.source !== frame.contentWindow) return;
  if (event.data?.type === '@statelyai.connected') connect();
});
`;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
