// Real sockets on 127.0.0.1: HTTP or HTTPS, upgrades and the REST endpoints.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type * as Ws from 'ws';
import type { WebSocket } from 'ws';
import { chosenProtocol } from '../../../adapters/local-voice/access.ts';
import {
  LOOPBACK,
  closeServer,
  listenOnLoopback,
  refuseUpgrade,
} from '../../../adapters/local-voice/loopback.ts';
import { ConfigurationError } from '../../../errors.ts';
import type { Headers } from '../admission.ts';
import type { VoiceServerAddress, VoiceWire } from '../control.ts';
import type { Link } from '../outlet.ts';
import type { RestAnswer, RestRequest } from '../rest.ts';
import type { Certificate } from './certificate.ts';
import type { FrameTaker } from './socket-pair.ts';

/** The real server's limit for one append. */
const MAX_FRAME_BYTES = 15 * 1024 * 1024;

/** What becomes of an upgrade. */
export type Upgrade =
  /** `open`: called with the socket, right after it opened. */
  | { readonly type: 'accepted'; readonly open: (link: Link) => FrameTaker }
  | { readonly type: 'refused'; readonly status: number; readonly message: string }
  | { readonly type: 'ignored' };

export interface HostOptions {
  readonly port: number;
  readonly certificate: Certificate | null;
  /** Whether frames go as bytes, as Gemini sends them. */
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
  const { WebSocketServer } = await importWs();
  const { certificate } = options;
  const server: Server = certificate === null ? createServer() : createTlsServer(certificate);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    handleProtocols: chosenProtocol,
  });
  server.on('request', (request, response) => {
    const answer = async (): Promise<void> => {
      const body = await readBody(request);
      const { method = 'GET', headers } = request;
      const { status, body: said } = options.answer({ method, url: urlOf(request), headers, body });
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(said));
    };
    // Who hangs up in the middle of a request needs no answer.
    answer().catch(() => response.destroy());
  });
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const url = urlOf(request);
    const upgrade = options.upgrade(url, request.headers);
    if (upgrade.type === 'ignored') return;
    if (upgrade.type === 'refused') {
      refuseUpgrade(socket, `${upgrade.status} Refused`, upgrade.message);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      serve(client, upgrade.open, options.isBinary(url));
    });
  });
  const port = await listenOnLoopback(server, options.port, 'The voice server');
  return {
    address: addressOf(port, certificate),
    close: () => closeServer(server, sockets),
  };
}

function serve(client: WebSocket, open: (link: Link) => FrameTaker, isBinary: boolean): void {
  // Of frames that are too long or malformed; `close` follows.
  client.on('error', () => undefined);
  const taker = open({
    send: (text) => client.send(isBinary ? Buffer.from(text) : text),
    close: (code, reason) => client.close(code, reason),
    terminate: () => client.terminate(),
    hold: (on) => (on ? client.pause() : client.resume()),
  });
  client.on('message', (data) => taker.receive((data as Buffer).toString('utf8')));
  client.on('close', (code) => taker.lost(code));
}

function urlOf(request: IncomingMessage): URL {
  // `@google/genai` asks for a path with two slashes at its beginning.
  return new URL((request.url ?? '/').replace(/^\/+/, '/'), `http://${LOOPBACK}`);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
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

async function importWs(): Promise<typeof Ws> {
  try {
    return await import('ws');
  } catch (cause) {
    const message = 'The voice server needs the package `ws` to listen: run `npm install ws`';
    throw new ConfigurationError('MISSING_DEPENDENCY', message, { cause });
  }
}
