// A session whose journal does not keep up, until more waits than may: nobody new is let in,
// nothing is lost, and it goes on when the journal does.

import { expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/index.ts';
import { handModel } from '../../support/hand-model.ts';
import { gatedJournal } from '../../support/journals.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const FULL = expect.objectContaining({ name: 'CapacityError', code: 'MAILBOX_FULL' });

type Talk = ReturnType<typeof textTalk> | ReturnType<typeof voiceTalk>;

/** From now on 10,000 events wait. What they are about is not there: they change nothing. */
function fill({ session }: Talk, journal: ReturnType<typeof gatedJournal>): void {
  journal.shut();
  void session.sendText('first');
  for (let index = 0; index < 10_000; index += 1) session.dismiss('none');
}

const codes = ({ errors }: Talk) => errors.map(({ error }) => (error as { code?: string }).code);

const floors = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === 'floor.changed' ? [event.floor] : []));

test('C8: by text, whoever asks is refused, and the reply under way ends', async () => {
  const journal = gatedJournal();
  const { model, answers } = handModel();
  const talk = textTalk({ journal, wire: () => model });
  const { environment, session, events } = talk;
  const reply = async (text: string): Promise<void> => {
    answers.at(-1)?.text(text);
    answers.at(-1)?.finish();
    await environment.settle();
  };
  await talk.start();
  await talk.type('hello');
  fill(talk, journal);
  await expect(session.sendText('one more')).rejects.toEqual(FULL);
  expect(() => session.notifyBackground('The mail has come')).toThrow(FULL);
  expect(
    await session.receiveClientMessage({ type: 'delivery.dismissed', deliveryId: 'none' }),
  ).toMatchObject({ accepted: false, reason: 'refused' });
  await reply('Hello.');
  expect(talk.said()).toEqual(['Hello.']);
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  journal.open();
  await environment.settle();
  await reply('You were first.');
  expect(talk.said()).toEqual(['Hello.', 'You were first.']);
  // The end of the reply was not lost: there is room for news.
  expect(floors(events).at(-1)).toBe('nobody');
  session.notifyBackground('The mail has come');
  await environment.advance(2000);
  await reply('There is mail.');
  expect(talk.said().at(-1)).toBe('There is mail.');
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  await talk.close();
});

test('C8: by voice, what the wire and the loudspeaker say is taken in', async () => {
  const journal = gatedJournal();
  const talk = voiceTalk({ journal });
  const { environment, session, model, events } = talk;
  await talk.start();
  fill(talk, journal);
  // Neither throws into the transport.
  await talk.say('hello');
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  await expect(session.sendText('one more')).rejects.toEqual(FULL);
  journal.open();
  await environment.settle();
  await talk.speak('You said first, and hello.');
  expect(floors(events).at(-1)).toBe('nobody');
  expect(model().openRequests).toEqual([]);
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  const users = session.store
    .getSnapshot()
    .context.transcript.filter(({ role }) => role === 'user');
  expect(users.map(({ text }) => text)).toEqual(['first', 'hello']);
  await talk.close();
});
