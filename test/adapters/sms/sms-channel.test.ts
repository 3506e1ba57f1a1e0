// Sends text messages with the package `twilio` to a local Twilio.

import { describe, expect, onTestFinished, test } from 'vitest';
import { smsChannel } from '../../../src/adapters/sms/index.ts';
import { ConfigurationError, createRuntime, ProtocolError } from '../../../src/index.ts';
import { reachConformance, simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';
import { CALLBACK, localTwilio } from './support/local-twilio.ts';

describe('a text message', () => {
  const open = async () => {
    const twilio = await localTwilio();
    return {
      channel: twilio.channel,
      maxChars: 1600,
      received: () => twilio.messages,
      refuse: () => void twilio.refuse(400, 21_610, 'Attempt to send to unsubscribed recipient'),
      close: twilio.close,
    };
  };
  test.each(reachConformance({ open }))('$name', ({ run }) => run());
});

const ITEM = {
  key: 'ses/ä?&1/notice/0',
  sessionId: 'ses/ä?&1',
  deliveryId: 'notice',
  kind: 'notice',
  priority: 'normal',
  label: 'NEWS',
  text: 'Hello',
} as const;
const NEVER = new AbortController().signal;

async function opened() {
  const twilio = await localTwilio();
  onTestFinished(() => twilio.close());
  return twilio;
}

describe('a message', () => {
  test('uses the number and the text from the functions of the app, and passes them the links', async () => {
    const { client, messages } = await opened();
    const channel = smsChannel({
      client,
      from: `MG${'0'.repeat(32)}`,
      to: ({ user }) => Promise.resolve(user === 'ben' ? '+15550001111' : ''),
      write: ({ text }, links) => `${text} ${links[0]?.url}`,
    });
    const links = [{ label: 'Open', url: 'https://example.com/1' }];
    await channel.send({ ...ITEM, user: 'ben' }, links, NEVER);
    expect(messages).toMatchObject([
      { to: '+15550001111', text: 'Hello https://example.com/1', callback: null },
    ]);
  });

  test('SMS-3: cuts the text to maxChars, but no link', async () => {
    const { client, messages } = await opened();
    const to = '+15558675310';
    const channel = smsChannel({ client, from: '+15557122661', to, maxChars: 160 });
    const links = [{ label: 'Answer', url: `https://example.com/${'x'.repeat(60)}` }];
    await channel.send({ ...ITEM, text: '😀'.repeat(10_000) }, links, NEVER);
    const [text = ''] = messages.map((message) => message.text);
    expect(text.length).toBeLessThanOrEqual(160);
    expect(text).toContain('more characters]');
    expect(text).toContain(links[0]?.url);
    expect(text.isWellFormed()).toBe(true);
  });

  test('SMS-3: rejects for good if the call is too long', async () => {
    const { channel, messages } = await opened();
    const call = { toolName: 'pay', input: 'x'.repeat(1600) };
    const sent = channel.send({ ...ITEM, kind: 'question', call }, [], NEVER);
    await expect(sent).rejects.toMatchObject({ code: 'MESSAGE_TOO_LONG', retryable: false });
    expect(messages).toEqual([]);
  });

  test.each([
    [400, 21_610, 'Attempt to send to unsubscribed recipient', false],
    [400, 21_211, "Invalid 'To' Phone Number", false],
    [429, 20_429, 'Too Many Requests', true],
    [400, 21_611, "This 'From' number has exceeded the maximum number of queued messages", true],
    [503, 20_503, 'Service Unavailable', true],
  ])(
    'rejects after the error %i %i (%s) (retryable: %s)',
    async (status, code, title, retryable) => {
      const { channel, refuse } = await opened();
      refuse(status, code, title);
      const refused = channel.send(ITEM, [], NEVER);
      await expect(refused).rejects.toMatchObject({ code: 'SMS_REFUSED', retryable });
      await expect(refused).rejects.toThrow(`${title} (${code})`);
    },
  );

  test('SMS-1: rejects with a TimeoutError if Twilio may have sent it', async () => {
    const { channel, messages, hangUp, refuse } = await opened();
    hangUp();
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(messages).toHaveLength(1);
    refuse(500, 20_500, 'Internal Server Error');
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(channel.idempotent).toBe(false);
  });

  test('rejects with the connection error if Twilio cannot be reached', async () => {
    const { channel, close } = await opened();
    await close();
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('rejects for good if Twilio does not know the token', async () => {
    const { clientOf } = await opened();
    const channel = smsChannel({
      client: clientOf('wrong'),
      from: '+15557122661',
      to: '+15558675310',
    });
    const refused = channel.send(ITEM, [], NEVER);
    await expect(refused).rejects.toThrow('Authenticate (20003)');
    await expect(refused).rejects.toMatchObject({ retryable: false });
  });

  test.each([
    [{ to: '' }, /to/],
    [{ client: {} }, /twilio/],
    [{ maxChars: 1601 }, /maxChars/],
    [{ cc: 'x' }, /cc/],
    [
      { receipts: { url: `${CALLBACK}?a=b`, authToken: 'secret', validateRequest: () => true } },
      /query/,
    ],
  ])('refuses the invalid options %o without showing a secret', (wrong, message) => {
    const client = { messages: { create: () => Promise.resolve() } };
    const options = { client, from: '+15557122661', to: '+15558675310', ...wrong };
    expect(() => smsChannel(options as never)).toThrow(ConfigurationError);
    expect(() => smsChannel(options as never)).toThrow(message);
    expect(() => smsChannel(options as never)).not.toThrow(/secret/);
  });
});

describe('a receipt', () => {
  test.each([
    ['queued', null],
    ['sent', null],
    ['undelivered', null],
    ['failed', null],
    ['delivered', 'delivered'],
    ['read', 'read'],
  ])('SMS-2: comes from a signed callback (%s: %s)', async (status, receipt) => {
    const { channel, messages, callback } = await opened();
    await channel.send(ITEM, [], NEVER);
    const [message] = messages;
    const request = callback(message!, status);
    const { key, sessionId } = ITEM;
    expect(channel.receipt(request)).toEqual(receipt && { key, sessionId, receipt });
    // Express and Node.js only know the path.
    const url = request.url.replace('https://app.example.com', '');
    expect(channel.receipt({ ...request, url })).toEqual(receipt && { key, sessionId, receipt });
  });

  test('SMS-2: throws if anything in it was changed', async () => {
    const { channel, messages, callback, client } = await opened();
    await channel.send(ITEM, [], NEVER);
    const [message] = messages;
    const request = callback(message!, 'sent');
    for (const forged of [
      { ...request, body: request.body.replace('=sent', '=read') },
      { ...request, url: request.url.replace('notice', 'others') },
      { ...request, url: request.url.replace(/\?.*/, '') },
      { ...request, signature: undefined },
      { ...request, signature: request.signature.toLowerCase() },
      { ...request, body: `${request.body}&${'x'.repeat(1e6)}=1` },
    ])
      expect(() => channel.receipt(forged)).toThrow(ProtocolError);
    const unable = smsChannel({ client, from: '+15557122661', to: '+15558675310' });
    expect(() => unable.receipt(request)).toThrow(ProtocolError);
  });

  test('P4: reaches the session, which then shows a delivered message', async () => {
    const twilio = await opened();
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment });
    const talk = textTalk({
      runtime,
      environment,
      reach: {
        channels: { sms: twilio.channel },
        steps: [{ afterUnheardMs: 60_000, by: 'sms' }],
      },
    });
    const leave = talk.session.attach();
    await talk.session.start();
    leave();
    talk.session.notifyBackground('Your parcel is here');
    await environment.advance(61_000);
    while (talk.state().deliveries[0]?.reach?.state !== 'spent') {
      await new Promise((resolve) => setImmediate(resolve));
      await environment.settle();
    }
    const [message] = twilio.messages;
    const report = twilio.channel.receipt(twilio.callback(message!, 'delivered'));
    expect(report?.sessionId).toBe(talk.session.id);
    expect(await talk.session.reached(report!.key, report!.receipt)).toBe(true);
    expect(await talk.session.reached(report!.key, report!.receipt)).toBe(false);
    expect(talk.state().deliveries[0]?.reach?.sent).toMatchObject([{ receipt: 'delivered' }]);
    await talk.close();
  });
});
