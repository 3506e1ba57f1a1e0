// Errors for which no caller waits: who receives them, and that they have no other effect.

import { channel } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { runSubagent } from '../../src/entries/subagents.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { ProviderError } from '../../src/values/errors.ts';
import { reporter } from '../../src/values/reporter.ts';
import { say } from '../support/subagent-runs.ts';
import { castOf, configOf, textTalk } from '../support/text-talk.ts';

const lost = (message: string) => new ProviderError('CONNECTION_LOST', message);

function heard() {
  const messages: unknown[] = [];
  const listener = (message: unknown): void => void messages.push(message);
  channel('offstage:error').subscribe(listener);
  return { messages, stop: () => channel('offstage:error').unsubscribe(listener) };
}

describe('the channel offstage:error', () => {
  test('receives every error, even if the app has a listener', () => {
    const { messages, stop } = heard();
    const told: unknown[] = [];
    const error = lost('socket closed');
    reporter((...each: [unknown, string]) => told.push(each))(error, 'transport');
    reporter(undefined, 'twilio')('odd');
    stop();
    reporter(undefined)(error);
    expect(messages).toEqual([
      { error, code: 'CONNECTION_LOST', where: 'transport' },
      { error: 'odd', code: 'INTERNAL', where: 'twilio' },
    ]);
    expect(told).toEqual([[error, 'transport']]);
  });

  test("receives a session's error only once", async () => {
    const { messages, stop } = heard();
    const talk = textTalk({
      hooks: {
        onToolCall: () => {
          throw new Error('a hook that throws');
        },
      },
      tools: [],
      subagents: { report: { script: () => say('done') } },
    });
    await talk.start();
    await talk.type('use report');
    stop();
    expect(messages).toHaveLength(1);
    expect(messages).toMatchObject([{ where: 'hook onToolCall', code: 'INTERNAL' }]);
  });
});

describe('the terminal', () => {
  const lines: string[] = [];
  beforeEach(() => {
    lines.length = 0;
    vi.spyOn(console, 'warn').mockImplementation((line: string) => void lines.push(line));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  test('REPORT-2: shows each line once during development if the app has no listener', () => {
    vi.stubEnv('NODE_ENV', 'development');
    for (const message of ['first\nmore', 'first\nmore', 'second'])
      reporter(undefined)(lost(message), 'transport');
    reporter(() => {})(lost('third'), 'transport');
    expect(lines).toEqual([
      'offstage: transport: CONNECTION_LOST: first',
      'offstage: transport: CONNECTION_LOST: second',
    ]);
  });

  it('escapes characters that would move the cursor', () => {
    vi.stubEnv('NODE_ENV', 'development');
    reporter(undefined)(lost('\u001b[2Jgone\u009b0m\rpaid'), 'transport');
    expect(lines).toEqual([
      'offstage: transport: CONNECTION_LOST: \\u001b[2Jgone\\u009b0m\\u000dpaid',
    ]);
  });

  test("REPORT-2: shows a stored run's errors without a listener, and publishes them once on the channel", async () => {
    vi.stubEnv('NODE_ENV', 'development');
    const { messages, stop } = heard();
    const environment = simulatedEnvironment();
    let calls = 0;
    const { result } = runSubagent(configOf('order', {}), 'Order it', {
      id: 'order-17',
      runtime: createRuntime({ environment, journal: memoryJournal() }),
      model: castOf({
        subagents: {
          order: {
            script: () => {
              if ((calls += 1) === 1)
                throw Object.assign(new Error('rate limit'), {
                  isRetryable: true,
                  statusCode: 429,
                });
              return say('Ordered.');
            },
          },
        },
      }),
    });
    await environment.advance(10_000);
    expect(await result).toMatchObject({ status: 'completed' });
    stop();
    expect(lines).toEqual(['offstage: model call 1 of step 1 of order: RATE_LIMITED: rate limit']);
    expect(messages).toMatchObject([{ code: 'RATE_LIMITED', error: { retryable: true } }]);
  });

  test.each([
    ['NODE_ENV', 'production'],
    ['NODE_ENV', 'test'],
    ['OFFSTAGE_LOG', 'off'],
  ])('REPORT-2: shows no errors with %s=%s', (name, value) => {
    vi.stubEnv('NODE_ENV', 'development');
    vi.stubEnv(name, value);
    reporter(undefined)(lost(`with ${name}=${value}`), 'transport');
    expect(lines).toEqual([]);
  });
});

test('REPORT-1: tolerates a listener that throws or rejects', async () => {
  for (const listener of [
    () => {
      throw new Error('no');
    },
    () => Promise.reject(new Error('no')),
  ])
    reporter(listener)(lost('x'), 'transport');
  await Promise.resolve();
});
