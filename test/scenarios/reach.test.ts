// Deliveries to an absent user: which channel sends them, when, and what the user hears on returning (P4).

import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, ProviderError, type TextSessionOptions } from '../../src/index.ts';
import { whyWaiting } from '../../src/entries/machines.ts';
import { codeOf } from '../../src/values/errors.ts';
import { replaySession } from '../../src/entries/replay.ts';
import { afterQuiet } from '../../src/actors/session/effects/reach.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { fakeChannel, type FakeChannel } from '../support/fake-channel.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { textLife, turns, world } from '../support/crashes.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Monday, 09:00 in Vienna. */
const MONDAY_9 = Date.UTC(2026, 10, 30, 8);

type Policy = NonNullable<TextSessionOptions['reach']>;

const BOTH: Policy['steps'] = [
  { afterUnheardMs: 5 * MINUTE, by: 'mail' },
  { afterUnheardMs: HOUR, by: 'sms' },
];

/** Creates a session whose user has left. */
async function left(
  {
    mail = fakeChannel(),
    sms = fakeChannel(),
    ...policy
  }: Partial<Policy> & {
    mail?: FakeChannel;
    sms?: FakeChannel;
  } = {},
  options: Omit<TalkOptions, 'environment'> = {},
  startAt = MONDAY_9,
) {
  const reach: Policy = { channels: { mail, sms }, steps: BOTH, ...policy };
  const environment = simulatedEnvironment({ startAt });
  const talk = textTalk({ environment, reach, ...options });
  const leave = talk.session.attach();
  await talk.session.start();
  leave();
  onTestFinished(() => talk.close());
  /** Attaches a client and connects, as the returning user does. */
  const comes = async () => {
    const leaves = talk.session.attach();
    await talk.start();
    return leaves;
  };
  const notify = (text: string, more: object = {}) => talk.session.notifyBackground(text, more);
  const way = (id: string) =>
    talk.state().deliveries.find(({ deliveryId }) => deliveryId === id)?.reach;
  const texts = (of: FakeChannel) => of.sent.map(({ text }) => text);
  return { ...talk, environment, comes, mail, sms, notify, way, texts };
}

