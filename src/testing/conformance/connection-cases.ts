// The connection is lost or reaches its limit while work from the other cases is in progress. No work is lost or done
// twice.

import type { ConformanceScene } from './case.ts';
import { replyTo } from './lead-script.ts';
import { wasHeard } from './promises.ts';
import type { TalkOptions } from './session-of-case.ts';
import type { Talk } from './talk.ts';
import {
  atPages,
  BOOKED,
  call,
  callAtPages,
  gate,
  inPieces,
  isOpen,
  isQuiet,
  lookUp,
  PLACE,
  ride,
  RIDE_QUESTION,
  runAtPage,
  SALES,
  SALES_AT_LENGTH,
  STORY,
  WHERE,
  working,
} from './shared-cases.ts';

/** Work that is in progress when the connection is lost. */
interface InFlight extends TalkOptions {
  readonly what: string;
  /** Runs until the work is in progress. */
  readonly before: (talk: Talk) => Promise<void>;
  /** Runs when there is a new connection. */
  readonly after: (talk: Talk) => Promise<void>;
  readonly outcome?: (talk: Talk) => void;
}

const ASKED = 'the report please';
const report = { [ASKED]: [call('report')] };
const rides = { 'a ride please': [call('ride')] };

const openCall = (): InFlight => {
  const ready = gate();
  const clock = lookUp('clock', 'It is noon', ready);
  return {
    what: 'a call that is being run',
    calls: { 'what time is it': [call('clock')] },
    tools: [clock.definition],
    before: async (talk) => {
      await talk.says('what time is it');
      await talk.until('the tool runs', () => clock.counted.runs === 1);
    },
    after: async (talk) => {
      await talk.pass(2000);
      ready.open();
      await talk.hears('It is noon');
    },
    outcome: (talk) => {
      talk.check('it was run once', clock.counted.runs === 1);
    },
  };
};

const callAtPage = (): InFlight => ({
  what: 'a call that a page carries out',
  calls: { [WHERE]: [call('locate')] },
  tools: [atPages()],
  before: async (talk) => {
    await talk.says(WHERE);
    const id = await callAtPages(talk);
    talk.check('the page takes it', await talk.session.clientCalls.claim(id, 'page'));
  },
  after: async (talk) => {
    await runAtPage(talk, 'page');
    await talk.until('the place is told', () => talk.playsOf(PLACE).some(wasHeard));
  },
});

const pieces = (): InFlight => {
  const { begin, goOn, ...rest } = inPieces();
  return { ...rest, what: 'a request in pieces', before: begin, after: goOn };
};

const openWork = (): InFlight => {
  const ready = gate();
  return {
    what: 'a deferred result',
    calls: report,
    subagents: { report: working(SALES, ready) },
    before: async (talk) => {
      await talk.says(ASKED);
      await talk.until('the work has begun', ({ subagents }) => subagents.length === 1);
    },
    after: async (talk) => {
      await talk.pass(2000);
      ready.open();
      await talk.isDelivered(SALES);
    },
  };
};

const acknowledgement = (): InFlight => ({
  what: 'an acknowledgement',
  calls: report,
  subagents: { report: { ...working(SALES, 20_000), pending: 'I am on it and it takes a while' } },
  before: async (talk) => {
    await talk.says(ASKED);
    await talk.hears('I am on it');
  },
  after: (talk) => talk.isDelivered(SALES),
});

const waitingResult = (): InFlight => {
  const ready = gate();
  return {
    what: 'a result that waits',
    calls: report,
    subagents: { report: { ...working(SALES, ready), pending: 'I am on it' } },
    before: async (talk) => {
      await talk.says(ASKED);
      await talk.hears('I am on it');
      await isQuiet(talk);
      await talk.says(STORY, { to: 'nobody' });
      await talk.hears(STORY.slice(0, 12));
      ready.open();
      await talk.pass(200);
    },
    after: (talk) => talk.isDelivered(SALES),
  };
};

const deliveredResult = (): InFlight => ({
  what: 'a result that is being told',
  calls: report,
  subagents: { report: { ...working(SALES_AT_LENGTH, 3000), pending: 'I am on it' } },
  before: async (talk) => {
    await talk.says(ASKED);
    await talk.hears(SALES_AT_LENGTH.slice(0, 5));
  },
  after: (talk) => talk.isDelivered(SALES_AT_LENGTH),
});

const urgentNotice = (): InFlight => ({
  what: 'something urgent',
  before: async (talk) => {
    await talk.says(STORY, { to: 'nobody' });
    await talk.hears(STORY.slice(0, 12));
    talk.session.notifyBackground('There is a fire in the kitchen', { priority: 'urgent' });
    await talk.pass(100);
  },
  after: (talk) => talk.isDelivered('There is a fire in the kitchen'),
});

