// Access to the server: keys in each place where clients put them, upgrades that are refused or not answered, the
// endpoints for ephemeral tokens, and a certificate that is created at run time.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { API_KEY, listening } from '../support/listening.ts';
import { stage } from '../support/raw-client.ts';

const realtime = 'wss://api.test/v1/realtime?model=m';
const live = 'wss://api.test/v1/live/sessions';
const gemini =
  'wss://google.test//ws/google.ai.generativelanguage.v1.GenerativeService.BidiGenerateContent';

test('accepts the right key everywhere it can be sent', async () => {
  const { dial, pass, server } = stage({ apiKey: 'right' });
  dial('openai-realtime', realtime, { Authorization: 'Bearer right' });
  dial('openai-realtime', realtime, {
    'Sec-WebSocket-Protocol': 'realtime, openai-insecure-api-key.right',
  });
  dial('openai-live', live, { authorization: 'Bearer right' });
  dial('gemini-live', `${gemini}?key=right`, {});
  dial('gemini-live', gemini, { 'x-goog-api-key': 'right' });
  await pass();
  expect(server.connections.map(({ wire }) => wire)).toEqual([
    'openai-realtime',
    'openai-realtime',
    'openai-live',
    'gemini-live',
    'gemini-live',
  ]);
});

test("refuses a wrong key in each wire's own way", async () => {
  const { dial, pass, server } = stage({ apiKey: 'right' });
  const wrong = { authorization: 'Bearer wrong' };
  const first = dial('openai-realtime', realtime, wrong);
  const second = dial('openai-live', live, wrong);
  const third = dial('gemini-live', `${gemini}?key=wrong`, {});
  const fourth = dial('openai-realtime', realtime, {});
  await pass();
  expect(first.last('error')?.['error']).toMatchObject({ code: 'invalid_api_key' });
  expect(first.closed).toEqual({ code: 3000, reason: 'invalid_request_error.invalid_api_key' });
  expect(second.refused).toBe(401);
  expect(third.closed).toMatchObject({ code: 1007, reason: expect.stringContaining('API key') });
  expect(fourth.closed).toEqual({ code: 3000, reason: 'invalid_request_error' });
  expect(server.connections).toEqual([]);
});

test('refuses an upgrade, leaves it unanswered, or drops it', async () => {
  const { dial, pass, server } = stage();
  server.refuseConnections({ status: 503 });
  const refused = dial('openai-live');
  server.ignoreConnections();
  const ignored = dial('openai-live');
  const nowhere = dial('openai-live', 'wss://api.test/v1/chat');
  const welcome = dial('openai-live');
  await pass(60_000);
  expect(refused.refused).toBe(503);
  expect([ignored.isOpen(), ignored.closed, ignored.refused]).toEqual([false, null, null]);
  expect(nowhere.refused).toBe(404);
  expect(welcome.isOpen()).toBe(true);
});

test('opens sessions with an OpenAI client secret and starts them with its configuration', async () => {
  const { server, address } = await listening();
  const client = new OpenAI({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1` });
  const secret = await client.realtime.clientSecrets.create({
    session: { type: 'realtime', model: 'gpt-realtime-2.1', instructions: 'Be kind.' },
    expires_after: { anchor: 'created_at', seconds: 60 },
  });
  expect(secret.value).toMatch(/^ek_/);
  expect(secret.session).toMatchObject({ type: 'realtime', instructions: 'Be kind.' });
  const socket = new WebSocket(`${address.urls['openai-realtime']}?model=gpt-realtime-2.1`, [
    'realtime',
    `openai-insecure-api-key.${secret.value}`,
  ]);
  onTestFinished(() => socket.terminate());
  const [data] = (await once(socket, 'message')) as [Buffer];
  expect(JSON.parse(data.toString())).toMatchObject({
    type: 'session.created',
    session: { instructions: 'Be kind.' },
  });
  expect(socket.protocol).toBe('realtime');
  expect((await server.nextConnection()).instructions).toBe('Be kind.');
});

test('creates a secret for a client that has the key and sends a valid request', async () => {
  const { address } = await listening();
  const create = (apiKey: string, body: object): Promise<unknown> =>
    new OpenAI({
      apiKey,
      baseURL: `${address.baseUrl}/v1`,
      maxRetries: 0,
    }).realtime.clientSecrets.create(body);
  await expect(create('wrong', {})).rejects.toMatchObject({ status: 401 });
  await expect(
    create(API_KEY, { session: { type: 'realtime', sing: true } }),
  ).rejects.toMatchObject({ status: 400, code: 'unknown_parameter' });
});

test('creates both kinds of secrets for the AI SDK', async () => {
  const { address } = await listening();
  const openai = createOpenAI({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1` });
  const google = createGoogle({ apiKey: API_KEY, baseURL: `${address.baseUrl}/v1beta` });
  const secret = await openai.experimental_realtime.getToken({ model: 'gpt-realtime-2.1' });
  expect(secret.token).toMatch(/^ek_/);
  const token = await google.experimental_realtime.getToken({ model: 'gemini-3.8-live' });
  expect(token.token).toMatch(/^auth_tokens\//);
});

test('creates a self-signed certificate for 127.0.0.1 at run time', async () => {
  const { address } = await listening({ tls: true });
  const certificate = new X509Certificate(address.ca ?? '');
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(certificate.checkHost('localhost')).toBe('localhost');
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(address.urls['openai-live']).toBe(`wss://127.0.0.1:${address.port}/v1/live/sessions`);
});

test('reports that a port is in use', async () => {
  const { server, address } = await listening();
  await expect(server.listen({ port: address.port })).rejects.toMatchObject({
    code: 'LISTEN_FAILED',
  });
});