describe('a notice to an absent user', () => {
  test('uses the channels one after another, each once and when its step is due', async () => {
    const talk = await left();
    const id = talk.notify('Your parcel is here');
    await talk.environment.advance(5 * MINUTE - 1);
    expect(talk.mail.sent).toEqual([]);
    expect(talk.way(id)).toEqual({
      state: 'waiting',
      by: 'mail',
      dueAt: MONDAY_9 + 5 * MINUTE,
      sent: [],
    });
    await talk.environment.advance(MINUTE);
    expect(talk.mail.sent).toMatchObject([
      { deliveryId: id, kind: 'notice', priority: 'normal', text: 'Your parcel is here' },
    ]);
    expect(talk.way(id)).toMatchObject({
      state: 'waiting',
      by: 'sms',
      dueAt: MONDAY_9 + HOUR,
      sent: [{ by: 'mail', receipt: 'sent' }],
    });
    await talk.environment.advance(HOUR);
    expect(talk.texts(talk.sms)).toEqual(['Your parcel is here']);
    expect(talk.way(id)).toMatchObject({ state: 'spent', dueAt: null });
    await talk.environment.advance(DAY);
    expect([talk.mail.sent.length, talk.sms.sent.length]).toEqual([1, 1]);
    expect(talk.state().deliveries[0]).toMatchObject({ state: 'pending' });
    expect(talk.errors).toEqual([]);
  });

  test('reaches the next client with a note that it was sent, and is not sent again', async () => {
    const talk = await left();
    const id = talk.notify('Your parcel is here');
    await talk.environment.advance(6 * MINUTE);
    const detach = await talk.comes();
    await talk.environment.advance(MINUTE);
    expect(talk.said().filter((text) => text.includes('parcel'))).toHaveLength(1);
    expect(talk.said().join()).toContain('already sent');
    expect(talk.said().join()).toContain('"sentBy":["mail"]');
    detach();
    expect(talk.state().deliveries[0]).toMatchObject({ deliveryId: id, state: 'delivered' });
    await talk.environment.advance(DAY);
    expect(talk.sms.sent).toEqual([]);
  });

  test('does not use any channel while the user is present', async () => {
    const talk = await left();
    await talk.comes();
    talk.notify('Your parcel is here');
    await talk.environment.advance(DAY);
    expect(talk.said().join()).toContain('parcel');
    expect(talk.said().join()).not.toContain('already sent');
    expect([...talk.mail.sent, ...talk.sms.sent]).toEqual([]);
  });

  test('counts as heard when a channel reports that it was read', async () => {
    const talk = await left();
    const id = talk.notify('Your parcel is here');
    await talk.environment.advance(6 * MINUTE);
    const key = talk.mail.sent[0]?.key ?? '';
    expect(await talk.session.reached(key, 'delivered')).toBe(true);
    expect(talk.way(id)).toMatchObject({ sent: [{ by: 'mail', receipt: 'delivered' }] });
    expect(await talk.session.reached(key, 'read')).toBe(true);
    expect(talk.state().deliveries[0]).toMatchObject({ state: 'delivered', grade: 'read' });
    // Receipts that are repeated, out of order, or for another step, delivery or session.
    for (const other of [key, key.replace(/0$/, '1'), key.replace('not', 'x'), `x${key}`, 'x', ''])
      for (const receipt of ['read', 'delivered'] as const)
        expect(await talk.session.reached(other, receipt)).toBe(false);
    await talk.comes();
    await talk.environment.advance(DAY);
    expect(talk.said()).toEqual([]);
    expect(talk.sms.sent).toEqual([]);
  });

  test.each(['delivered', 'read'] as const)(
    'accepts the receipt %s immediately',
    async (receipt) => {
      const talk = await left({ mail: fakeChannel({ answers: [receipt] }) });
      talk.notify('hello');
      await talk.environment.advance(6 * MINUTE);
      expect(talk.state().deliveries[0]).toMatchObject(
        receipt === 'read' ? { state: 'delivered', grade: 'read' } : { state: 'pending' },
      );
    },
  );

  test('accepts the receipt `read` before the channel answers', async () => {
    const talk = await left({ mail: fakeChannel({ answers: ['never'] }) });
    talk.notify('hello');
    await talk.environment.advance(5 * MINUTE + 1000);
    expect(await talk.session.reached(talk.mail.sent[0]?.key ?? '', 'read')).toBe(true);
    expect(talk.state().deliveries[0]).toMatchObject({ state: 'delivered', grade: 'read' });
    expect(talk.mail.aborted).toBe(1);
  });

  test('does not use any channel after it has been dismissed', async () => {
    const talk = await left();
    talk.session.dismiss(talk.notify('hello'));
    await talk.environment.advance(DAY);
    expect(talk.mail.sent).toEqual([]);
  });

  test('uses only the steps for its priority', async () => {
    const steps: Policy['steps'] = [
      { afterUnheardMs: MINUTE, by: 'sms', priorities: ['urgent'] },
      { afterUnheardMs: 5 * MINUTE, by: 'mail', priorities: ['normal', 'high'] },
    ];
    const talk = await left({ steps });
    talk.notify('calm');
    talk.notify('now', { priority: 'urgent' });
    await talk.environment.advance(DAY);
    expect([talk.texts(talk.mail), talk.texts(talk.sms)]).toEqual([['calm'], ['now']]);
  });
});

