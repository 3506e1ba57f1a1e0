// Sends e-mail through nodemailer to a real SMTP server in this process.

import { describe, expect, onTestFinished, test } from 'vitest';
import { emailChannel } from '../../../src/adapters/email/index.ts';
import { ConfigurationError, createRuntime, ProviderError } from '../../../src/index.ts';
import { reachConformance, simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';
import { createTransport, postOffice } from './support/post-office.ts';

describe('an e-mail to an SMTP server', () => {
  const open = async () => {
    const office = await postOffice();
    return {
      channel: office.channel,
      received: () => office.mails,
      refuse: () => void office.answer(550),
      close: office.close,
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
  const office = await postOffice();
  onTestFinished(() => office.close());
  return office;
}

describe('a message', () => {
  test("EMAIL-1: has the same Message-ID, with the sender's domain, in each attempt", async () => {
    const { channel, mails } = await opened();
    await channel.send(ITEM, [], NEVER);
    await channel.send(ITEM, [], NEVER);
    expect(mails.map(({ id }) => id)).toEqual([mails[0]?.id, mails[0]?.id]);
    expect(mails[0]?.id).toMatch(/^<[0-9a-f]{32}@example\.com>$/);
    expect(mails[0]?.raw).toMatch(/^auto-submitted: auto-generated/im);
  });

  test("EMAIL-2: never takes a header or recipient from a delivery's text", async () => {
    const { channel, mails } = await opened();
    const label = 'x\r\nBcc: eve@example.com\r\n\r\nbody';
    await channel.send({ ...ITEM, label, text: '.\r\nMAIL FROM:<eve@example.com>' }, [], NEVER);
    expect(mails).toHaveLength(1);
    expect(mails[0]?.to).toEqual(['ada@example.com']);
    expect(mails[0]?.raw).not.toMatch(/^bcc:/im);
    expect(mails[0]?.text).toContain('MAIL FROM');
  });

  test("uses the address and the text from the app's functions, and passes them the links", async () => {
    const { transport, mails } = await opened();
    const channel = emailChannel({
      transport,
      from: 'bot@example.com',
      to: ({ user }) => Promise.resolve(`${user}@example.com`),
      write: ({ text }, links) => ({ subject: 'Neuigkeit', text: `${text} ${links[0]?.url}` }),
    });
    const links = [{ label: 'Open', url: 'https://example.com/1' }];
    await channel.send({ ...ITEM, user: 'ben' }, links, NEVER);
    expect(mails).toMatchObject([{ to: ['ben@example.com'], subject: 'Neuigkeit' }]);
    expect(mails[0]?.text).toContain('https://example.com/1');
  });

  test.each([
    [550, false],
    [451, true],
  ])(
    'rejects with a ProviderError after the response %i (retryable: %s)',
    async (code, retryable) => {
      const { channel, answer } = await opened();
      answer(code);
      const refused = channel.send(ITEM, [], NEVER);
      await expect(refused).rejects.toThrow(ProviderError);
      await expect(refused).rejects.toMatchObject({ code: 'EMAIL_REFUSED', retryable });
    },
  );

  test('rejects with the connection error if there is no server', async () => {
    const office = await postOffice();
    await office.close();
    await expect(office.channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ command: 'CONN' });
  });

  test.each([
    [{ to: 'nobody' }, /address/],
    [{ from: 'a@b\r\nBcc: c@d' }, /address/],
    [{ transport: {} }, /nodemailer/],
    [{ cc: 'x@example.com' }, /cc/],
  ])('refuses the invalid options %o', (wrong, message) => {
    const transport = createTransport({ jsonTransport: true });
    const options = { transport, from: 'a@example.com', to: 'b@example.com', ...wrong };
    expect(() => emailChannel(options as never)).toThrow(ConfigurationError);
    expect(() => emailChannel(options as never)).toThrow(message);
  });
});

test('P4: sends a result by e-mail while the tab is closed, and speaks it the next day', async () => {
  const office = await opened();
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment });
  const talk = textTalk({
    runtime,
    environment,
    reach: {
      channels: { mail: office.channel },
      steps: [{ afterUnheardMs: 60_000, by: 'mail' }],
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
  expect(office.mails).toMatchObject([{ to: ['ada@example.com'] }]);
  await environment.advance(86_400_000);
  talk.session.attach();
  await talk.start();
  await environment.advance(1000);
  expect(talk.said().join()).toMatch(/already sent.*Your parcel is here/s);
  expect(office.mails).toHaveLength(1);
  await talk.close();
});
