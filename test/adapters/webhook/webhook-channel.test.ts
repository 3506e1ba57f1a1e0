// Real requests to a local port, whose receiver is the webhook event source.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { webhookChannel } from '../../../src/adapters/webhook/index.ts';
import { isSigned, claimOf, keyOf } from '../../../src/adapters/webhook/signatures.ts';
import { ConfigurationError } from '../../../src/index.ts';
import { reachConformance, simulatedEnvironment } from '../../../src/testing/index.ts';

const secret = 'a secret of 24 characters';
const environment = simulatedEnvironment();

interface Post {
  readonly id: string;
  readonly text: string;
  readonly isSigned: boolean;
}

async function receiver() {
  const posts: Post[] = [];
  let answer: { status: number; body: string; headers?: Record<string, string> } = {
    status: 200,
    body: '',
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const claim = claimOf('standard', request.headers);
      const { data } = JSON.parse(body.toString('utf8')) as { data: object };
      if (answer.status < 300)
        posts.push({
          id: String(request.headers['webhook-id']),
          text: Object.values(data).map(flat).join('\n'),
          isSigned: claim !== null && isSigned([keyOf('standard', secret)], claim, body),
        });
      response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/deliveries`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  const channel = webhookChannel({ url, secret, environment });
  return { posts, url, channel, close, answers: (next: typeof answer) => (answer = next) };
}

const flat = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

describe('a webhook', () => {
  const open = async () => {
    const { channel, posts, answers, close } = await receiver();
    const refuse = () => void answers({ status: 500, body: '' });
    return { channel, received: () => posts, refuse, close };
  };
  test.each(reachConformance({ open }))('$name', ({ run }) => run());
});

const ITEM = {
  key: 'ses/notice/0',
  sessionId: 'ses',
  deliveryId: 'notice',
  kind: 'notice',
  priority: 'normal',
  label: 'NEWS',
  text: 'Hello',
} as const;
const NEVER = new AbortController().signal;

async function opened() {
  const stage = await receiver();
  onTestFinished(() => stage.close());
  return stage;
}

describe('a request', () => {
  test('WEBHOOK-CHANNEL-1: has a signature, and a repeated request has the same id', async () => {
    const { channel, posts } = await opened();
    await channel.send(ITEM, [], NEVER);
    await channel.send(ITEM, [], NEVER);
    expect(posts.map(({ isSigned: signed }) => signed)).toEqual([true, true]);
    expect(posts[0]?.id).toBe(posts[1]?.id);
    expect(posts[0]?.id).toMatch(/^msg_[0-9a-f]{32}$/);
  });

  test.each([
    ['', 'sent'],
    ['{"receipt":"read"}', 'read'],
    ['{"receipt":"delivered"}', 'delivered'],
    ['{"receipt":"sent by pigeon"}', 'sent'],
    ['[', 'sent'],
  ])('interprets the response %j as the receipt %s', async (body, receipt) => {
    const { channel, answers } = await opened();
    answers({ status: 200, body });
    expect(await channel.send(ITEM, [], NEVER)).toBe(receipt);
  });

  test.each([
    [404, false],
    [410, false],
    [429, true],
    [503, true],
  ])(
    'WEBHOOK-CHANNEL-2: rejects after the status %i (retryable: %s)',
    async (status, retryable) => {
      const { channel, answers } = await opened();
      answers({ status, body: 'no' });
      const refused = channel.send(ITEM, [], NEVER);
      await expect(refused).rejects.toMatchObject({ code: 'WEBHOOK_REFUSED', retryable });
    },
  );

  test('does not follow redirects, and can be aborted through its signal', async () => {
    const { channel, answers, posts, url } = await opened();
    answers({ status: 307, body: '', headers: { location: url } });
    await expect(channel.send(ITEM, [], NEVER)).rejects.toThrow();
    await expect(channel.send(ITEM, [], AbortSignal.abort(new Error('over')))).rejects.toThrow();
    expect(posts).toEqual([]);
  });

  test.each([
    [{ url: 'file:///etc/passwd' }, /url/],
    [{ secret: 'short' }, /16 bytes/],
    [{ environment: 7 }, /environment/],
    [{ retries: 3 }, /retries/],
  ])('refuses invalid options without revealing the secret: %o', (wrong, message) => {
    const make = () =>
      webhookChannel({ url: 'https://example.com', secret, environment, ...wrong } as never);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(message);
    expect(make).not.toThrow(secret);
  });
});
