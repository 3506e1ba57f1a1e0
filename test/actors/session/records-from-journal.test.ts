// SESSION-RECORDS-2: a session's records follow from its journal alone. In conversations of all kinds, the records from
// the journal equal the session's records after each step.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineTool, TextSession, type Journal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { handModel } from '../../support/hand-model.ts';
import { gatedJournal } from '../../support/journals.ts';
import {
  recordsOfSessions,
  expectFromJournal,
  refolded,
  writtenJournal,
} from '../../support/refolded-records.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../../support/text-talk.ts';
import { voiceTalk, type VoiceTalkOptions } from '../../support/voice-talk.ts';

let records: ReturnType<typeof recordsOfSessions>;
beforeEach(() => {
  records = recordsOfSessions();
});
afterEach(() => void vi.restoreAllMocks());

const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: z.looseObject({}),
  execute: () => ({ seen: 'x'.repeat(100) }),
});
const asks = {
  script: steps(calls(['ask_user', { question: 'Red or blue?' }]), say('Painted.')),
  config: { interactive: true },
};
const report = { script: steps(say('42 sales')) };
const late = { script: steps(say('43 sales')), pending: null };
const fails = { script: () => ({ error: new Error('it broke') }) };

function texts(options: TalkOptions = {}) {
  const journal = writtenJournal();
  const talk = textTalk({ journal, ...options });
  const limits = options.conversation?.limits ?? {};
  const again = () => refolded(journal.entries, talk.session.id, ['lead', limits]);
  return {
    ...talk,
    again,
    entries: journal.entries,
    events: (type: string) =>
      journal.entries.flatMap(({ event }) => (event.type === type ? [event] : [])),
    same: () => expectFromJournal(records.latest, again()),
  };
}

function voices(options: VoiceTalkOptions = {}) {
  const journal = writtenJournal();
  const talk = voiceTalk({ journal, ...options });
  const again = () => refolded(journal.entries, talk.session.id);
  const same = () => expectFromJournal(records.latest, again());
  return { ...talk, again, same };
}

const roles = () => records.latest.conversation.items.map(({ role }) => role);

describe('a text session', () => {
  test('restores a greeting, replies, notes, calls of every kind, results and questions', async () => {
    const { start, type, environment, same, session, close } = texts({
      greeting: 'Say hello.',
      tools: [look],
      subagents: { report, late, fails, asks },
    });
    await start();
    same();
    for (const words of ['hello', 'use look', 'use report and look', 'use late', 'use fails']) {
      await type(words);
      same();
      await environment.advance(5000);
      same();
    }
    await type('use nothing and look {"not":"json"');
    await type('use asks');
    await environment.advance(1000);
    same();
    await type('blue');
    await environment.advance(5000);
    same();
    session.notifyBackground('A notice', { priority: 'urgent' });
    await environment.advance(5000);
    same();
    expect(new Set(roles())).toEqual(
      new Set(['system', 'user', 'assistant', 'tool_call', 'tool_result']),
    );
    await close();
    same();
  });

  test('restores a transfer, a directive, and a summary', async () => {
    const { start, type, same, session, environment } = texts({
      others: [
        {
          name: 'billing',
          greeting: 'Say that you are billing.',
          onEnter: (context) => {
            context.setDirective('tone', 'warm', 'agent');
            context.injectSystemMessage('The user pays by card.');
          },
        },
      ],
      conversation: {
        limits: { maxItems: 12, maxChars: 2000, maxItemChars: 500 },
        summarise: async ({ items }) => `They said ${items.length} things.`,
        summariseAbove: 0.5,
        keepItems: 2,
      },
    });
    await start();
    for (const words of ['one', 'two', 'three', 'four', 'five', 'six']) {
      await type(words);
      same();
    }
    expect(records.latest.conversation.summary).not.toBeNull();
    await session.transfer('billing');
    await environment.settle();
    same();
    expect(records.latest.agentName).toBe('billing');
    expect(records.latest.directives.inForce).not.toEqual([]);
    await type('seven');
    same();
  });

  test('restores a conversation whose oldest items were evicted', async () => {
    const { start, type, same } = texts({
      tools: [look],
      conversation: {
        limits: { maxItems: 5, maxChars: 300, maxItemChars: 60 },
        summarise: false,
      },
    });
    await start();
    for (let round = 0; round < 6; round += 1) {
      await type(`use look and look`);
      same();
      await type(`${'long '.repeat(20)}${round}`);
      same();
    }
    expect(records.latest.conversation.evicted).toBeGreaterThan(10);
  });

  test('stores the result of an inline tool only once', async () => {
    const { start, type, again, events } = texts({ tools: [look] });
    await start();
    await type('use look');
    const [answered] = events('call.answered');
    expect(answered).not.toHaveProperty('output');
    expect(JSON.stringify(events('call.executed'))).toContain('x'.repeat(100));
    expect(JSON.stringify(again().conversation.items)).toContain('x'.repeat(100));
    expect(records.latest.calls.size).toBe(0);
    expect(again().calls.size).toBe(0);
  });

  test('answers an open call exactly once, with its result', async () => {
    const { start, type, environment, entries, session, same } = texts({ subagents: { late } });
    await start();
    await type('use late');
    await environment.advance(5000);
    same();
    const answered = entries.findIndex(({ event }) => event.type === 'call.answered');
    const { callId } = { callId: '', ...entries[answered]?.event };
    const before = refolded(entries.slice(0, answered), session.id);
    expect(before.conversation.isAnswered(callId)).toBe(false);
    expect(before.delivery(callId)).toMatchObject({ answersCall: true, text: '43 sales' });
    const after = refolded(entries.slice(0, answered + 1), session.id);
    expect(after.conversation.isAnswered(callId)).toBe(true);
    expect(after.delivery(callId)).toMatchObject({ answersCall: false });
  });
});

