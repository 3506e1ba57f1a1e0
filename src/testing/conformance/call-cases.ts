// Tool calls: a call is executed once even if it is announced twice. The session or the model can cancel it, and the
// agent can change while it runs.

import type { ConformanceScene } from './case.ts';
import { wasHeard } from './promises.ts';
import type { Talk } from './talk.ts';
import {
  atPages,
  call,
  callAtPages,
  gate,
  inPieces,
  isQuiet,
  lookUp,
  PLACE,
  runAtPage,
  SALES,
  WHERE,
  working,
} from './shared-cases.ts';

const inline = (): ConformanceScene => {
  const clock = lookUp('clock', 'It is noon');
  return {
    name: 'inline call: it is run once, and the model tells what it made of the result',
    calls: { 'what time is it': [call('clock')] },
    tools: [clock.definition],
    plot: async (talk) => {
      await talk.says('what time is it');
      await talk.hears('It is noon');
    },
    outcome: (talk) => talk.check('it was run once', clock.counted.runs === 1),
  };
};

const slow = (): ConformanceScene => {
  const ready = gate();
  const clock = lookUp('clock', 'It is noon', ready);
  return {
    name: 'slow inline call: what is due is told meanwhile, and the result after it',
    calls: { 'what time is it': [call('clock')] },
    tools: [clock.definition],
    plot: async (talk) => {
      await talk.says('what time is it');
      await talk.until('it is run', () => clock.counted.runs === 1);
      talk.session.notifyBackground('The mail has come');
      const { defersToolResults, responds, schedulesToolResults } = talk.capabilities;
      const mayTell = defersToolResults && (responds === 'when_asked' || schedulesToolResults);
      if (mayTell) await talk.isDelivered('The mail has come');
      else await talk.pass(5000);
      talk.check('it waits for no tool where it need not', mayTell === isDelivered(talk));
      ready.open();
      await talk.hears('It is noon');
      await talk.isDelivered('The mail has come');
    },
    outcome: (talk) => {
      talk.check('it was run once', clock.counted.runs === 1);
      talk.check('it was told once', talk.playsOf('It is noon').filter(wasHeard).length === 1);
    },
  };
};

const detached = (): ConformanceScene => {
  const ready = gate();
  const clock = lookUp('clock', 'It is noon', ready, {
    detach: { afterMs: 3000 },
    pendingMessage: 'I am looking at the clock',
  });
  return {
    name: 'slow inline call that is detached: the conversation goes on, and the result is told once',
    calls: { 'what time is it': [call('clock')] },
    tools: [clock.definition],
    plot: async (talk) => {
      await talk.says('what time is it');
      await talk.hears('I am looking at the clock');
      await isQuiet(talk);
      await talk.says('how are you');
      await talk.until('that is answered', () => talk.playsOf('how are you').some(wasHeard));
      await isQuiet(talk);
      ready.open();
      await talk.isDelivered('It is noon');
    },
    outcome: (talk) => {
      talk.check('it was run once', clock.counted.runs === 1);
      talk.check('it was told once', talk.playsOf('It is noon').filter(wasHeard).length === 1);
    },
  };
};

const whereAmI = (): Pick<ConformanceScene, 'calls' | 'tools' | 'outcome'> => ({
  calls: { [WHERE]: [call('locate')] },
  tools: [atPages()],
  outcome: (talk) => {
    talk.check('no call is left', talk.session.clientCalls.list().length === 0);
    talk.check('it was told once', talk.playsOf(PLACE).filter(wasHeard).length === 1);
  },
});

const atOneOfTwoPages = (): ConformanceScene => ({
  ...whereAmI(),
  name: 'call at the page: one of two pages takes it, and the model tells its result once',
  plot: async (talk) => {
    await talk.says(WHERE);
    const id = await callAtPages(talk);
    const { clientCalls } = talk.session;
    const taken = await Promise.all([clientCalls.claim(id, 'one'), clientCalls.claim(id, 'two')]);
    talk.check('one of them has it', taken.join() === 'true,false');
    const other = await clientCalls.answer(id, 'two', { output: 'You are in Paris' });
    talk.check('the other page can give no result', !other);
    talk.check('the page can', await clientCalls.answer(id, 'one', { output: PLACE }));
    await talk.hears(PLACE);
  },
});

const atPageThatConnects = (): ConformanceScene => ({
  ...whereAmI(),
  name: 'call at the page: it waits for a page, and is put again to the page that comes back',
  plot: async (talk) => {
    await talk.says(WHERE);
    const id = await callAtPages(talk);
    await talk.pass(10_000);
    const { clientCalls } = talk.session;
    talk.check('the page takes it', await clientCalls.claim(id, 'one'));
    clientCalls.left('one');
    await talk.pass(2000);
    talk.check('no other page runs it twice', !(await clientCalls.claim(id, 'two')));
    await runAtPage(talk, 'one');
    await talk.hears(PLACE);
  },
});

const atNoPage = (): ConformanceScene => ({
  name: 'call at the page, and no page: the model is told so where the tool cannot wait',
  calls: { [WHERE]: [call('locate')] },
  tools: [atPages({ absent: 'fail' })],
  plot: async (talk) => {
    await talk.says(WHERE);
    await callAtPages(talk);
    await talk.until('it is given up', () => talk.session.clientCalls.list().length === 0, 10_000);
    await talk.until('the model is told', ({ floor }) => floor === 'nobody');
  },
  outcome: (talk) =>
    talk.check(
      'its model has read why',
      talk.model.memory.some(({ text }) => text.includes('No page of the user is open')),
    ),
});

