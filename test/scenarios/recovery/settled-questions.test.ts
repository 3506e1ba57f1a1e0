// The lead model settles a question with its tool while the process dies at one of the entries or the client
// reconnects. The words that the model is reading answer the question exactly once (SETTLE-3, QUESTION-9).

import { describe, expect, test } from 'vitest';
import type { Script } from '../../../src/testing/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { leadScript } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const words = 'the cheaper one';
const more = 'and be quick';
const options = [
  { id: 'economy', label: 'Economy', description: '$12' },
  { id: 'premium', label: 'Premium', description: '$24' },
];

/** Settles the question whenever it answers this text, even after an interruption. */
const lead: Script = (prompt) => {
  const { prompt: messages, user } = prompt;
  const isCutOff = user.includes('You were cut off');
  const wasSaid = messages.some((message) => JSON.stringify(message).includes(words));
  const last = messages.at(-1)?.role;
  const isNew = user === words || user === more;
  if (last !== 'user' || (!isNew && !(isCutOff && wasSaid))) return leadScript(prompt);
  return calls(['settle_question', { action: 'answer', optionId: 'economy', quote: words }]);
};

const subagents = {
  ride: {
    script: turns(calls(['ask_user', { question: 'Which ride?', options }]), ({ results }) =>
      say(`Got ${JSON.stringify(results[0])}`),
    ),
    config: { interactive: true },
  },
};

/** Makes the user say each text once, without a pause, in as many processes as the story needs. */
async function live(of: World, all: readonly string[]) {
  for (let lives = 1; ; lives += 1) {
    const talk = textLife(of, { lead, subagents });
    void talk.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 30 && talk.isAlive(); round += 1) {
      const { transcript, questions, subagents } = talk.state();
      const wasSaid = (text: string): boolean => transcript.some((item) => item.text === text);
      const isOpen = questions.some(({ state }) => state === 'open');
      if (subagents.length === 0 && !wasSaid('use ride'))
        void talk.session.sendText('use ride').catch(() => {});
      else if (isOpen)
        for (const each of all)
          if (!wasSaid(each)) void talk.session.sendText(each).catch(() => {});
      await of.environment.settle();
      await of.environment.advance(1000);
    }
    if (talk.isAlive()) return { talk, lives };
  }
}

function fateOf(of: World, talk: Awaited<ReturnType<typeof live>>['talk']) {
  const { questions, subagents } = talk.state();
  const answers = of.entries.filter(({ event }) => event.type === 'question.answered');
  return {
    answers: answers.map(({ event }) => (event as { readonly answer?: unknown }).answer),
    questions: questions.map(({ state }) => state),
    outcomes: subagents.map(({ outcome }) => outcome?.text),
    errors: talk.errors,
  };
}

const settled = {
  answers: [{ userResponse: 'Economy', optionId: 'economy' }],
  questions: ['answered'],
  outcomes: [expect.stringContaining('economy')],
  errors: [],
};

describe.each([
  ['words', [words]],
  ['words before others', [words, more]],
])('SETTLE-1, SETTLE-3, P3, P9: %s, and a kill at each entry', async (_, all) => {
  const of = world();
  const { talk } = await live(of, all);
  const { length } = of.entries;
  const fate = fateOf(of, talk);
  await talk.close();
  test('completes the story and settles the question if nothing is killed', () => {
    expect(fate).toEqual(settled);
    expect(of.entries.map(({ event }) => event.type)).toContain('question.settled');
  });

  const instants = instantsOf(length);
  test.each(instants)('settles once after a kill %s entry %i', async (when, entry) => {
    const of = world();
    of.killAt(entry, when);
    const { talk, lives } = await live(of, all);
    expect(lives).toBe(2);
    expect(fateOf(of, talk)).toEqual(settled);
    await talk.close();
  });
});

describe("QUESTION-9: a question whose client leaves while the lead model reads the user's message", () => {
  test.each([
    ['comes back', true],
    ['is not back yet', false],
  ])('keeps its answer if the client %s', async (_, comesBack) => {
    const talk = voiceTalk({ subagents });
    await talk.start();
    await talk.use('ride');
    await talk.pause();
    await talk.speak('Which ride?');
    await talk.say(words);
    expect(talk.state().questions).toMatchObject([{ state: 'open' }]);
    talk.leave();
    await talk.environment.advance(500);
    expect(talk.state().questions).toMatchObject([{ state: 'parked' }]);
    if (comesBack) talk.session.attach();
    await talk.environment.advance(500);
    const input = { action: 'answer', optionId: 'economy', quote: words };
    talk.model().call({ callId: 'c9', name: 'settle_question', arguments: JSON.stringify(input) });
    await talk.environment.settle();
    expect(talk.state().subagents).toMatchObject([
      { state: 'completed', outcome: { text: expect.stringContaining('economy') } },
    ]);
    expect(talk.errors).toEqual([]);
  });
});