describe('a channel that fails', () => {
  test('gets three attempts with the same key before the next channel is used', async () => {
    const talk = await left({ mail: fakeChannel({ answers: ['fails', 'fails', 'fails'] }) });
    const id = talk.notify('hello');
    await talk.environment.advance(20 * MINUTE);
    expect(new Set(talk.mail.sent.map(({ key }) => key)).size).toBe(1);
    expect(talk.mail.sent).toHaveLength(3);
    expect(talk.texts(talk.sms)).toEqual(['hello']);
    expect(talk.way(id)?.sent.map(({ by, receipt }) => [by, receipt])).toEqual([
      ['mail', 'failed'],
      ['mail', 'failed'],
      ['mail', 'failed'],
      ['sms', 'sent'],
    ]);
    expect(talk.way(id)?.sent[0]?.error).toContain('421');
    expect(talk.errors).toHaveLength(3);
  });

  test('does not get another attempt after a permanent refusal', async () => {
    const no = new ProviderError('REFUSED', 'No such user');
    const talk = await left({ mail: fakeChannel({ answers: [no] }) });
    talk.notify('hello');
    await talk.environment.advance(6 * MINUTE);
    expect([talk.mail.sent.length, talk.sms.sent.length]).toEqual([1, 1]);
  });

  test.each([
    { idempotent: true, mails: 3 },
    { idempotent: false, mails: 1 },
  ])(
    'loses its turn if it never answers (idempotent: $idempotent)',
    async ({ idempotent, mails }) => {
      const answers = ['never', 'never', 'never'] as const;
      const talk = await left({ mail: fakeChannel({ idempotent, answers }) });
      talk.notify('hello');
      await talk.environment.advance(30 * MINUTE);
      expect([talk.mail.sent.length, talk.sms.sent.length]).toEqual([mails, 1]);
      expect(talk.mail.aborted).toBe(mails);
    },
  );

  test('counts as failed if it throws synchronously, and as sent if its receipt is invalid', async () => {
    const thrower = fakeChannel();
    const mail = {
      ...thrower,
      send: () => {
        throw new Error('boom');
      },
    };
    const talk = await left({ mail, sms: fakeChannel({ answers: ['nonsense' as never] }) });
    const id = talk.notify('hello');
    await talk.environment.advance(30 * MINUTE);
    expect(talk.way(id)?.sent.map(({ receipt }) => receipt)).toEqual([
      'failed',
      'failed',
      'failed',
      'sent',
    ]);
    const codes = talk.errors.map(({ error }) => codeOf(error));
    expect(codes).toEqual(['CHANNEL_FAILED', 'CHANNEL_FAILED', 'CHANNEL_FAILED']);
  });

  test('lets a user who returns during the attempt hear the delivery once, after the attempt', async () => {
    const talk = await left({ mail: fakeChannel({ answers: ['never'] }), steps: [BOTH[0]!] });
    talk.notify('hello');
    await talk.environment.advance(5 * MINUTE + 1000);
    await talk.comes();
    await talk.environment.advance(10_000);
    // While the delivery is being sent, the session does not present it.
    expect(talk.said()).toEqual([]);
    expect(talk.session.isIdle).toBe(false);
    await talk.environment.advance(25_000);
    expect(talk.said()).toHaveLength(1);
    await talk.environment.advance(DAY);
    expect(talk.said()).toHaveLength(1);
    expect(talk.mail.sent).toHaveLength(1);
  });
});

