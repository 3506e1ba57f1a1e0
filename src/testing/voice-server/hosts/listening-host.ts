// Real sockets on 127.0.0.1: HTTP or HTTPS, upgrades and the REST endpoints.

import type { WebSocket } from 'ws';
import type { Environment } from '../../../actors/ports/environment.ts';
import { isLoopbackName, type Target } from '../../../adapters/listen/access.ts';
import { answerRefusal, createGuard, type Verdict } from '../../../adapters/listen/guard.ts';
import { readBody } from '../../../adapters/listen/request-body.ts';
import { REALTIME_PROTOCOL } from '../../../adapters/local-voice/access.ts';
import { ConfigurationError, messageOf } from '../../../values/errors.ts';
import type { Headers } from '../engine/admission.ts';
import type { VoiceServerAddress, VoiceWire } from '../engine/control.ts';
import type { FrameTaker, Link } from '../engine/outlet.ts';
import type { RestAnswer, RestRequest } from '../engine/rest.ts';
import type { Certificate } from './certificate.ts';

/** The maximum size of a frame, which is the real server's limit for one append. */
const MAX_FRAME_BYTES = 15 * 1024 * 1024;
/** The maximum size of a token request. */
const MAX_BODY_BYTES = 1024 * 1024;
const BODY_TIMEOUT_MS = 10_000;
/** A test may leave a client without an answer for at most this time. */
const UNANSWERED_MS = 600_000;
const MAX_CONNECTIONS = 10_000;
const LOOPBACK = '127.0.0.1';

/** The decision about an upgrade. */
export type Upgrade =
  /** `open` is called with the socket right after it has opened. */
  | { readonly type: 'accepted'; readonly open: (link: Link) => FrameTaker }
  | { readonly type: 'refused'; readonly status: number; readonly message: string }
  | { readonly type: 'ignored' };

export interface HostOptions {
  readonly environment: Environment;
  readonly port: number;
  readonly certificate: Certificate | null;
  /** Whether frames are sent as bytes, as in Gemini's protocol. */
  readonly isBinary: (url: URL) => boolean;
  readonly upgrade: (url: URL, headers: Headers) => Upgrade;
  readonly answer: (request: RestRequest) => RestAnswer;
}

export interface ListeningHost {
  readonly address: VoiceServerAddress;
  close(): Promise<void>;
}

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` or `LISTEN_FAILED` */
export async function startListeningHost(options: HostOptions): Promise<ListeningHost> {
  const { certificate, environment } = options;
  const guard = await createGuard({
    name: 'The voice server',
    environment,
    tls: certificate,
    maxClients: MAX_CONNECTIONS,
    maxUnauthenticated: MAX_CONNECTIONS,
    authenticationTimeoutMs: UNANSWERED_MS,
    isHost: isLoopbackName,
    isOrigin: () => true,
    webSocket: {
      maxMessageBytes: MAX_FRAME_BYTES,
      subprotocol: REALTIME_PROTOCOL,
      upgrade: ({ request, target }): Verdict => {
        const url = urlOf(target);
        const upgrade = options.upgrade(url, request.headers);
        switch (upgrade.type) {
          case 'ignored':
            return { type: 'ignore' };
          case 'refused':
            return { type: 'refuse', refusal: upgrade };
          case 'accepted':
            return {
              type: 'open',
              open: (client) => serve(client, upgrade.open, options.isBinary(url)),
            };
        }
      },
    },
    async request({ request, response, target }) {
      const body = await readBody(request, {
        scheduler: environment.scheduler,
        maxBytes: MAX_BODY_BYTES,
        timeoutMs: BODY_TIMEOUT_MS,
      });
      if (!Buffer.isBuffer(body))
        return answerRefusal(response, { status: 400, message: `The body is ${body}` });
      const { method = 'GET', headers } = request;
      const url = urlOf(target);
      const { status, body: said } = options.answer({
        method,
        url,
        headers,
        body: body.toString(),
      });
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(said));
    },
  });
  const { port } = await guard
    .listen({ port: options.port, host: LOOPBACK })
    .catch((cause: unknown) => {
      const message = `The voice server could not listen on ${LOOPBACK}:${options.port}: ${messageOf(cause)}`;
      throw new ConfigurationError('LISTEN_FAILED', message, { cause });
    });
  return { address: addressOf(port, certificate), close: () => guard.close() };
}

function serve(client: WebSocket, open: (link: Link) => FrameTaker, isBinary: boolean): void {
  const taker = open({
    send: (text) => client.send(isBinary ? Buffer.from(text) : text),
    close: (code, reason) => client.close(code, reason),
    terminate: () => client.terminate(),
    hold: (on) => (on ? client.pause() : client.resume()),
  });
  client.on('message', (data) => taker.receive((data as Buffer).toString('utf8')));
  client.on('close', (code) => taker.lost(code));
}

function urlOf({ path, query }: Target): URL {
  const url = new URL(`http://${LOOPBACK}`);
  url.pathname = path;
  url.search = query.toString();
  return url;
}

function addressOf(port: number, certificate: Certificate | null): VoiceServerAddress {
  const isSecure = certificate !== null;
  const sockets = `${isSecure ? 'wss' : 'ws'}://${LOOPBACK}:${port}`;
  const service = 'google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
  const urls: Record<VoiceWire, string> = {
    'openai-realtime': `${sockets}/v1/realtime`,
    'openai-live': `${sockets}/v1/live/sessions`,
    'gemini-live': `${sockets}/ws/${service}`,
  };
  const baseUrl = `${isSecure ? 'https' : 'http'}://${LOOPBACK}:${port}`;
  return { port, baseUrl, urls, ca: certificate?.cert ?? null };
}
