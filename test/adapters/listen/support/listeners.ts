// All listeners in this repository, each with its legitimate access.

import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket } from 'ws';
import { createInspector } from '../../../../src/adapters/inspect/index.ts';
import { localVoice } from '../../../../src/adapters/local-voice/index.ts';
import { twilioCalls } from '../../../../src/adapters/twilio-media-streams/index.ts';
import { webhookSource } from '../../../../src/adapters/webhook/index.ts';
import { serve } from '../../../../src/serve/index.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../../src/testing/index.ts';
import { createVoiceServer } from '../../../../src/testing/voice-server/index.ts';
import { scriptedModel } from '../../local-voice/support/scripted-model.ts';
import { scriptedSpeech } from '../../local-voice/support/scripted-speech.ts';
import { rideSession } from '../../../serve/support/served.ts';
import { PATH, SECRET, standardHeaders } from '../../webhook/support/hook.ts';
import type { AttackedPort } from './attacks.ts';

export interface Listener extends AttackedPort {
  readonly environment: SimulatedEnvironment;
  /** True if Offstage owns the server from the first byte on; otherwise it owns only the server's upgrades. */
  readonly isOwnServer: boolean;
  /** Serves a client that has the proof and then disconnects. */
  serveRightful(): Promise<void>;
  close(): Promise<unknown>;
}

/** Opens a WebSocket, waits until it is served, and closes it. */
async function dial(
  port: number,
  { target, headers }: { readonly target: string; readonly headers: readonly string[] },
  served: 'open' | 'message',
  first?: string,
): Promise<void> {
  const { 'Sec-WebSocket-Protocol': protocols = '', ...given } = Object.fromEntries(
    headers.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  ) as Record<string, string>;
  const socket = new WebSocket(
    `ws://127.0.0.1:${port}${target}`,
    protocols.split(', ').filter(Boolean),
    { headers: given },
  );
  await Promise.all([
    once(socket, 'open'),
    ...(served === 'message' ? [once(socket, 'message')] : []),
  ]);
  if (first !== undefined) socket.send(first);
  socket.close();
  await once(socket, 'close');
}

/** Returns the access to a voice server that requires `the-right-key`. */
function keyed(port: number): Pick<Listener, 'proof' | 'serveRightful'> {
  const proof = () => ({
    target: '/v1/realtime?model=m',
    headers: ['Authorization: Bearer the-right-key'],
  });
  return { proof, serveRightful: () => dial(port, proof(), 'message') };
}

async function local(): Promise<Listener> {
  const environment = simulatedEnvironment();
  const voice = localVoice({
    model: scriptedModel(),
    speech: scriptedSpeech(),
    environment,
    apiKey: 'the-right-key',
  });
  const { port } = await voice.start();
  return {
    environment,
    port,
    isOwnServer: true,
    paths: ['/v1/realtime', '/'],
    ...keyed(port),
    close: () => voice.close(),
  };
}

async function relay(): Promise<Listener> {
  const environment = simulatedEnvironment();
  const inspector = await createInspector({
    environment,
    to: { mode: 'relay', token: 'a-token-of-my-own' },
  });
  const port = Number(new URL(inspector.url!).port);
  const proof = () => ({ target: '/stream?token=a-token-of-my-own', headers: [] });
  return {
    environment,
    port,
    isOwnServer: true,
    paths: ['/', '/page.js', '/stream', '/stream?token=wrong'],
    proof,
    serveRightful: () => dial(port, proof(), 'open'),
    close: () => inspector.stop(),
  };
}

