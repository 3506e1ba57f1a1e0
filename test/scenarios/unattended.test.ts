// A voice session reports once that no client attaches or that its client reports no playout.

import { expect, test } from 'vitest';
import { voiceTalk } from '../support/voice-talk.ts';

const reportsOf = ({ events, errors }: ReturnType<typeof voiceTalk>) => [
  events.filter((event) => event.type === 'error.reported').map(({ code }) => code),
  errors.map(({ error }) => (error as { code?: unknown }).code),
];
const once = [['NOBODY_ATTACHED'], ['NOBODY_ATTACHED']];

async function unattended(options: Parameters<typeof voiceTalk>[0] = {}) {
  const talk = voiceTalk(options);
  await talk.session.start();
  await talk.environment.settle();
  return talk;
}

test('reports once, after 10 s, that a greeting has no listener', async () => {
  const talk = await unattended({ greeting: 'Say hello.' });
  await talk.environment.advance(9_999);
  expect(reportsOf(talk)).toEqual([[], []]);
  await talk.environment.advance(1);
  expect(reportsOf(talk)).toEqual(once);
  talk.session.notifyBackground('The taxi is here.');
  await talk.environment.advance(60_000);
  talk.session.attach()();
  talk.session.notifyBackground('It has left.');
  await talk.environment.advance(60_000);
  expect(reportsOf(talk)).toEqual(once);
  await talk.close();
});

test('reports a delivery that becomes due later', async () => {
  const talk = await unattended();
  await talk.environment.advance(60_000);
  expect(reportsOf(talk)).toEqual([[], []]);
  talk.session.notifyBackground('The taxi is here.');
  await talk.environment.settle();
  expect(reportsOf(talk)).toEqual(once);
  await talk.close();
});

test('does not report anything after a client has attached or the session has ended', async () => {
  const attached = await unattended({ greeting: 'Say hello.' });
  await attached.environment.advance(9_999);
  attached.session.attach()();
  await attached.environment.advance(60_000);
  expect(reportsOf(attached)).toEqual([[], []]);
  await attached.close();
  const closed = await unattended({ greeting: 'Say hello.' });
  await closed.close();
  await closed.environment.advance(60_000);
  expect(reportsOf(closed)).toEqual([[], []]);
});

test.each([
  ['nothing', () => {}],
  [
    'sound that was never sent',
    (talk) => talk.session.playout.next({ itemId: 'resp_1', playedMs: 500 }),
  ],
] as [string, (talk: ReturnType<typeof voiceTalk>) => void][])(
  'reports a client that reports %s once, 5 s after the speech',
  async (_, report) => {
    const talk = voiceTalk();
    await talk.start();
    await talk.say('Hello.');
    talk.model().speak('The taxi is here.');
    report(talk);
    await talk.environment.advance(5_999);
    expect(reportsOf(talk)).toEqual([[], []]);
    await talk.environment.advance(1);
    expect(reportsOf(talk)).toEqual([['NO_PLAYOUT_REPORT'], ['NO_PLAYOUT_REPORT']]);
    await talk.say('And now?');
    talk.model().speak('It has left.');
    await talk.environment.advance(60_000);
    expect(reportsOf(talk)).toEqual([['NO_PLAYOUT_REPORT'], ['NO_PLAYOUT_REPORT']]);
    await talk.close();
  },
);

test('does not report a client that confirmed playout once and then stopped confirming', async () => {
  const talk = voiceTalk();
  await talk.start();
  await talk.say('Hello.');
  await talk.speak('The taxi is here.');
  await talk.say('And now?');
  talk.model().speak('It has left.');
  await talk.environment.advance(60_000);
  expect(reportsOf(talk)).toEqual([[], []]);
  await talk.close();
});
