// Subagents' questions, answered by voice and by button, one after another. Each answer reaches only the subagent that
// asked the question.

import type { ConformanceScene } from './case.ts';
import { wasHeard } from './promises.ts';
import type { Talk } from './talk.ts';
import { plain } from './words.ts';
import {
  afterwards,
  APPROVAL,
  approving,
  asking,
  BOOKED,
  call,
  isOpen,
  isQuiet,
  PAID,
  requestIdOf,
  ride,
  RIDE_QUESTION,
  STORY,
  type Asker,
} from './shared-cases.ts';

const ASKED = 'a ride please';
const calls = { [ASKED]: [call('ride')] };

function got(talk: Talk, asker: Asker, ...answers: string[]): void {
  talk.check(
    `the subagent got ${JSON.stringify(answers)}, and has ${JSON.stringify(asker.got)}`,
    asker.got.join() === answers.join(),
  );
}

/** The user asks for a ride and hears the subagent's question. */
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
      await talk.isDelivered(BOOKED);
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
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

const NAME_QUESTION =
  'What name shall the booking be under, and who will be there to open the door';

const intoQuestion = (): ConformanceScene => {
  const asker = asking(NAME_QUESTION, [], BOOKED);
  return {
    name: 'question for words: words that begin while it is said are the answer, and it is not put again',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await talk.says(ASKED);
      await talk.hears(NAME_QUESTION.slice(0, 10));
      await talk.pass(1000);
      await talk.says('Miller', { to: 'subagent', durationMs: 600 });
      await talk.isDelivered(BOOKED);
      await isQuiet(talk);
      talk.check('the question is put once', talk.playsOf(NAME_QUESTION).length <= 1);
    },
    outcome: (talk) => got(talk, asker, 'Miller'),
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
      await talk.isDelivered(BOOKED);
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
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'economy'),
  };
};

/**
 * If something else has been said since the question was asked, returns the calls with which the lead model settles the
 * question for this input.
 */
const settling = (option: string): ConformanceScene['calls'] => ({
  [option]: [call('settle_question', { action: 'answer', optionId: option, quote: option })],
});

const forTheLead = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question by voice: what names no option is for the lead model, and so are the words after its reply',
    calls: { ...calls, ...settling('economy') },
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('what time is it');
      await talk.until('that is answered', () => talk.playsOf('what time is it').length > 0);
      await isQuiet(talk);
      await talk.says('economy');
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'economy'),
  };
};

/** The user says yes to a question from the lead model while an approval is pending. */
const yesToTheLead = (): ConformanceScene => {
  const asker = approving();
  return {
    name: 'approval by voice: a yes after words of the lead model runs nothing; the action is read back, and a yes to that counts',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await talk.says(ASKED);
      await isOpen(talk, APPROVAL);
      await isQuiet(talk);
      await talk.says('how is the weather');
      await talk.until('that is answered', () => talk.playsOf('how is the weather').length > 0);
      await isQuiet(talk);
      const before = talk.playsOf(APPROVAL).length;
      await talk.says('yes');
      await talk.until('the action is read back', () => talk.playsOf(APPROVAL).length > before);
      await isQuiet(talk);
      got(talk, asker);
      await talk.says('go ahead', { to: 'subagent' });
      await talk.isDelivered(PAID);
    },
    outcome: (talk) => got(talk, asker, 'yes'),
  };
};

/**
 * Two questions about one order. `onSecond` acts while the second question is open. `isFollowed`: the first result is
 * delivered before the second question ends.
 */
const breakfast = (
  name: string,
  onSecond: (talk: Talk) => Promise<void>,
  isFollowed = false,
): ConformanceScene => {
  const first = asking('Tea or coffee', ['tea', 'coffee'], 'The drink is ordered');
  const second = asking('Cake or bread', ['cake', 'bread'], 'The food is ordered');
  return {
    name,
    calls: {
      'breakfast please': [call('drink'), call('food')],
      ...(isFollowed && settling('bread')),
    },
    subagents: { drink: first.subagent, food: second.subagent },
    plot: async (talk) => {
      await talk.says('breakfast please');
      await isOpen(talk, 'Tea or coffee');
      await isQuiet(talk);
      await talk.says('coffee', { to: 'subagent' });
      await isOpen(talk, 'Cake or bread');
      await onSecond(talk);
      await talk.says('bread', isFollowed ? {} : { to: 'subagent' });
      await talk.isDelivered('The drink is ordered');
      await talk.isDelivered('The food is ordered');
    },
    outcome: (talk) => {
      got(talk, first, 'coffee');
      got(talk, second, 'bread');
    },
  };
};