describe('results and questions', () => {
  const report = { script: turns(say('The report is ready')) };

  test('sends a result', async () => {
    const talk = await left({}, { subagents: { report } });
    const detach = talk.session.attach();
    await talk.session.sendText('use report');
    detach();
    await talk.environment.advance(HOUR + MINUTE);
    expect([talk.texts(talk.mail), talk.texts(talk.sms)]).toEqual([
      [expect.stringContaining('The report is ready')],
      [expect.stringContaining('The report is ready')],
    ]);
  });

  test('leaves a delivered result delivered when the next process starts', async () => {
    const of = world({ snapshots: { afterEntries: 1 } });
    const options: TalkOptions = {
      subagents: { report },
      reach: { channels: { mail: fakeChannel() }, steps: [BOTH[0]!] },
    };
    const first = textLife(of, options);
    first.session.attach();
    await first.session.start();
    await first.session.sendText('use report');
    await of.environment.advance(MINUTE);
    const [delivery] = first.state().deliveries;
    expect(delivery).toMatchObject({ kind: 'result', state: 'pending' });
    first.session.shown(delivery!.deliveryId);
    await of.environment.advance(MINUTE);
    expect(first.state().deliveries).toMatchObject([{ state: 'delivered' }]);
    first.kill();

    const next = textLife(of, options);
    await next.start();
    await of.environment.advance(HOUR);
    expect(next.state().deliveries.filter(({ state }) => state === 'pending')).toEqual([]);
    await next.close();
  });

  test('sends the results of one request in one message', async () => {
    const other = { script: turns(say('The ride is booked')) };
    const talk = await left({}, { subagents: { report, other }, consolidation: 'batch' });
    const detach = talk.session.attach();
    await talk.session.sendText('use report and other');
    detach();
    await talk.environment.advance(HOUR / 2);
    expect(talk.mail.sent).toHaveLength(1);
    expect(talk.texts(talk.mail)[0]).toMatch(/The report is ready[^]*The ride is booked/);
    const key = talk.mail.sent[0]?.key ?? '';
    expect(talk.state().deliveries.map(({ reach }) => reach?.sent[0]?.receipt)).toEqual([
      'sent',
      'sent',
    ]);
    expect(await talk.session.reached(key, 'read')).toBe(true);
    expect(talk.state().deliveries.map(({ grade }) => grade)).toEqual(['read', 'read']);
  });

  const pay = {
    description: 'Pays',
    inputSchema: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: () => 'paid',
  };
  const shop = {
    script: turns(calls(['pay', { amount: 5 }]), say('Paid.')),
    config: { tools: { pay }, inputTimeout: HOUR },
  };

  test('sends an approval with its exact call, until it is answered', async () => {
    const talk = await left({}, { subagents: { shop }, user: 'ada' });
    const detach = talk.session.attach();
    await talk.session.sendText('use shop');
    detach();
    await talk.environment.advance(6 * MINUTE);
    expect(talk.mail.sent).toMatchObject([
      { kind: 'question', user: 'ada', call: { toolName: 'pay', input: { amount: 5 } } },
    ]);
    expect(talk.mail.sent[0]?.options?.length).toBeGreaterThan(0);
    const [asked] = talk.state().questions;
    talk.session.attach();
    await talk.environment.settle();
    const answered = talk.session.answer(asked?.requestId ?? '', { approved: true });
    await talk.environment.settle();
    expect(await answered).toMatchObject({ accepted: true });
    await talk.environment.advance(DAY);
    expect(talk.sms.sent.filter(({ kind }) => kind === 'question')).toEqual([]);
  });

  test('sends a question that was read in a channel no more, even after it was asked again', async () => {
    const mail = fakeChannel({ answers: ['read'] });
    const talk = await left({ mail }, { subagents: { shop } });
    const detach = talk.session.attach();
    await talk.session.sendText('use shop');
    detach();
    await talk.environment.advance(6 * MINUTE);
    const [asked] = talk.state().questions;
    expect(talk.way(asked!.requestId)).toMatchObject({ sent: [{ by: 'mail', receipt: 'read' }] });
    for (const _visit of ['first', 'second']) {
      const leaves = talk.session.attach();
      await talk.environment.advance(10 * MINUTE);
      leaves();
      await talk.environment.advance(DAY);
    }
    expect(talk.state().questions).toMatchObject([{ state: 'parked' }]);
    expect([talk.mail.sent.length, talk.sms.sent.length]).toEqual([1, 0]);
    // The plan ends with its question.
    talk.session.attach();
    await talk.environment.settle();
    expect(talk.way(asked!.requestId)).toMatchObject({ state: 'spent' });
    const answered = talk.session.answer(asked!.requestId, { approved: true });
    await talk.environment.settle();
    expect(await answered).toMatchObject({ accepted: true });
    expect(talk.way(asked!.requestId)).toMatchObject({ state: 'over' });
  });

  test('sends a question that the user has heard but not answered', async () => {
    const talk = await left({}, { subagents: { shop } });
    await talk.comes();
    await talk.environment.advance(4 * MINUTE);
    await talk.type('use shop');
    await talk.environment.advance(4 * MINUTE);
    expect(talk.mail.sent).toEqual([]);
    await talk.environment.advance(3 * MINUTE);
    expect(talk.mail.sent).toMatchObject([{ kind: 'question' }]);
  });
});