async function sessions(): Promise<Listener> {
  const environment = simulatedEnvironment();
  const session = rideSession();
  await session.start();
  const web = serve({
    session: () => session,
    authorize: ({ token }) =>
      token === 'the-right-token' ? { sessionId: session.id, user: 'ann', role: 'user' } : null,
    environment,
  });
  const server = createServer((request, response) => web.handle(request, response));
  server.on('upgrade', (request, socket, head) => {
    if (!web.upgrade(request, socket, head)) socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const token = Buffer.from('the-right-token').toString('base64url');
  const proof = () => ({
    target: '/offstage',
    headers: [
      `Origin: http://127.0.0.1:${port}`,
      `Sec-WebSocket-Protocol: offstage.v1, offstage.token.${token}`,
    ],
  });
  return {
    environment,
    port,
    isOwnServer: false,
    paths: ['/offstage', '/offstage?v=1&client=c', '/'],
    proof,
    serveRightful: () => dial(port, proof(), 'open', '{"type":"hello","v":1,"client":"rightful"}'),
    async close() {
      await web.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await session.close();
    },
  };
}

async function webhook(): Promise<Listener> {
  const environment = simulatedEnvironment();
  const source = webhookSource({ path: PATH, secret: SECRET, listen: { port: 0 } });
  const controller = new AbortController();
  await source.start(() => Promise.resolve({ accepted: true, eventId: 'evt' }), controller.signal, {
    environment,
    fail: () => undefined,
    report: () => undefined,
  });
  const port = Number(new URL(source.url!).port);
  let messages = 0;
  const signed = (body: string): Record<string, string> => {
    messages += 1;
    const at = Math.floor(environment.clock.now() / 1000);
    return standardHeaders(body, { id: `msg_${messages}`, at, secret: SECRET });
  };
  return {
    environment,
    port,
    isOwnServer: true,
    paths: [PATH, '/'],
    proof: null,
    bodyHeaders: () =>
      Object.entries(signed('another')).map(([name, value]) => `${name}: ${value}`),
    async serveRightful() {
      const headers = { 'content-type': 'application/json', ...signed('{}') };
      const status = await new Promise<number | undefined>((resolve, reject) => {
        httpRequest({ host: '127.0.0.1', port, path: PATH, method: 'POST', agent: false, headers })
          .on('response', (response) => {
            response.resume().on('end', () => resolve(response.statusCode));
          })
          .on('error', reject)
          .end('{}');
      });
      if (status !== 202) throw new Error(`expected 202, got ${status}`);
    },
    close: async () => {
      controller.abort();
      await source.stop?.();
    },
  };
}

async function twilio(): Promise<Listener> {
  const environment = simulatedEnvironment();
  let calls = 0;
  const taken = await twilioCalls({
    authToken: 'the-token',
    url: 'wss://example.com/call',
    environment,
    onCall: () => {
      calls += 1;
    },
  });
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on('upgrade', (...upgrade) => void taken.upgrade(...upgrade));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const signature = createHmac('sha1', 'the-token')
    .update('wss://example.com/call')
    .digest('base64');
  const proof = () => ({ target: '/call', headers: [`X-Twilio-Signature: ${signature}`] });
  const start = JSON.stringify({
    event: 'start',
    streamSid: 'MZ1',
    start: {
      accountSid: 'AC1',
      callSid: 'CA1',
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
    },
  });
  return {
    environment,
    port,
    isOwnServer: false,
    paths: ['/call', '/'],
    proof,
    async serveRightful() {
      const before = calls;
      await dial(port, proof(), 'open', start);
      if (calls !== before + 1) throw new Error('expected one more call');
    },
    async close() {
      await taken.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function voiceServer(): Promise<Listener> {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, apiKey: 'the-right-key' });
  const { port } = await server.listen();
  return {
    environment,
    port,
    isOwnServer: true,
    paths: ['/v1/realtime', '/v1/realtime/client_secrets', '/v1/live/sessions', '/'],
    ...keyed(port),
    close: () => server.close(),
  };
}

export const listeners: Readonly<Record<string, () => Promise<Listener>>> = {
  'the local voice server': local,
  'the relay of the inspector': relay,
  'sessions of offstage/serve': sessions,
  'a webhook': webhook,
  'calls of Twilio': twilio,
  'the fake voice server': voiceServer,
};