const inOrder = (): ConformanceScene =>
  breakfast('two questions: one after another, in the order of asking', isQuiet);

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
      await talk.isDelivered(BOOKED);
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
      // The session decides whether this utterance is an answer.
      await talk.says('hold on', { to: 'nobody', durationMs: 600 });
      await isOpen(talk);
      await isQuiet(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

/** A model that responds without a request replies to this utterance too, once it has another message to speak. */
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
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

/** Checks that the user started to hear the text only once, and heard it to the end. */
function isDeliveredOnce(talk: Talk, text: string): void {
  const plays = talk.playsOf(text).filter(({ playedMs }) => playedMs > 0);
  const times = plays.map((play) => (wasHeard(play) ? 'to its end' : 'in part')).join(', ');
  const isOnce = plays.length === 1 && plays.every(wasHeard);
  talk.check(`${JSON.stringify(text)} is told once, and was told: ${times || 'never'}`, isOnce);
}

interface Answered {
  readonly name: string;
  readonly asker: () => Asker;
  readonly question: string;
  readonly words: string;
  readonly got: string;
  readonly outcome: string;
}

const ENDLESS = 'I would like the very best one that you have, if there is any left at this hour';

/** The questions and their spoken answers. */
const answered: readonly Answered[] = [
  {
    name: 'an option',
    asker: ride,
    question: RIDE_QUESTION,
    words: 'premium',
    got: 'premium',
    outcome: BOOKED,
  },
  {
    name: 'free text',
    asker: () => asking('Where do you want to go', [], BOOKED),
    question: 'Where do you want to go',
    words: 'to the airport in the north of the city',
    got: 'to the airport in the north of the city',
    outcome: BOOKED,
  },
  {
    name: 'free text at length',
    asker: () => asking('Which one shall it be', [], BOOKED),
    question: 'Which one shall it be',
    words: ENDLESS,
    got: ENDLESS,
    outcome: BOOKED,
  },
  {
    name: 'an approval',
    asker: approving,
    question: APPROVAL,
    words: 'yes',
    got: 'yes',
    outcome: PAID,
  },
];

/** Models that respond without a request, and how they react to an utterance for a subagent. */
const models = [
  { does: 'it replies at once', thinksMs: 0, adds: '' },
  { does: 'it thinks first', thinksMs: 2500, adds: '' },
  { does: 'it talks for a while', thinksMs: 0, adds: STORY },
  { does: 'it talks for long', thinksMs: 0, adds: `${STORY}. ${STORY}. ${STORY}` },
] as const;

/** How long the work takes: the result arrives immediately, or while a model that responds without a request speaks. */
const WORK_MS = [0, 1500, 5000] as const;

const answeredByVoice = answered.flatMap((each) =>
  models.flatMap(({ does, thinksMs, adds }) =>
    WORK_MS.map((workMs) => (): ConformanceScene => {
      const { name, question, words, outcome } = each;
      const asker = afterwards(each.asker(), workMs);
      return {
        name: `answer by voice, ${name}, ${workMs} ms of work; a model that is not asked: ${does}; the result is told once`,
        calls,
        subagents: { ride: asker.subagent },
        thinksMs,
        adds,
        plot: async (talk) => {
          await talk.says(ASKED);
          await isOpen(talk, question);
          await isQuiet(talk);
          await talk.says(words, { to: 'subagent' });
          await talk.isDelivered(outcome);
          await talk.pass(20_000);
        },
        outcome: (talk) => {
          got(talk, asker, each.got);
          isDeliveredOnce(talk, outcome);
        },
      };
    }),
  ),
);

/** Delays close to the time after which a transport may assume that a requested model will stay silent. */
const TELLS_AFTER_MS = [2500, 7500, 7900, 8300, 9000, 10_500] as const;

const deliveredLate = TELLS_AFTER_MS.map((tellsAfterMs) => (): ConformanceScene => {
  const asker = ride();
  return {
    name: `answer by voice, a model that begins to tell after ${tellsAfterMs} ms: the result is told once`,
    calls,
    subagents: { ride: asker.subagent },
    tellsAfterMs,
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isDelivered(BOOKED);
      await talk.pass(20_000);
    },
    outcome: (talk) => {
      got(talk, asker, 'premium');
      isDeliveredOnce(talk, BOOKED);
    },
  };
});

