// Subagents' results: with or without an immediate acknowledgement, delivered in a pause, and delivered again after an
// interruption.

import type { ConformanceScene } from './case.ts';
import { wasHeard } from './promises.ts';
import type { Talk } from './talk.ts';
import { call, gate, isQuiet, SALES, SALES_AT_LENGTH, STORY, working } from './shared-cases.ts';

const ASKED = 'the report please';
const ON_IT = 'I am on it';
const PIZZA = 'Take the pizza out of the oven';
const FIRE = 'There is a fire in the kitchen';

const calls = { [ASKED]: [call('report')] };

function isDelivered(talk: Talk, text: string): void {
  const delivery = talk.deliveryOf(text);
  talk.check(
    `${JSON.stringify(text)} was told, heard, and is over`,
    delivery?.state === 'delivered' && delivery.grade === 'played',
  );
}

/** Checks that the user heard the first of two texts to the end before the second one started. */
function isBefore(talk: Talk, first: string, second: string): void {
  const earlier = talk.playsOf(first).find(wasHeard);
  const later = talk.playsOf(second).find(wasHeard);
  talk.check(
    `${JSON.stringify(first)} is heard before ${JSON.stringify(second)}`,
    earlier !== undefined && later !== undefined && earlier.lastAt <= later.firstAt,
  );
}

/** The model tells a story while the subagent is working on the report. */
async function isToldAStory(talk: Talk): Promise<void> {
  await talk.says(ASKED);
  await talk.hears(ON_IT);
  await isQuiet(talk);
  await talk.says(STORY);
  await talk.hears(STORY.slice(0, 12));
}

const acknowledged = (): ConformanceScene => ({
  name: 'acknowledgement: a call is answered at once, and its result told later',
  calls,
  subagents: { report: { ...working(SALES, 8000), pending: ON_IT } },
  plot: async (talk) => {
    await talk.says(ASKED);
    await talk.hears(ON_IT);
    await isQuiet(talk);
    talk.check('the work goes on', talk.state.subagents[0]?.endedAt === null);
    await talk.says('how are you');
    await talk.isDelivered(SALES);
  },
  outcome: (talk) => {
    isDelivered(talk, SALES);
    isBefore(talk, ON_IT, SALES);
  },
});

const deferred = (): ConformanceScene => ({
  name: 'deferred result: nothing is said of a call before its result is there',
  calls,
  subagents: { report: working(SALES, 12_000) },
  plot: async (talk) => {
    await talk.says(ASKED);
    await talk.until('the work has begun', ({ subagents }) => subagents.length === 1);
    await talk.pass(2000);
    await talk.says('how are you');
    await isQuiet(talk);
    const answers = talk.tap.connections.flatMap(({ passed }) =>
      passed.filter((entry) => 'command' in entry && entry.command.type === 'tool.answer'),
    );
    const isOpen = talk.capabilities.defersToolResults;
    talk.check(
      isOpen ? 'the call is still open' : 'the call, which cannot stay open, was answered',
      answers.length === (isOpen ? 0 : 1),
    );
    await talk.isDelivered(SALES);
  },
  outcome: (talk) => isDelivered(talk, SALES),
});

const scheduled = (): ConformanceScene => ({
  name: 'schedule: its words are told at their time',
  plot: async (talk) => {
    await talk.says('how are you');
    await isQuiet(talk);
    await talk.session.schedule({ key: 'oven', everyMs: 8000, say: PIZZA });
    await talk.pass(4000);
    talk.check('nothing is told before the time', talk.deliveryOf(PIZZA) === undefined);
    await talk.isDelivered(PIZZA);
    await talk.session.unschedule('oven');
  },
  outcome: (talk) => isDelivered(talk, PIZZA),
});

const whileModelSpeaks = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'result while the model speaks: it waits until that is over',
    calls,
    subagents: { report: { ...working(SALES, ready), pending: ON_IT } },
    plot: async (talk) => {
      await isToldAStory(talk);
      ready.open();
      await talk.isDelivered(SALES);
    },
    outcome: (talk) => {
      isBefore(talk, STORY, SALES);
      talk.check(
        'nothing was broken off',
        talk.client.plays.every(({ isCleared }) => !isCleared),
      );
    },
  };
};

const whileUserSpeaks = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'result while the user speaks: the user is answered first',
    calls,
    subagents: { report: { ...working(SALES, ready), pending: ON_IT } },
    plot: async (talk) => {
      await talk.says(ASKED);
      await talk.hears(ON_IT);
      await isQuiet(talk);
      const ended = talk.beginsToSay('what else is new today', { durationMs: 3000 });
      await talk.pass(1500);
      ready.open();
      await talk.pass(1500);
      await ended;
      await talk.isDelivered(SALES);
    },
    outcome: (talk) => isBefore(talk, 'You said: what else is new today', SALES),
  };
};

