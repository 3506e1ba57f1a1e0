// A voice session to which no client attaches says so, once, when there is something to tell.

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

test('a greeting that nobody is there for is reported after 10 s, once', async () => {
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

test('a delivery that becomes due later is reported then', async () => {
  const talk = await unattended();
  await talk.environment.advance(60_000);
  expect(reportsOf(talk)).toEqual([[], []]);
  talk.session.notifyBackground('The taxi is here.');
  await talk.environment.settle();
  expect(reportsOf(talk)).toEqual(once);
  await talk.close();
});

test('nothing is reported once a client has attached, or the session has ended', async () => {
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
