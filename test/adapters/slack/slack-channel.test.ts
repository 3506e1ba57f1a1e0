// Posts deliveries with the package `@slack/web-api` to a local Slack.

import { describe, expect, onTestFinished, test } from 'vitest';
import { slackChannel } from '../../../src/adapters/slack/index.ts';
import { ConfigurationError, createRuntime } from '../../../src/index.ts';
import { reachConformance, simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';
import { localSlack } from './support/local-slack.ts';

describe('a message in Slack', () => {
  const open = async () => {
    const slack = await localSlack();
    return {
      channel: slack.channel,
      received: () => slack.messages,
      refuse: () => void slack.refuse('channel_not_found'),
      close: slack.close,
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
  const slack = await localSlack();
  onTestFinished(() => slack.close());
  return slack;
}

describe('a post', () => {
  test('SLACK-2: mentions no one and forms no link with the text of a delivery', async () => {
    const { channel, messages } = await opened();
    const text = '<!channel> <@U1> <https://eve.example.com|bank> &amp; *bold* @here';
    await channel.send({ ...ITEM, text }, [], NEVER);
    const [message] = messages;
    expect(message?.text).toBe(`News: NEWS\n${text}`);
    expect(message?.form).toMatchObject({
      mrkdwn: 'false',
      parse: 'none',
      link_names: 'false',
      unfurl_links: 'false',
      unfurl_media: 'false',
    });
  });

  test('uses the channel and the text from the functions of the app, and passes them the links', async () => {
    const { client, messages } = await opened();
    const channel = slackChannel({
      client,
      channel: ({ user }) => Promise.resolve(`U${user?.toUpperCase()}`),
      write: ({ text }, links) => `<${text}> ${links[0]?.url}`,
    });
    const links = [{ label: 'Open', url: 'https://example.com/1?a=b&c=d' }];
    await channel.send({ ...ITEM, user: 'ben' }, links, NEVER);
    expect(messages).toMatchObject([
      { channel: 'UBEN', text: '<Hello> https://example.com/1?a=b&c=d' },
    ]);
  });

  test('SLACK-3: cuts the text, measured as Slack counts it, but no call', async () => {
    const { channel, messages } = await opened();
    const call = { toolName: 'pay', input: `${'&'.repeat(2000)} birch` };
    await channel.send({ ...ITEM, text: '<'.repeat(20_000), call }, [], NEVER);
    const [message] = messages;
    expect(message?.form.text?.length).toBeLessThanOrEqual(40_000);
    expect(message?.text).toContain('more characters]');
    expect(message?.text).toContain(call.input);
    const tooLong = { toolName: 'pay', input: '&'.repeat(10_000) };
    const sent = channel.send({ ...ITEM, call: tooLong }, [], NEVER);
    await expect(sent).rejects.toMatchObject({ code: 'MESSAGE_TOO_LONG', retryable: false });
  });

  test.each([
    ['channel_not_found', false],
    ['not_in_channel', false],
    ['invalid_auth', false],
    ['account_inactive', false],
    ['an_error_of_next_year', false],
    ['ratelimited', true],
    ['service_unavailable', true],
    [429, true],
    [503, true],
    [403, false],
  ])('rejects with a ProviderError after %s (retryable: %s)', async (how, retryable) => {
    const { channel, refuse } = await opened();
    refuse(how);
    const refused = channel.send(ITEM, [], NEVER);
    await expect(refused).rejects.toMatchObject({ code: 'SLACK_REFUSED', retryable });
  });

  test.each(['fatal_error', 'internal_error', 'request_timeout', 500])(
    'SLACK-1: rejects with a TimeoutError after %s',
    async (how) => {
      const { channel, refuse } = await opened();
      refuse(how);
      await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ name: 'TimeoutError' });
      expect(channel.idempotent).toBe(false);
    },
  );

  test('SLACK-1: rejects with a TimeoutError if the answer is lost', async () => {
    const { channel, hangUp, messages } = await opened();
    hangUp();
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(messages).toHaveLength(1);
  });

  test('rejects with the connection error if Slack cannot be reached', async () => {
    const { channel, close } = await opened();
    await close();
    await expect(channel.send(ITEM, [], NEVER)).rejects.toMatchObject({
      code: 'slack_webapi_request_error',
    });
  });

  test('rejects for good if Slack does not know the token', async () => {
    const { clientOf } = await opened();
    const channel = slackChannel({ client: clientOf('xoxb-2'), channel: 'U012AB3CD' });
    const refused = channel.send(ITEM, [], NEVER);
    await expect(refused).rejects.toThrow(/invalid_auth/);
    await expect(refused).rejects.toMatchObject({ retryable: false });
  });

  test.each([
    [{ channel: '' }, /channel/],
    [{ client: {} }, /@slack\/web-api/],
    [{ thread: 'x' }, /thread/],
  ])('refuses the invalid options %o', (wrong, message) => {
    const client = { chat: { postMessage: () => Promise.resolve() } };
    const options = { client, channel: 'U012AB3CD', ...wrong };
    expect(() => slackChannel(options as never)).toThrow(ConfigurationError);
    expect(() => slackChannel(options as never)).toThrow(message);
  });
});

test('P4: posts a notice while the tab is closed', async () => {
  const slack = await opened();
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment });
  const talk = textTalk({
    runtime,
    environment,
    reach: {
      channels: { slack: slack.channel },
      steps: [{ afterUnheardMs: 60_000, by: 'slack' }],
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
  expect(slack.messages).toHaveLength(1);
  expect(slack.messages[0]?.text).toContain('Your parcel is here');
  await talk.close();
});