const brokenOff = (): ConformanceScene => ({
  name: 'result on a turn that is then interrupted: it is told again',
  calls,
  subagents: { report: { ...working(SALES_AT_LENGTH, 5000), pending: ON_IT } },
  plot: async (talk) => {
    await talk.says(ASKED);
    await talk.hears(SALES_AT_LENGTH.slice(0, 5));
    await talk.pass(500);
    await talk.says('wait a moment');
    const delivery = talk.deliveryOf(SALES_AT_LENGTH);
    talk.check('what was broken off does not count as heard', delivery?.state !== 'delivered');
    await talk.isDelivered(SALES_AT_LENGTH);
  },
  outcome: (talk) => {
    isDelivered(talk, SALES_AT_LENGTH);
    const tellings = talk.playsOf(SALES_AT_LENGTH.slice(0, 5));
    talk.check('it was broken off, and told from the beginning', tellings.length > 1);
  },
});

const two = (): ConformanceScene => ({
  name: 'two results: each is told, in the order in which they came',
  calls: { 'north and south please': [call('north'), call('south')] },
  subagents: {
    north: { ...working('The north is up by three', 6000), pending: 'I look north' },
    south: { ...working('The south is down by four', 6000), pending: 'I look south' },
  },
  plot: async (talk) => {
    await talk.says('north and south please');
    await talk.isDelivered('The north is up by three');
    await talk.isDelivered('The south is down by four');
  },
  outcome: (talk) => {
    const ready = talk.state.deliveries.filter(({ kind }) => kind === 'result');
    talk.check('there are two results', ready.length === 2);
    const [first, second] = ready.toSorted((a, b) => a.at - b.at);
    isBefore(talk, first?.text ?? '', second?.text ?? '');
  },
});

const urgent = (): ConformanceScene => ({
  name: 'urgent: it is told first, and what it cut off afterwards',
  plot: async (talk) => {
    await talk.says(STORY);
    await talk.hears(STORY.slice(0, 12));
    await talk.pass(1000);
    talk.session.notifyBackground('The mail has come');
    talk.session.notifyBackground(FIRE, { priority: 'urgent' });
    await talk.isDelivered(FIRE);
    await talk.isDelivered('The mail has come');
  },
  outcome: (talk) => {
    isBefore(talk, FIRE, 'The mail has come');
    const [story] = talk.client.plays;
    const isCut = talk.capabilities.cancelsResponses;
    talk.check(
      isCut
        ? 'the story is broken off'
        : 'the story, which cannot be broken off, is told to its end',
      story?.isCleared === isCut,
    );
    if (isCut) talk.check('the story is told afterwards', talk.playsOf(STORY).some(wasHeard));
  },
});

const interrupting = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'result that interrupts: it breaks off what the model says, where that can be done',
    calls,
    subagents: {
      report: { ...working(SALES, ready), pending: ON_IT, config: { delivery: 'interrupt' } },
    },
    plot: async (talk) => {
      await isToldAStory(talk);
      await talk.pass(1000);
      ready.open();
      await talk.isDelivered(SALES);
    },
    outcome: (talk) => {
      const [story] = talk.playsOf(STORY.slice(0, 12));
      talk.check(
        'the story is broken off if responses can be cancelled',
        story?.isCleared === talk.capabilities.cancelsResponses,
      );
    },
  };
};

const silent = (): ConformanceScene => ({
  name: 'silent result: the model knows it and does not speak of it',
  calls,
  subagents: {
    report: { ...working(SALES, 5000), pending: ON_IT, config: { delivery: 'silent' } },
  },
  plot: async (talk) => {
    await talk.says(ASKED);
    await talk.hears(ON_IT);
    await talk.until('it is a card', () => talk.deliveryOf(SALES)?.card === true);
    await talk.pass(5000);
    // The waiting message is delivered together with the next request.
    talk.session.notifyBackground('The mail has come');
    await talk.isDelivered('The mail has come');
  },
  outcome: (talk) => {
    const [first] = talk.playsOf(SALES);
    const mail = talk.playsOf('The mail has come')[0];
    talk.check('nobody spoke of it unasked', first === undefined || first === mail);
    talk.check(
      'the model knows it',
      talk.model.memory.some(({ text }) => text.includes(SALES)),
    );
  },
});

const skipped = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'result to be skipped if somebody speaks: it rests on the screen',
    calls,
    subagents: {
      report: { ...working(SALES, ready), pending: ON_IT, config: { delivery: 'skip_if_busy' } },
    },
    plot: async (talk) => {
      await isToldAStory(talk);
      ready.open();
      await talk.until('it is a card', () => talk.deliveryOf(SALES)?.card === true);
    },
    outcome: (talk) => {
      talk.check('nobody spoke of it', talk.playsOf(SALES).length === 0);
    },
  };
};

export const resultScenes: readonly (() => ConformanceScene)[] = [
  acknowledged,
  deferred,
  scheduled,
  whileModelSpeaks,
  whileUserSpeaks,
  brokenOff,
  two,
  urgent,
  interrupting,
  silent,
  skipped,
];
