// A local Twilio for the package `twilio`: the resource Message and its status callbacks. It refuses what Twilio refuses,
// with Twilio's codes and titles; each rule cites its page.

import { createHmac } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import twilio from 'twilio';
import { smsChannel } from '../../../../src/adapters/sms/index.ts';

export const AUTH_TOKEN = '12345';
const SID = `AC${'0'.repeat(32)}`;
export const CALLBACK = 'https://app.example.com/sms';

interface Message {
  readonly id: string;
  readonly to: string;
  readonly text: string;
  readonly callback: string | null;
}

class LocalClient extends twilio.RequestClient {
  readonly #origin: string;
  constructor(origin: string) {
    super();
    this.#origin = origin;
  }
  override request: InstanceType<typeof twilio.RequestClient>['request'] = (options) => {
    const uri = options.uri.replace('https://api.twilio.com', this.#origin);
    return twilio.RequestClient.prototype.request.call(this, { ...options, uri }) as never;
  };
}

/** Returns Twilio's signature of a form: https://www.twilio.com/docs/usage/security#how-twilio-signs-requests */
function signed(url: string, form: Readonly<Record<string, string>>): string {
  const text = Object.entries(form)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .reduce((sum, [name, value]) => sum + name + value, url);
  return createHmac('sha1', AUTH_TOKEN).update(text).digest('base64');
}

/** The error for a message, as status, code and title; null if Twilio accepts the message. */
function refusalOf(form: URLSearchParams): [status: number, code: number, title: string] | null {
  const to = form.get('To') ?? '';
  const body = form.get('Body') ?? '';
  // https://www.twilio.com/docs/api/errors/21603
  if (!form.has('From') && !form.has('MessagingServiceSid'))
    return [400, 21_603, "A 'From' phone number is required"];
  // https://www.twilio.com/docs/api/errors/21211
  if (!/^\+[1-9]\d{6,14}$/.test(to)) return [400, 21_211, "Invalid 'To' Phone Number"];
  // https://www.twilio.com/docs/api/errors/21602
  if (body === '') return [400, 21_602, 'Message body is required'];
  // https://www.twilio.com/docs/api/errors/21617
  if (body.length > 1600)
    return [400, 21_617, 'The concatenated message body exceeds the 1600 character limit'];
  return null;
}

export async function localTwilio() {
  const messages: Message[] = [];
  let always: readonly [status: number, code: number, title: string] | null = null;
  let hangsUp = false;
  const answer = (response: ServerResponse, status: number, body: object): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify(body));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      const credentials = Buffer.from(`${SID}:${AUTH_TOKEN}`).toString('base64');
      const isKnown = request.headers.authorization === `Basic ${credentials}`;
      // https://www.twilio.com/docs/api/errors/20003
      const refusal = isKnown
        ? (always ?? refusalOf(form))
        : ([401, 20_003, 'Authenticate'] as const);
      if (refusal) {
        const [status, code, message] = refusal;
        const more_info = `https://www.twilio.com/docs/errors/${code}`;
        answer(response, status, { status, code, message, more_info });
        return;
      }
      const id = `SM${String(messages.length).padStart(32, '0')}`;
      messages.push({
        id,
        to: form.get('To') ?? '',
        text: form.get('Body') ?? '',
        callback: form.get('StatusCallback'),
      });
      // The answer is lost, but the message is sent.
      if (hangsUp) request.socket.destroy();
      else answer(response, 201, { sid: id, status: 'queued' });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clientOf = (token: string) => twilio(SID, token, { httpClient: new LocalClient(origin) });
  const client = clientOf(AUTH_TOKEN);
  const receipts = {
    url: CALLBACK,
    authToken: AUTH_TOKEN,
    validateRequest: twilio.validateRequest,
  };
  return {
    messages,
    client,
    clientOf,
    receipts,
    channel: smsChannel({ client, from: '+15557122661', to: '+15558675310', receipts }),
    refuse: (status: number, code: number, title: string) => (always = [status, code, title]),
    hangUp: () => (hangsUp = true),
    /** Returns the request that Twilio sends when the status of a message changes. */
    callback({ callback, id }: Message, MessageStatus: string) {
      const form = { MessageSid: id, MessageStatus, To: '+15558675310' };
      const url = callback ?? '';
      return { url, signature: signed(url, form), body: new URLSearchParams(form).toString() };
    },
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