describe('restores the state in the middle of an answer', () => {
  async function byHand(journal: Journal) {
    const environment = simulatedEnvironment();
    const { model, answers } = handModel();
    const session = new TextSession({
      environment,
      journal,
      model,
      agents: [{ name: 'lead', instructions: 'Answer.', tools: [look] }],
    });
    session.parts.subscribe();
    await session.start();
    await environment.settle();
    const go = async (step: (answer: (typeof answers)[number]) => void) => {
      step(answers.at(-1)!);
      await environment.settle();
    };
    return {
      environment,
      session,
      go,
      said: () =>
        records.latest.conversation.items.map((item) => ('text' in item ? item.text : item.role)),
    };
  }

  test('keeps the order of items that started in the same millisecond (LIVE-CONVERSATION-4)', async () => {
    const journal = writtenJournal();
    const { go, said, session, environment } = await byHand(journal);
    await session.sendText('One.');
    await environment.settle();
    await go((answer) => answer.text('Let me look.'));
    await session.sendText('Two.');
    await environment.settle();
    await go((answer) => answer.call('look'));
    // A call is processed together with the next part of the response, because only then is it known whether another
    // call follows. A user message arrived meanwhile. It is placed after the response, and the next request contains
    // it.
    const inOrder = ['One.', 'Let me look.', 'tool_call', 'Two.', 'tool_result'];
    expect(said().map((text) => text || 'Let me look.')).toEqual(['One.', 'Let me look.', 'Two.']);
    await go((answer) => answer.finish());
    expect(said()).toEqual(inOrder);
    expectFromJournal(records.latest, refolded(journal.entries, session.id));
  });

  test('shows a reply in progress that is not in the journal (LIVE-CONVERSATION-3)', async () => {
    const journal = writtenJournal();
    const { go, said, session, environment } = await byHand(journal);
    await session.sendText('One.');
    await environment.settle();
    const { length } = journal.entries;
    await go((answer) => answer.text('First'));
    await go((answer) => answer.text(' answer'));
    expect(journal.entries).toHaveLength(length);
    expect(said()).toHaveLength(2);
    await go((answer) => answer.finish());
    expect(said()).toEqual(['One.', 'First answer']);
    expectFromJournal(records.latest, refolded(journal.entries, session.id));
  });

  test('shows input before the journal has stored it (LIVE-CONVERSATION-2)', async () => {
    const slow = gatedJournal();
    const journal = writtenJournal(slow);
    const { go, said, session, environment } = await byHand(journal);
    await session.sendText('One.');
    await environment.settle();
    slow.shut();
    await go((answer) => answer.text('An answer.'));
    await go((answer) => answer.finish());
    expect(said()).toEqual(['One.', 'An answer.']);
    expect(refolded(slow.kept, session.id).conversation.items).toHaveLength(1);
    slow.open();
    await environment.settle();
    expect(said()).toEqual(['One.', 'An answer.']);
    expectFromJournal(records.latest, refolded(slow.kept, session.id));
  });
});

describe('a voice session', () => {
  test('restores replies, calls, late results, notes, and a connection that was lost in mid-sentence', async () => {
    const talk = voices({ subagents: { report, late, asks } });
    const { start, say: utter, speak, use, pause, asked, model, environment, same, session } = talk;
    await start();
    await utter('hello');
    await speak('Good morning.');
    same();
    await use('report', 'late');
    await environment.advance(5000);
    same();
    const listen = async () => {
      for (let round = 0; round < 4; round += 1) {
        await pause();
        if (asked() !== null) await speak(`News ${round}.`);
        same();
      }
    };
    await listen();
    await use('asks');
    await listen();
    await utter('blue');
    await environment.advance(5000);
    await listen();
    expect(roles().filter((role) => role === 'tool_result')).toHaveLength(3);
    session.notifyBackground('A notice');
    await pause();
    const { responseId, itemId } = model().begin('', 1000);
    for (const text of ['There ', 'is ', 'a not'])
      model().events.next({
        type: 'assistant.transcribed',
        itemId,
        responseId,
        text,
        final: false,
      });
    await environment.settle();
    expect(records.latest.conversation.items.at(-1)).toMatchObject({
      text: 'There is a not',
      partial: true,
    });
    model().drop();
    await environment.advance(3000);
    same();
    expect(records.latest.conversation.items).toContainEqual(
      expect.objectContaining({ text: 'There is a not', partial: false }),
    );
  });

  test.each([
    ['before its words were whole', false],
    ['when its words were known', true],
  ])('restores a reply that the user interrupted %s', async (_, final) => {
    const { start, say: utter, play, model, environment, same } = voices();
    await start();
    await utter('tell me a story');
    const { responseId, itemId, end } = model().begin('', 4000);
    const text = 'Once upon a time there was a king.';
    model().events.next({ type: 'assistant.transcribed', itemId, responseId, text, final });
    await play(itemId, 1000);
    model().speechStarted('u1');
    await environment.settle();
    await play(itemId, 1000);
    model().speechEnded('u1', 'No, tell me the weather.');
    await environment.settle();
    end('cancelled');
    // Late words of the response change nothing.
    model().events.next({ type: 'assistant.transcribed', itemId, responseId, text, final: true });
    await environment.advance(1000);
    expect(records.latest.conversation.get(itemId)).toMatchObject({
      text: 'Once upon',
      interrupted: true,
      audioHeardMs: 1000,
    });
    same();
  });
});