const requestInPieces = (): ConformanceScene => {
  const { begin, goOn, ...rest } = inPieces();
  return {
    ...rest,
    name: 'request in pieces: the task that runs reads the rest once, and there is no second task',
    plot: async (talk) => {
      await begin(talk);
      await goOn(talk);
    },
  };
};

const isDelivered = (talk: Talk) => talk.deliveryOf('The mail has come')?.state === 'delivered';

const duplicated = (): ConformanceScene => {
  const clock = lookUp('clock', 'It is noon');
  return {
    name: 'duplicated tool call: it is run once, and answered once',
    needs: ['duplicated_calls'],
    calls: { 'what time is it': [call('clock')] },
    tools: [clock.definition],
    plot: async (talk) => {
      talk.model.strike('duplicated_calls', true);
      await talk.says('what time is it');
      await talk.hears('It is noon');
    },
    outcome: (talk) => {
      talk.check('it was run once', clock.counted.runs === 1);
      talk.check('it was told once', talk.playsOf('It is noon').filter(wasHeard).length === 1);
    },
  };
};

const takenBack = (): ConformanceScene => {
  const never = gate();
  return {
    name: 'cancelled tool call: what the model takes back is stopped, and has no result',
    needs: ['cancelled_calls'],
    calls: { 'the report please': [call('report')] },
    subagents: { report: working(SALES, never) },
    plot: async (talk) => {
      await talk.says('the report please');
      await talk.until('the work has begun', ({ subagents }) => subagents.length === 1);
      await talk.pass(1000);
      talk.model.strike('cancelled_calls');
      await talk.until(
        'the work has ended',
        ({ subagents }) =>
          subagents[0]?.state === 'cancelled' || !talk.capabilities.defersToolResults,
      );
      await talk.says('how are you');
      // A call that was answered immediately cannot be cancelled.
      never.open();
    },
    outcome: (talk) =>
      talk.check(
        'there is nothing to tell, if the call was still open',
        (talk.deliveryOf(SALES) === undefined) === talk.capabilities.defersToolResults,
      ),
  };
};

const oneOfTwo = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'cancel of one of two calls of the same name: the other one goes on',
    calls: {
      'compare north and south': [
        call('report', { region: 'north' }),
        call('report', { region: 'south' }),
      ],
    },
    subagents: {
      report: {
        script: async ({ prompt }) => {
          await ready.opened;
          const region = /region\W+(north|south)/.exec(JSON.stringify(prompt))?.[1] ?? 'world';
          return { text: `The ${region} is fine` };
        },
        pending: 'I look into it',
      },
    },
    plot: async (talk) => {
      await talk.says('compare north and south');
      await talk.until('both are at work', ({ subagents }) => subagents.length === 2);
      await isQuiet(talk);
      const [north] = talk.state.subagents;
      talk.check('it is cancelled', talk.session.subagents.cancel(north?.id ?? ''));
      await talk.pass(1000);
      ready.open();
      await talk.isDelivered('The south is fine');
    },
    outcome: (talk) => {
      const states = talk.state.subagents.map(({ state }) => state).toSorted();
      talk.check('one was cancelled, one completed', states.join() === 'cancelled,completed');
      talk.check(
        'of the north nothing is told',
        talk.deliveryOf('The north is fine') === undefined,
      );
    },
  };
};

const transfer = (): ConformanceScene => {
  const ready = gate();
  return {
    name: 'transfer in mid-call: the work goes on, and another agent tells the result',
    calls: { 'the report please': [call('report')] },
    subagents: { report: { ...working(SALES, ready), pending: 'I am on it' } },
    others: [{ name: 'billing', instructions: 'You are the billing agent.' }],
    plot: async (talk) => {
      await talk.says('the report please');
      await talk.hears('I am on it');
      await isQuiet(talk);
      const transferred = talk.session.transfer('billing');
      await talk.until('billing leads', ({ agent }) => agent === 'billing');
      const answer = await transferred;
      talk.check('the transfer was made', 'status' in answer);
      await talk.says('how are you');
      await talk.until('billing answers', () => talk.playsOf('how are you').some(wasHeard));
      ready.open();
      await talk.isDelivered(SALES);
    },
    outcome: (talk) => {
      const configured = talk.capabilities.updatesSession ? 1 : 2;
      talk.check(
        'the connection stays if the session can be configured anew, else there is another one',
        talk.tap.connections.length === configured,
      );
      talk.check('the subagent was not harmed', talk.state.subagents[0]?.state === 'completed');
    },
  };
};

const transferWhileSpeaking = (): ConformanceScene => ({
  name: 'transfer while the user speaks: whoever leads then answers them',
  others: [{ name: 'billing', instructions: 'You are the billing agent.' }],
  plot: async (talk) => {
    await talk.says('good morning to you');
    await talk.until('that is answered', () => talk.playsOf('good morning to you').some(wasHeard));
    await isQuiet(talk);
    const transferred = talk.session.transfer('billing');
    await talk.until('billing leads', ({ agent }) => agent === 'billing');
    await transferred;
    await talk.says('my bill is wrong');
  },
  outcome: (talk) => talk.check('billing leads', talk.state.agent === 'billing'),
});

export const callScenes: readonly (() => ConformanceScene)[] = [
  inline,
  slow,
  detached,
  atOneOfTwoPages,
  atPageThatConnects,
  atNoPage,
  requestInPieces,
  duplicated,
  takenBack,
  oneOfTwo,
  transfer,
  transferWhileSpeaking,
];