describe('a voice session', () => {
  const steps: Policy['steps'] = [{ afterUnheardMs: 5 * MINUTE, by: 'mail' }];

  test('speaks a notice to the returning user only after the channel has ended its attempt', async () => {
    const mail = fakeChannel({ answers: ['never', 'sent'] });
    const talk = voiceTalk({ reach: { channels: { mail }, steps } });
    await talk.start();
    talk.leave();
    talk.session.notifyBackground('Your parcel is here');
    await talk.environment.advance(5 * MINUTE + 1000);
    expect(mail.sent).toHaveLength(1);
    talk.session.attach();
    await talk.environment.advance(20_000);
    // The channel is still sending the notice.
    expect(talk.asked()).toBeNull();
    await talk.environment.advance(10_000);
    expect(talk.asked()).toContain('Your parcel is here');
    await talk.speak('Your parcel is here.');
    await talk.environment.advance(HOUR);
    expect(mail.sent).toHaveLength(1);
    expect(talk.state().deliveries).toMatchObject([{ state: 'delivered', grade: 'played' }]);
    await talk.close();
  });

  test('sends a notice if it could not be spoken to the end', async () => {
    const mail = fakeChannel();
    const talk = voiceTalk({ reach: { channels: { mail }, steps } });
    await talk.start();
    talk.leave();
    talk.session.notifyBackground('Your parcel is here');
    await talk.environment.advance(5 * MINUTE - 1000);
    const leave = talk.session.attach();
    await talk.environment.advance(2000);
    // The notice is being spoken when the step is due.
    expect(talk.asked()).toContain('Your parcel is here');
    expect(mail.sent).toEqual([]);
    expect(talk.state().deliveries).toMatchObject([{ reach: { state: 'waiting' } }]);
    leave();
    await talk.environment.advance(1000);
    expect(mail.sent).toHaveLength(1);
    expect(talk.state().deliveries).toMatchObject([
      { state: 'pending', reach: { state: 'spent' } },
    ]);
    await talk.close();
  });
});

describe('quiet hours', () => {
  const quiet = { from: '22:00', to: '07:00', timeZone: 'Europe/Vienna' };

  test('delay a step until they end', async () => {
    const startAt = Date.UTC(2026, 10, 30, 20, 58);
    const talk = await left({ quiet }, {}, startAt);
    const id = talk.notify('hello');
    await talk.environment.settle();
    const seven = Date.UTC(2026, 11, 1, 6);
    expect(talk.way(id)?.dueAt).toBe(seven);
    await talk.environment.advance(seven - startAt - 1);
    expect(talk.mail.sent).toEqual([]);
    await talk.environment.advance(1 + MINUTE);
    expect(talk.mail.sent).toHaveLength(1);
  });

  test.each([
    ['before', '2026-11-30T20:59:59.999Z', '2026-11-30T20:59:59.999Z'],
    ['at the beginning', '2026-11-30T21:00:00Z', '2026-12-01T06:00:00Z'],
    ['after midnight', '2026-12-01T01:30:20Z', '2026-12-01T06:00:00Z'],
    ['at the end', '2026-12-01T06:00:00Z', '2026-12-01T06:00:00Z'],
    ['in the night in which the clocks go forward', '2026-03-28T22:00:00Z', '2026-03-29T05:00:00Z'],
    ['in the night in which they go back', '2026-10-24T21:00:00Z', '2026-10-25T06:00:00Z'],
  ])('%s', (_, at, until) => {
    const time = afterQuiet({ quiet }, Date.parse(at), 'UTC');
    expect(new Date(time).toISOString()).toBe(new Date(until).toISOString());
  });

  test.each([
    [{ from: '01:00', to: '02:30' }, '2026-03-29T00:10:00Z'],
    [{ from: '01:00', to: '02:30' }, '2026-10-24T23:10:00Z'],
    [{ from: '02:45', to: '02:15' }, '2026-10-25T00:50:00Z'],
    [{ from: '23:59', to: '23:58' }, '2026-10-25T00:50:00Z'],
  ])('end at the right time even on days with 23 or 25 hours: %o at %s', (hours, at) => {
    const time = { ...hours, timeZone: 'Europe/Vienna' };
    const until = afterQuiet({ quiet: time }, Date.parse(at), 'UTC');
    expect(until).toBeGreaterThanOrEqual(Date.parse(at));
    expect(until - Date.parse(at)).toBeLessThan(25 * HOUR);
    expect(afterQuiet({ quiet: time }, until, 'UTC')).toBe(until);
  });
});