/** The user speaks to the lead agent after the result has arrived but before the model reports it. */
const deliveredAfterWords = [500, 1500, 2500].map((afterMs) => (): ConformanceScene => {
  const asker = ride();
  return {
    name: `answer by voice, words ${afterMs} ms after the result: they are answered, and the result is told once`,
    calls,
    subagents: { ride: asker.subagent },
    tellsAfterMs: 4000,
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.until('the result is there', () => talk.deliveryOf(BOOKED) !== undefined);
      await talk.pass(afterMs);
      await talk.says('how are you');
      await talk.isDelivered(BOOKED);
      await talk.pass(20_000);
    },
    outcome: (talk) => {
      got(talk, asker, 'premium');
      isDeliveredOnce(talk, BOOKED);
    },
  };
});

/** The runtime, or a model that responds without a request and then says nothing more, acknowledges the answer. */
const ACKNOWLEDGED = 'premium. One moment.';

const acknowledged = (): ConformanceScene => {
  const asker = afterwards(ride(), 8000);
  return {
    name: 'answer by voice: it is acknowledged at once and once, and the result told later',
    calls,
    subagents: { ride: asker.subagent },
    replies: { premium: ACKNOWLEDGED },
    plot: async (talk) => {
      await isAsked(talk);
      await talk.says('premium', { to: 'subagent' });
      const isWanted = () => acknowledgementsIn(talk) === 1;
      if (mayAcknowledge(talk)) await talk.until('the answer is acknowledged', isWanted, 3000);
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => {
      got(talk, asker, 'premium');
      isDeliveredOnce(talk, BOOKED);
      const times = mayAcknowledge(talk) ? 1 : 0;
      talk.check('the answer is acknowledged once', acknowledgementsIn(talk) === times);
    },
  };
};

/**
 * Returns whether the answer is acknowledged. A model that waits for a request and cannot speak outside the
 * conversation does not acknowledge it.
 */
function mayAcknowledge({ capabilities }: Talk): boolean {
  return capabilities.speaksOutOfBand || capabilities.responds === 'by_itself';
}

/** Counts how often the user heard the acknowledgement, either outside the conversation or in the model's own words. */
function acknowledgementsIn(talk: Talk): number {
  const beside = talk.state.transcript.filter(
    ({ text, filler }) => filler === true && plain(text) === plain(ACKNOWLEDGED),
  );
  return beside.length + talk.playsOf(ACKNOWLEDGED).length;
}

/** The next question is asked as soon as this one has been answered. */
const askedOnce = (): ConformanceScene => ({
  ...breakfast(
    'answer by voice: the question that waited is asked once',
    async (talk) => {
      await talk.pass(20_000);
      isDeliveredOnce(talk, 'Cake or bread');
    },
    true,
  ),
  voice: { nudgeAfterMs: null },
});

const nudged = (): ConformanceScene => {
  const asker = ride();
  return {
    name: 'question that nobody answers: it is asked again twice, and then rests',
    calls,
    subagents: { ride: asker.subagent },
    plot: async (talk) => {
      await isAsked(talk);
      for (const times of [2, 3])
        await talk.until(
          `the question is heard ${times} times`,
          () => talk.playsOf(RIDE_QUESTION).filter(wasHeard).length === times,
          40_000,
        );
      await talk.pass(40_000);
      talk.check('it is not asked again', talk.playsOf(RIDE_QUESTION).length === 3);
      await talk.says('premium', { to: 'subagent' });
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => got(talk, asker, 'premium'),
  };
};

export const questionScenes: readonly (() => ConformanceScene)[] = [
  byVoice,
  lateWords,
  intoQuestion,
  byButton,
  buttonBeforeVoice,
  forTheLead,
  yesToTheLead,
  inOrder,
  typed,
  brokenOff,
  lateAnswer,
  askedOnce,
  acknowledged,
  nudged,
  ...answeredByVoice,
  ...deliveredLate,
  ...deliveredAfterWords,
];
