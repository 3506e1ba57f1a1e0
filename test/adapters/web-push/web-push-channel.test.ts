// Sends push messages with the package `web-push` to a local push service.

import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { webPushChannel } from '../../../src/adapters/web-push/index.ts';
import { ConfigurationError } from '../../../src/index.ts';
import { reachConformance } from '../../../src/testing/index.ts';
import { localPushService } from './support/local-push-service.ts';

describe('a push message', () => {
  const open = async () => {
    const service = await localPushService();
    return {
      channel: service.channel,
      maxChars: 3993,
      received: () =>
        service.messages.map(({ id, text }) => {
          const { title, body } = JSON.parse(text) as { title: string; body: string };
          return { id, text: `${title}\n${body}` };
        }),
      refuse: () => service.refuse(410),
      close: service.close,
    };
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
  const service = await localPushService();
  onTestFinished(() => service.close());
  return service;
}

describe('a push', () => {
  test('WEB-PUSH-1: has the same topic and id in each attempt, and the first link as its url', async () => {
    const { channel, messages } = await opened();
    const links = [{ label: 'Answer', url: 'https://example.com/1' }];
    await channel.send(ITEM, links, NEVER);
    await channel.send({ ...ITEM, priority: 'urgent' }, links, NEVER);
    expect(messages[0]?.id).toBe(messages[1]?.id);
    expect(JSON.parse(messages[0]?.text ?? '')).toEqual({
      id: messages[0]?.id,
      title: 'News: NEWS',
      body: 'Hello',
      url: 'https://example.com/1',
      key: ITEM.key,
      sessionId: ITEM.sessionId,
    });
    expect(messages.map(({ headers }) => headers)).toMatchObject([
      { urgency: 'normal', ttl: '86400' },
      { urgency: 'high' },
    ]);
  });

  test('WEB-PUSH-2: fits in 4096 bytes, counted in UTF-8, and rejects for good if its call does not', async () => {
    const { channel, messages } = await opened();
    const call = { toolName: 'pay', input: 'é'.repeat(1000) };
    await channel.send({ ...ITEM, text: '"é\n'.repeat(6000), call }, [], NEVER);
    expect(Buffer.byteLength(messages[0]?.text ?? '')).toBeLessThanOrEqual(3993);
    expect(messages[0]?.text).toContain(call.input);
    const sent = channel.send({ ...ITEM, call: { ...call, input: 'é'.repeat(2000) } }, [], NEVER);
    await expect(sent).rejects.toMatchObject({ code: 'MESSAGE_TOO_LONG', retryable: false });
  });

  test('WEB-PUSH-3: reaches the other browsers of a user, and reports the one that has ended', async () => {
    const { settings, device, subscribe, messages, answer } = await opened();
    const old = subscribe('old');
    answer('old', 410);
    const gone = vi.fn<(subscription: unknown, item: unknown) => void>();
    const channel = webPushChannel({ ...settings, subscriptions: () => [old, device], gone });
    expect(await channel.send(ITEM, [], NEVER)).toBe('sent');
    expect(messages.map((message) => message.device)).toEqual(['phone']);
    expect(gone.mock.calls).toEqual([[old, ITEM]]);
  });

  test('rejects so that it is sent again if one browser may be reached later', async () => {
    const { settings, device, subscribe, answer } = await opened();
    const old = subscribe('old');
    answer('old', 404);
    answer('phone', 429);
    const channel = webPushChannel({ ...settings, subscriptions: () => [old, device] });
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ retryable: true });
  });

  test.each([
    [400, false],
    [403, false],
    [404, false],
    [410, false],
    [413, false],
    [429, true],
    [500, true],
    [503, true],
  ])('rejects after the status %i (retryable: %s)', async (status, retryable) => {
    const { channel, refuse } = await opened();
    refuse(status);
    const refused = channel.send(ITEM, [], NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'PUSH_REFUSED', retryable });
  });

  test('rejects for good if the user has no browser', async () => {
    const { settings } = await opened();
    const channel = webPushChannel({ ...settings, subscriptions: () => Promise.resolve([]) });
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ retryable: false });
  });

  test('rejects with the connection error if there is no push service', async () => {
    const { channel, close } = await opened();
    await close();
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('rejects for good if the keys are those of another app', async () => {
    const { settings } = await opened();
    const other = await opened();
    const channel = webPushChannel({ ...settings, vapid: other.settings.vapid });
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ retryable: false });
  });

  test.each([
    [{ vapid: { subject: 'ops', publicKey: 'a', privateKey: 'secret' } }, /mailto:/],
    [{ webPush: {} }, /web-push/],
    [{ ttlSeconds: -1 }, /ttlSeconds/],
    [{ icon: 'x' }, /icon/],
  ])('refuses the invalid options %o without showing a secret', (wrong, message) => {
    const options = {
      webPush: { sendNotification: () => Promise.resolve() },
      vapid: { subject: 'mailto:ops@example.com', publicKey: 'a', privateKey: 'secret' },
      subscriptions: () => [],
      ...wrong,
    };
    expect(() => webPushChannel(options as never)).toThrow(ConfigurationError);
    expect(() => webPushChannel(options as never)).toThrow(message);
    expect(() => webPushChannel(options as never)).not.toThrow(/secret/);
  });
});