describe('a session with channels', () => {
  test('sends only part of a megabyte of text', async () => {
    const huge = { script: turns(say('x'.repeat(1_000_000))) };
    const talk = await left({}, { subagents: { huge } });
    const detach = talk.session.attach();
    await talk.session.sendText('use huge');
    detach();
    await talk.environment.advance(6 * MINUTE);
    expect(talk.mail.sent[0]?.text.length).toBeLessThanOrEqual(20_000);
  });

  test.each([
    ['a channel that is not configured', { steps: [{ afterUnheardMs: 1, by: 'fax' }] }, /"fax"/],
    ['no object', 7, /expected/],
    ['a property of every object', { steps: [{ afterUnheardMs: 1, by: 'toString' }] }, /toString/],
    ['a channel without send', { channels: { mail: { idempotent: true } } }, /send/],
    ['a channel without idempotent', { channels: { mail: { send: () => {} } } }, /idempotent/],
    [
      'steps out of order',
      {
        steps: [
          { afterUnheardMs: 2, by: 'mail' },
          { afterUnheardMs: 1, by: 'mail' },
        ],
      },
      /order/,
    ],
    ['a negative time', { steps: [{ afterUnheardMs: -1, by: 'mail' }] }, /afterUnheardMs/],
    ['an unknown option', { retries: 3 }, /retries/],
    ['a wrong time of day', { quiet: { from: '25:00', to: '07:00' } }, /22:00/],
    ['an unknown time zone', { quiet: { from: '22:00', to: '07:00', timeZone: 'Mars' } }, /Vienna/],
    ['quiet hours without end', { quiet: { from: '22:00', to: '22:00' } }, /different/],
  ])('refuses %s', (_, given, message) => {
    const reach = { channels: { mail: fakeChannel() }, steps: [], ...(given as object) };
    const wrong = typeof given === 'number' ? given : reach;
    const make = () => textTalk({ reach: wrong as never });
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(message);
  });

  test('explains why a delivery is waiting, and applies the policy of the next process', async () => {
    const of = world();
    const mail = fakeChannel({ answers: ['never'] });
    const sms = fakeChannel();
    const begun = async (reach: Policy) => {
      const life = textLife(of, { reach });
      const leave = life.session.attach();
      await life.session.start();
      leave();
      return life;
    };
    const sentences = () =>
      whyWaiting([...replaySession(of.entries)].at(-1)!.machines!)
        .filter((wait) => wait.of === 'delivery')
        .map(({ sentence }) => sentence);
    const first = await begun({ channels: { mail, sms }, steps: BOTH });
    first.session.notifyBackground('hello');
    await of.environment.advance(1000);
    expect(sentences()).toEqual([
      expect.stringMatching(/^parked: nobody is attached.*; sent by mail in 5 min$/),
    ]);
    await of.environment.advance(5 * MINUTE);
    expect(sentences()).toEqual(['being sent by mail']);
    first.kill();
    // The new process has no mail channel, and different steps.
    const next = await begun({
      channels: { sms },
      steps: [
        { afterUnheardMs: 0, by: 'sms' },
        { afterUnheardMs: 10 * MINUTE, by: 'sms' },
      ],
    });
    await of.environment.advance(MINUTE);
    expect([mail.sent.length, sms.sent.length]).toEqual([1, 1]);
    expect(next.state().deliveries[0]?.reach).toMatchObject({
      state: 'spent',
      sent: [
        { by: 'mail', receipt: 'failed' },
        { by: 'sms', receipt: 'sent' },
      ],
    });
    await next.close();
  });

  test('refuses a receipt that no channel can report', async () => {
    const talk = await left();
    await expect(talk.session.reached(7 as never, 'read')).rejects.toThrow(ConfigurationError);
    await expect(talk.session.reached('x', 'sent' as never)).rejects.toThrow(ConfigurationError);
  });
});