const openQuestion = (): InFlight => {
  const asker = ride();
  return {
    what: 'a question that is open',
    calls: rides,
    subagents: { ride: asker.subagent },
    before: async (talk) => {
      await talk.says('a ride please');
      await isOpen(talk);
      await isQuiet(talk);
    },
    after: async (talk) => {
      await isOpen(talk);
      await isQuiet(talk);
      await talk.says('premium', { to: 'subagent' });
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => talk.check('the answer was got once', asker.got.join() === 'premium'),
  };
};

const putQuestion = (): InFlight => {
  const asker = ride();
  return {
    what: 'a question that is being put',
    calls: rides,
    subagents: { ride: asker.subagent },
    before: async (talk) => {
      await talk.says('a ride please');
      await talk.hears(RIDE_QUESTION.slice(0, 11));
    },
    after: async (talk) => {
      await isOpen(talk);
      await isQuiet(talk);
      await talk.says('economy', { to: 'subagent' });
      await talk.isDelivered(BOOKED);
    },
    outcome: (talk) => talk.check('the answer was got once', asker.got.join() === 'economy'),
  };
};

const reply = (): InFlight => ({
  what: 'a reply',
  before: async (talk) => {
    await talk.says(STORY, { to: 'nobody' });
    await talk.hears(STORY.slice(0, 12));
  },
  after: async (talk) => {
    await talk.until('the story is told', () => talk.playsOf(STORY).some(wasHeard));
  },
});

const unknownWords = (): InFlight => ({
  what: 'words that are not known yet',
  before: async (talk) => {
    void talk.beginsToSay('nobody will ever know this', { to: 'nobody', durationMs: 2000 });
    await talk.pass(1000);
  },
  after: async (talk) => {
    await talk.pass(2000);
    await talk.says('good morning to you');
  },
});

const typedWords = (): InFlight => ({
  what: 'typed words',
  before: (talk) => talk.types('good morning to you'),
  after: (talk) =>
    talk.until('they are answered', () => talk.playsOf('good morning to you').some(wasHeard)),
});

const twoResults = (): InFlight => ({
  what: 'two results',
  calls: { 'north and south please': [call('north'), call('south')] },
  subagents: {
    north: { ...working('The north is up by three', 4000), pending: 'I look north' },
    south: { ...working('The south is down by four', 4000), pending: 'I look south' },
  },
  before: async (talk) => {
    await talk.says('north and south please');
    await talk.until('both are there', ({ deliveries }) => deliveries.length === 2);
  },
  after: async (talk) => {
    await talk.isDelivered('The north is up by three');
    await talk.isDelivered('The south is down by four');
  },
});

const transferring = (): InFlight => ({
  what: 'a transfer',
  others: [{ name: 'billing', instructions: 'You are the billing agent.' }],
  before: async (talk) => {
    await talk.says('good morning to you');
    await talk.until('that is answered', () => talk.playsOf('good morning to you').some(wasHeard));
    await isQuiet(talk);
    void talk.session.transfer('billing');
  },
  after: async (talk) => {
    await talk.until('somebody leads', ({ agent }) => agent !== null);
    await talk.says('how are you');
  },
});

const inFlight: readonly (() => InFlight)[] = [
  openCall,
  callAtPage,
  pieces,
  openWork,
  acknowledgement,
  waitingResult,
  deliveredResult,
  urgentNotice,
  twoResults,
  openQuestion,
  putQuestion,
  reply,
  unknownWords,
  typedWords,
  transferring,
];

/** Waits until the session is active again after more than this number of connections. */
async function isBack(talk: Talk, connections: number): Promise<void> {
  await talk.until(
    'there is another connection',
    ({ connection }) => connection === 'active' && talk.models.length > connections,
  );
}

const lost = (make: () => InFlight) => (): ConformanceScene => {
  const { what, before, after, ...rest } = make();
  return {
    ...rest,
    name: `reconnect with ${what} in flight`,
    plot: async (talk) => {
      await before(talk);
      const connections = talk.models.length;
      talk.loseConnection();
      await isBack(talk, connections);
      await after(talk);
    },
  };
};

const expired = (make: () => InFlight) => (): ConformanceScene => {
  const { what, before, after, ...rest } = make();
  return {
    ...rest,
    name: `session limit in the middle of ${what}`,
    needs: ['expiry'],
    // The provider says why it ends the connection.
    provokes: ['transport: '],
    plot: async (talk) => {
      await before(talk);
      const connections = talk.models.length;
      talk.model.strike('expiry');
      await isBack(talk, connections);
      await after(talk);
    },
  };
};

const failed = (make: () => InFlight) => (): ConformanceScene => {
  const { what, before, after, ...rest } = make();
  return {
    ...rest,
    name: `server that fails without notice in the middle of ${what}`,
    needs: ['server_error'],
    provokes: ['transport: '],
    plot: async (talk) => {
      await before(talk);
      const connections = talk.models.length;
      talk.model.strike('server_error');
      await isBack(talk, connections);
      await after(talk);
    },
  };
};

const restarted = (make: () => InFlight) => (): ConformanceScene => {
  const { what, before, after, ...rest } = make();
  return {
    ...rest,
    name: `restart of the process in the middle of ${what}`,
    plot: async (talk) => {
      await before(talk);
      await talk.restart();
      await after(talk);
    },
  };
};

const again = (): ConformanceScene => ({
  name: 'reconnect: the model knows what was said before',
  plot: async (talk) => {
    await talk.says('my name is Ada');
    await talk.until('that is answered', () => talk.playsOf('my name is Ada').some(wasHeard));
    await isQuiet(talk);
    for (let lostBefore = 0; lostBefore < 2; lostBefore += 1) {
      const connections = talk.models.length;
      talk.loseConnection();
      await isBack(talk, connections);
      await talk.pass(2000);
    }
    await talk.says('what is my name');
  },
  outcome: (talk) => {
    const { memory } = talk.model;
    const isOfUser = (text: string): boolean => !text.includes(replyTo('my name is Ada'));
    talk.check(
      'it remembers the words of the user',
      memory.some(({ text }) => text.includes('my name is Ada') && isOfUser(text)),
    );
  },
});

export const connectionScenes: readonly (() => ConformanceScene)[] = [
  again,
  ...inFlight.map(lost),
  ...[openQuestion, putQuestion, openWork, deliveredResult].map(expired),
  ...[openQuestion, openWork, deliveredResult].map(failed),
  ...[callAtPage, pieces, openQuestion, openWork, deliveredResult].map(restarted),
];
