// A local Slack for the package `@slack/web-api`: the method chat.postMessage. It refuses what Slack refuses, with Slack's
// names for the errors: https://docs.slack.dev/reference/methods/chat.postMessage#errors

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LogLevel, WebClient } from '@slack/web-api';
import { slackChannel } from '../../../../src/adapters/slack/index.ts';

interface Message {
  readonly id: string;
  readonly channel: string;
  /** The text as a user reads it. */
  readonly text: string;
  readonly form: Readonly<Record<string, string>>;
}

const TOKEN = 'xoxb-1';

/** Returns the name of the error for a message; null if Slack accepts the message. */
function refusalOf(form: Readonly<Record<string, string>>, token: string | undefined) {
  if (token === undefined) return 'not_authed';
  if (token !== `Bearer ${TOKEN}`) return 'invalid_auth';
  if (!/^[CDU][A-Z0-9]+$/.test(form.channel ?? '')) return 'channel_not_found';
  return form.text === undefined || form.text === '' ? 'no_text' : null;
}

/** Shows a text as a Slack client does: https://docs.slack.dev/messaging/formatting-message-text#escaping */
function shown(text: string): string {
  if (/[<>]|&(?!(?:amp|lt|gt);)/.test(text)) throw new Error(`Expected escaped text: ${text}`);
  const cut = text.slice(0, 40_000);
  return cut.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

export async function localSlack() {
  const messages: Message[] = [];
  let always: string | number | null = null;
  let hangsUp = false;
  const answer = (response: ServerResponse, status: number, body: object, headers = {}): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
      if (typeof always === 'number') {
        // https://docs.slack.dev/apis/web-api/rate-limits
        answer(response, always, {}, always === 429 ? { 'retry-after': '30' } : {});
        return;
      }
      const error = always ?? refusalOf(form, request.headers.authorization);
      if (error !== null) {
        answer(response, 200, { ok: false, error });
        return;
      }
      const ts = `1700000000.${String(messages.length).padStart(6, '0')}`;
      const { channel = '', text = '' } = form;
      messages.push({ id: ts, channel, text: shown(text), form });
      // The answer is lost, but the message is posted.
      if (hangsUp) request.socket.destroy();
      else answer(response, 200, { ok: true, channel, ts });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const slackApiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  const clientOf = (token: string) =>
    new WebClient(token, {
      slackApiUrl,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      logLevel: LogLevel.ERROR,
    });
  const client = clientOf(TOKEN);
  return {
    messages,
    client,
    clientOf,
    channel: slackChannel({ client, channel: 'U012AB3CD' }),
    refuse: (how: string | number) => (always = how),
    hangUp: () => (hangsUp = true),
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
