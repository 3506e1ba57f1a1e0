// A session whose journal falls behind until the mailbox is full: no new command is accepted, no event is lost, and the
// session continues when the journal does.

import { receiveClientMessage } from '../../../src/compat/index.ts';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type SessionEvent } from '../../../src/index.ts';
import { handModel } from '../../support/hand-model.ts';
import { gatedJournal } from '../../support/journals.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const FULL = expect.objectContaining({ name: 'CapacityError', code: 'MAILBOX_FULL' });

type Talk = ReturnType<typeof textTalk> | ReturnType<typeof voiceTalk>;

/** Fills the mailbox with 10,000 events about unknown ids, which change nothing. */
function fill({ session }: Talk, journal: ReturnType<typeof gatedJournal>): void {
  journal.shut();
  void session.sendText('first');
  for (let index = 0; index < 10_000; index += 1) session.dismiss('none');
}

test.each(['text', 'voice'] as const)(
  'COMMIT-UNIT-8: limits all input to a %s session',
  async (kind) => {
    const journal = gatedJournal();
    const talk = kind === 'text' ? textTalk({ journal }) : voiceTalk({ journal });
    const { environment, session } = talk;
    await talk.start();
    fill(talk, journal);
    const ways: Record<string, () => unknown> = {
      questionShown: () => session.questionShown('none'),
      shown: () => session.shown('none'),
      dismiss: () => session.dismiss('none'),
      attach: () => session.attach(),
      setDirective: () => session.setDirective('key', 'value'),
      notifyBackground: () => session.notifyBackground('The mail has come'),
      sendText: () => session.sendText('hello'),
    };
    // An answer to an unknown question needs no capacity, so its receipt arrives at once.
    expect(await session.answer('none', { text: 'x' })).toEqual({
      accepted: false,
      reason: 'unknown',
    });
    const open: string[] = [];
    for (const [name, way] of Object.entries(ways))
      try {
        await way();
        open.push(name);
      } catch (error) {
        expect(error).toEqual(FULL);
      }
    expect(open).toEqual([]);
    journal.open();
    await environment.settle();
    session.dismiss('none');
    await talk.close();
  },
);

test('COMMIT-UNIT-8: limits input addressed to an existing answer, call or subagent', async () => {
  const journal = gatedJournal();
  const talk = textTalk({
    journal,
    tools: [
      defineTool({
        name: 'look',
        description: 'Looks',
        parameters: z.object({}),
        execute: () => new Promise(() => {}),
      }),
    ],
    subagents: {
      name: {
        script: steps(calls(['ask_user', { question: 'Your name?' }]), say('Thanks.')),
        config: { interactive: true },
      },
    },
  });
  const { environment, session } = talk;
  await talk.start();
  await talk.type('use name and look');
  const requestId = talk.question()?.requestId ?? '';
  const subagentId = talk.state().subagents[0]?.id ?? '';
  const [callId = ''] = session.pendingToolCalls.slice(-1);
  fill(talk, journal);
  await expect(session.answer(requestId, { text: 'Ada' })).rejects.toEqual(FULL);
  expect(() => session.cancelToolCall(callId)).toThrow(FULL);
  // A subagent has its own mailbox.
  for (let index = 0; index < 10_001; index += 1) session.subagents.cancel(subagentId);
  expect(() => session.subagents.cancel(subagentId)).toThrow(FULL);
  journal.open();
  await environment.settle();
  // A refused command has no effect; an accepted one is not lost.
  expect(talk.state().subagents[0]?.state).toBe('cancelled');
  expect(talk.question()?.state).toBe('withdrawn');
  await talk.close();
});

const codes = ({ errors }: Talk) => errors.map(({ error }) => (error as { code?: string }).code);

const floors = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === 'floor.changed' ? [event.floor] : []));

test('COMMIT-UNIT-8: refuses new input in a text session, and ends its current reply', async () => {
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
    await receiveClientMessage(session, { type: 'delivery.dismissed', deliveryId: 'none' }),
  ).toMatchObject({ accepted: false, reason: 'refused' });
  await reply('Hello.');
  expect(talk.said()).toEqual(['Hello.']);
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  journal.open();
  await environment.settle();
  await reply('You were first.');
  expect(talk.said()).toEqual(['Hello.', 'You were first.']);
  // The end of the reply was not lost, because the mailbox reserves capacity for news.
  expect(floors(events).at(-1)).toBe('nobody');
  session.notifyBackground('The mail has come');
  await environment.advance(2000);
  await reply('There is mail.');
  expect(talk.said().at(-1)).toBe('There is mail.');
  expect(codes(talk)).toEqual(['MAILBOX_FULL']);
  await talk.close();
});

test('COMMIT-UNIT-8: accepts transport and playback events in a voice session', async () => {
  const journal = gatedJournal();
  const talk = voiceTalk({ journal });
  const { environment, session, model, events } = talk;
  await talk.start();
  fill(talk, journal);
  // Neither call throws into the transport.
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
