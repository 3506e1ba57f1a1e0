// Questions of subagents: by voice and by button, one after another, each answered by
// whoever was asked and by nobody else.

import type { ConformanceScene } from '../case.ts';
import type { Talk } from '../talk.ts';
import {
  asking,
  BOOKED,
  call,
  isOpen,
  isQuiet,
  requestIdOf,
  ride,
  RIDE_QUESTION,
  type Asker,
} from './shared.ts';

const ASKED = 'a ride please';
const calls = { [ASKED]: [call('ride')] };

function got(talk: Talk, asker: Asker, ...answers: string[]): void {
  talk.check(
    `the subagent got ${JSON.stringify(answers)}, and has ${JSON.stringify(asker.got)}`,
    asker.got.join() === answers.join(),
  );
}

/** The user asks for a ride, and hears which one it shall be. */
async function isAsked(talk: Talk): Promise<void> {
  await talk.says(ASKED);
  await isOpen(talk);
  await isQuiet(talk);
}

const byVoice = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by voice: the words reach the subagent, and the lead model does not answer them',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

const lateWords = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by voice: words that come late are still the answer, and answered once',
    needs: ['late_transcripts'],
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent', transcript: { lateMs: 2000 } });
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

const byButton = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by button: the first answer wins',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await talk.says(ASKED);
      await talk.hears(RIDE_QUESTION);
      const requestId = requestIdOf(talk);
      talk.session.questionShown(requestId);
      const first = await talk.session.answer(requestId, { optionId: 'economy' });
      talk.check('the first answer is accepted', first.accepted);
      const second = await talk.session.answer(requestId, { optionId: 'premium' });
      talk.check('the second is not', !second.accepted);
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'economy'),
  };
};

const buttonBeforeVoice = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by button while the user speaks: what they say is for the lead model',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      const ended = talk.beginsToSay('how late is it now', { durationMs: 2000 });
      await talk.pass(500);
      const { accepted } = await talk.session.answer(requestIdOf(talk), { optionId: 'economy' });
      talk.check('the button is accepted', accepted);
      await talk.pass(1500);
      await ended;
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'economy'),
  };
};

const forTheLead = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by voice: what names no option is for the lead model, and answered by it',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('what time is it');
      await talk.until('that is answered', () => talk.playsOf('what time is it').length > 0);
      await isQuiet(talk);
      await talk.says('economy', { to: 'subagent' });
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'economy'),
  };
};

const inOrder = (): ConformanceScene => {
  const first = asking('Tea or coffee', ['tea', 'coffee'], 'The drink is ordered');
  const second = asking('Cake or bread', ['cake', 'bread'], 'The food is ordered');
  return {
    name: 'two questions: one after another, in the order of asking',
    calls: { 'breakfast please': [call('drink'), call('food')] },
    subagents: { drink: first.subagent, food: second.subagent },
    plot: async (talk) => {
      await talk.says('breakfast please');
      await isOpen(talk, 'Tea or coffee');
      await isQuiet(talk);
      await talk.says('coffee', { to: 'subagent' });
      await isOpen(talk, 'Cake or bread');
      await isQuiet(talk);
      await talk.says('bread', { to: 'subagent' });
      await talk.isTold('The drink is ordered');
      await talk.isTold('The food is ordered');
    },
    outcome: (talk) => {
      got(talk, first, 'coffee');
      got(talk, second, 'bread');
    },
  };
};

const typed = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'typed words: they answer a question, or are answered by the model',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await talk.types('hello there');
      await talk.until('that is answered', () => talk.playsOf('hello there').length > 0);
      await isQuiet(talk);
      await isAsked(talk);
      await talk.types('premium', 'subagent');
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

const brokenOff = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question that is interrupted by something else: it is put again',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await talk.says(ASKED);
      await talk.hears(RIDE_QUESTION.slice(0, 11));
      // Whether that is an answer is for the session to say.
      await talk.says('hold on', { to: 'nobody', durationMs: 600 });
      await isOpen(talk);
      await isQuiet(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

/** A model that answers by itself answers the words too, when there is something else to tell. */
const lateAnswer = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by voice: what the model says to the words late is not heard, and what there is to tell is told',
    calls,
    subagents: { ride: asker.subagent },
    thinksMs: 2500,
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isTold(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

export const questionScenes: readonly (() => ConformanceScene)[] = [
  byVoice,
  lateWords,
  byButton,
  buttonBeforeVoice,
  forTheLead,
  inOrder,
  typed,
  brokenOff,
  lateAnswer,
];
