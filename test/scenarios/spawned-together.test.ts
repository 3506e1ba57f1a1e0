// The lead model spawned several subagents with a tool for one request. One reply reports their results in a text
// session, for both toolsets. Some results are reported separately.

import { rockbotToolset, topic } from '../../src/compat/index.ts';
import { describe, expect, test } from 'vitest';
import { type TextPart, createParentSubagentToolset } from '../../src/index.ts';
import { leadTools } from '../../src/entries/subagents.ts';
import type { Script } from '../../src/testing/index.ts';
import { textLife, turns, world } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { instructionsOf, leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const CEILING_MS = 300_000;
const agent = { instructions: instructionsOf('worker') };

/** A toolset, the call to its tool, and how its subagents end. */
const TOOLSETS = {
  parent: {
    tools: (more: object = {}) => createParentSubagentToolset({ agent: { ...agent, ...more } }),
    use: (task: string) => `spawn_subagent ${JSON.stringify({ task, contextMode: 'fresh' })}`,
    found: (task: string) => calls(['complete_task', { result: `${task} is found` }]),
  },
  rockbot: {
    tools: (more: object = {}) =>
      rockbotToolset({ clock: { now: () => 0 }, agent: { ...agent, ...more } }),
    use: (task: string) => `spawn_subagent ${JSON.stringify({ description: task })}`,
    found: (task: string) => say(`${task} is found`),
  },
};
type Toolset = keyof typeof TOOLSETS;
const both = Object.keys(TOOLSETS) as Toolset[];

const TASKS = ['flight', 'hotel', 'car', 'museum'];

/** The subagents for these tasks end when a test lets them. */
function workers(toolset: Toolset, { config = {}, asks = '' } = {}) {
  const open = new Map(TASKS.map((task) => [task, Promise.withResolvers<void>()]));
  const script: Script = (prompt) => {
    const task = TASKS.find((one) => JSON.stringify(prompt.prompt).includes(one)) ?? '';
    if (asks === task && prompt.results.length === 0)
      return calls(['ask_user', { question: 'Economy or Premium?' }]);
    return open.get(task)!.promise.then(() => TOOLSETS[toolset].found(task));
  };
  const options: TalkOptions = {
    subagents: { worker: { script } },
    tools: leadTools(TOOLSETS[toolset].tools(config)),
  };
  return { options, end: (task: string) => open.get(task)!.resolve() };
}

function spawningTalk(
  toolset: Toolset,
  more: TalkOptions & { readonly worker?: Parameters<typeof workers>[1] } = {},
) {
  const { worker, ...rest } = more;
  const { options, end } = workers(toolset, worker);
  const prompts: string[] = [];
  const talk = textTalk({
    ...options,
    ...rest,
    subagents: { ...options.subagents, ...rest.subagents },
    onModelCall: (who, { user }) => void (who === 'lead' && prompts.push(user)),
  });
  const { use } = TOOLSETS[toolset];
  return {
    ...talk,
    prompts,
    spawn: (...tasks: string[]) => talk.type(`use ${tasks.map(use).join(' and ')}`),
    async finish(...tasks: string[]) {
      for (const task of tasks) {
        end(task);
        await talk.environment.settle();
      }
    },
    ...tellings(talk),
    idOf: (task: string) => talk.session.subagents.list().find((one) => one.task === task)!.id,
  };
}

function tellings({ parts }: { readonly parts: readonly TextPart[] }) {
  /** Returns the results in each message that reports results. */
  const told = () =>
    parts.flatMap((part) =>
      part.type === 'text.done' && part.deliveryId !== null
        ? [TASKS.filter((task) => part.text.includes(`${task} is found`))]
        : [],
    );
  return { told };
}

describe.each(both)(
  'results of subagents spawned by the %s toolset for one request',
  { tags: ['R34'] },
  (toolset) => {
    test('arrive in one reply once the last subagent has finished', async () => {
      const { start, spawn, finish, told, prompts, state, parts, session } = spawningTalk(toolset);
      const messages: unknown[] = [];
      topic(session, 'subagent.result').subscribe(({ batchId }) => messages.push(batchId));
      await start();
      await spawn('flight', 'hotel');
      await finish('hotel');
      expect(told()).toEqual([]);
      // In the meantime, the card is on the screen.
      expect(state().deliveries).toMatchObject([{ kind: 'result', state: 'pending' }]);
      await finish('flight');
      expect(told()).toEqual([['flight', 'hotel']]);
      expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
      expect(prompts.at(-1)).toContain('in one reply');
      const last = parts.findLast((part) => part.type === 'text.done');
      expect(last).toHaveProperty('deliveryIds.length', 2);
      expect(new Set(messages).size).toBe(1);
      expect(messages[0]).toMatch(/^batch_/);
    });

    test('wait for a slow result up to the ceiling and then arrive without it', async () => {
      const talk = spawningTalk(toolset);
      const { start, spawn, finish, told, prompts, environment, idOf } = talk;
      await start();
      await spawn('flight', 'hotel', 'car');
      await finish('flight', 'hotel');
      await environment.advance(CEILING_MS - 1);
      expect(told()).toEqual([]);
      await environment.advance(1);
      expect(told()).toEqual([['flight', 'hotel']]);
      expect(prompts.at(-1)).toContain(`"stillWorking":["subagent (${idOf('car')})"]`);
      await finish('car');
      expect(told()).toEqual([['flight', 'hotel'], ['car']]);
    });

    test('arrive in one reply when `cancel` stops the slow subagents at the time limit', async () => {
      const { start, spawn, finish, told, prompts, environment, state } = spawningTalk(toolset, {
        consolidation: { atCeiling: 'cancel' },
      });
      await start();
      await spawn('flight', 'car');
      await finish('flight');
      await environment.advance(CEILING_MS);
      expect(told()).toEqual([['flight']]);
      expect(prompts.at(-1)).toMatch(/"error":"[^"]*consolidation ceiling/);
      expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
    });

    test('do not wait for a killed subagent', async () => {
      const talk = spawningTalk(toolset);
      const { start, spawn, finish, told, session, environment, idOf } = talk;
      await start();
      await spawn('flight', 'hotel', 'car');
      await finish('flight', 'hotel');
      session.subagents.cancel(idOf('car'));
      await environment.settle();
      expect(told()).toEqual([['flight', 'hotel']]);
    });

    test('arrive immediately if all other subagents have been cancelled', async () => {
      const talk = spawningTalk(toolset);
      const { start, spawn, finish, told, session, prompts, idOf } = talk;
      await start();
      await spawn('flight', 'hotel');
      session.subagents.cancel(idOf('hotel'));
      await finish('flight');
      expect(told()).toEqual([['flight']]);
      expect(prompts.at(-1)).not.toContain('in one reply');
    });

    test('arrive separately from the results of another request', async () => {
      const { start, spawn, finish, told } = spawningTalk(toolset);
      await start();
      await spawn('flight', 'hotel');
      await spawn('car', 'museum');
      await finish('flight', 'car', 'museum');
      expect(told()).toEqual([['car', 'museum']]);
      await finish('hotel');
      expect(told()).toEqual([
        ['car', 'museum'],
        ['flight', 'hotel'],
      ]);
    });

    test('arrive in one reply with the background calls of the same request', async () => {
      const { start, type, finish, told } = spawningTalk(toolset, {
        subagents: { taxi: { script: () => say('museum is found') } },
      });
      await start();
      await type(`use ${TOOLSETS[toolset].use('flight')} and taxi`);
      expect(told()).toEqual([]);
      await finish('flight');
      expect(told()).toEqual([['flight', 'museum']]);
    });

    test('arrive separately with `consolidation: off` or with `consolidate: false` in a configuration', async () => {
      for (const more of [
        { consolidation: 'off' as const },
        { worker: { config: { consolidate: false } } },
      ]) {
        const { start, spawn, finish, told } = spawningTalk(toolset, more);
        await start();
        await spawn('flight', 'hotel');
        await finish('hotel', 'flight');
        expect(told()).toEqual([['hotel'], ['flight']]);
      }
    });

    test('P2: do not wait for a subagent that is asking the user', async () => {
      const talk = spawningTalk(toolset, {
        worker: { config: { interactive: true }, asks: 'car' },
      });
      const { start, spawn, finish, told, question } = talk;
      await start();
      await spawn('flight', 'car');
      expect(question()?.state).toBe('open');
      await finish('flight');
      expect(told()).toEqual([['flight']]);
    });

    test('omit a result that was dismissed or shown while the batch was waiting', async () => {
      for (const how of ['dismiss', 'shown'] as const) {
        const { start, spawn, finish, told, session, state, environment } = spawningTalk(toolset);
        await start();
        await spawn('flight', 'hotel', 'car');
        await finish('flight');
        session[how](state().deliveries[0]?.deliveryId ?? '');
        await environment.settle();
        await finish('hotel', 'car');
        expect(told()).toEqual([['hotel', 'car']]);
      }
    });

    test('OUTBOX-6: free their places when delivered and arrive separately if no place is free', async () => {
      const { start, spawn, finish, told } = spawningTalk(toolset, {
        limits: { maxDeliveries: 2 },
      });
      await start();
      await spawn('flight', 'hotel', 'car');
      await finish('flight', 'hotel', 'car');
      expect(told().flat().toSorted()).toEqual(['car', 'flight', 'hotel']);
      const again = spawningTalk(toolset, { limits: { maxDeliveries: 2 } });
      await again.start();
      await again.spawn('flight', 'hotel');
      await again.finish('flight', 'hotel');
      await again.spawn('car', 'museum');
      await again.finish('car', 'museum');
      expect(again.told()).toEqual([
        ['flight', 'hotel'],
        ['car', 'museum'],
      ]);
    });
  },
);

describe('results that the lead agent fetches itself', () => {
  /** A lead agent that repeats the messages from its tools or the runtime. */
  const fetching = (more: TalkOptions & { readonly worker?: Parameters<typeof workers>[1] } = {}) =>
    spawningTalk('parent', more);
  const checked = (id: string) => `use check_subagent ${JSON.stringify({ subagentId: id })}`;

  test('reach the lead agent once through await_subagent and do not delay their siblings', async () => {
    const talk = fetching();
    const { start, spawn, finish, told, session, events, environment, idOf, state } = talk;
    await start();
    await spawn('flight', 'hotel');
    const wait = { subagentId: idOf('hotel'), timeoutMs: 250_000 };
    const sent = session.sendText(`use await_subagent ${JSON.stringify(wait)}`);
    await environment.settle();
    // The floor is free while the tool is waiting.
    await environment.advance(60_000);
    await finish('flight');
    await environment.advance(1000);
    expect(told()).toEqual([['flight']]);
    await finish('hotel');
    await sent;
    const answers = events.filter(({ type }) => type === 'tool.answered');
    expect(JSON.stringify(answers)).toContain('hotel is found');
    await environment.advance(2 * CEILING_MS);
    expect(told()).toEqual([['flight']]);
    expect(state().deliveries).toHaveLength(1);
  });

  test('wait for their siblings again after await_subagent has timed out', async () => {
    const talk = fetching();
    const { start, spawn, type, finish, told, environment, idOf } = talk;
    await start();
    await spawn('flight', 'hotel');
    const wait = { subagentId: idOf('hotel'), timeoutMs: 1000 };
    await type(`use await_subagent ${JSON.stringify(wait)}`);
    await environment.advance(2000);
    await finish('flight');
    expect(told()).toEqual([]);
    await finish('hotel');
    expect(told()).toEqual([['flight', 'hotel']]);
  });

  test('leave their batch once check_subagent has returned them', async () => {
    const { start, spawn, type, finish, told, said, idOf, state } = fetching();
    await start();
    await spawn('flight', 'hotel', 'car');
    await finish('flight');
    await type(checked(idOf('flight')));
    expect(said().at(-1)).toContain('flight is found');
    await finish('hotel', 'car');
    expect(told()).toEqual([['hotel', 'car']]);
    const states = state().deliveries.map((one) => one.state);
    expect(states).toEqual(['dismissed', 'delivered', 'delivered']);
  });

  test('arrive as a delivery if the reply to check_subagent is empty', async () => {
    const isFetched = ({ prompt }: Parameters<Script>[0]): boolean =>
      prompt.at(-1)?.role === 'tool' && JSON.stringify(prompt.at(-1)).includes('flight is found');
    const { start, spawn, type, finish, told, idOf, state } = fetching({
      lead: (prompt) => (isFetched(prompt) ? say('') : leadScript(prompt)),
    });
    await start();
    await spawn('flight', 'hotel', 'car');
    await finish('flight');
    await type(checked(idOf('flight')));
    expect(told()).toEqual([['flight']]);
    await finish('hotel', 'car');
    expect(told()).toEqual([['flight'], ['hotel', 'car']]);
    expect(state().deliveries.map((one) => one.state)).toEqual(Array(3).fill('delivered'));
  });

  test('do not cause an empty batch if the only other result has been fetched', async () => {
    const { start, spawn, type, finish, told, environment, idOf } = fetching();
    await start();
    await spawn('flight', 'hotel');
    await finish('flight');
    await type(checked(idOf('flight')));
    await environment.advance(CEILING_MS + 1);
    expect(told()).toEqual([]);
    await finish('hotel');
    expect(told()).toEqual([['hotel']]);
  });
});

test("exclude the results of a subagent's own children, which go to that subagent", async () => {
  const of = world();
  const begins = turns(
    calls(['spawn_subagent', { task: 'museum', contextMode: 'fresh' }]),
    ({ results }) => calls(['await_subagent', results[0]]),
    calls(['complete_task', { result: 'flight is found' }]),
  );
  const script: Script = (prompt) =>
    JSON.stringify(prompt.prompt).includes('flight')
      ? begins(prompt)
      : calls(['complete_task', { result: 'museum is found' }]);
  const tools = createParentSubagentToolset({ agent }) as object;
  const talk = textLife(of, {
    subagents: { worker: { script } },
    tools: leadTools(createParentSubagentToolset({ agent: { ...agent, tools } as never })),
  });
  await talk.start();
  await talk.type(`use ${TOOLSETS.parent.use('flight')}`);
  await talk.environment.settle();
  expect(talk.state().subagents.map(({ depth, state }) => [depth, state])).toEqual([
    [1, 'completed'],
    [2, 'completed'],
  ]);
  expect(tellings(talk).told()).toEqual([['flight']]);
  expect(of.entries.filter(({ event }) => event.type === 'result.expected')).toHaveLength(1);
});

describe('results by voice', () => {
  const speaking = async (options: VoiceTalkOptions = {}) => {
    const { options: spawning, end } = workers('rockbot');
    const { lead: _, runtime: __, ...rest } = spawning;
    const talk = voiceTalk({ ...rest, ...options });
    await talk.start();
    await talk.say('a flight and a hotel');
    const spawn = (task: string) => ({
      callId: `call_${task}`,
      name: 'spawn_subagent',
      arguments: JSON.stringify({ description: task }),
    });
    talk.model().call(spawn('flight'), spawn('hotel'));
    await talk.environment.settle();
    if (talk.model().openRequests.length > 0) await talk.speak('I am on it.');
    return {
      ...talk,
      async finish(task: string) {
        end(task);
        await talk.environment.settle();
        await talk.pause();
      },
    };
  };

  test('arrive as separate deliveries by default', async () => {
    const { finish, asked, speak } = await speaking();
    await finish('flight');
    expect(asked()).toContain('flight is found');
    await speak('A flight.');
    await finish('hotel');
    expect(asked()).toContain('hotel is found');
  });

  test('arrive as one delivery with `consolidation: batch`', async () => {
    const { finish, asked, speak, state } = await speaking({ consolidation: 'batch' });
    await finish('flight');
    expect(asked()).toBeNull();
    await finish('hotel');
    expect(asked()).toMatch(/flight is found.*hotel is found/s);
    await speak('Both are found.');
    expect(state().deliveries.map((one) => one.state)).toEqual(['delivered', 'delivered']);
  });
});

describe('P1, P4: two results across a kill at each entry', () => {
  const live = async (of: ReturnType<typeof world>) => {
    const { use } = TOOLSETS.parent;
    for (;;) {
      const { options, end } = workers('parent');
      const talk = textLife(of, options);
      void talk.start().catch(() => {});
      await of.environment.settle();
      const words = talk.state().transcript.filter(({ role }) => role === 'user');
      if (talk.isAlive() && words.length === 0)
        void talk.session.sendText(`use ${use('flight')} and ${use('hotel')}`).catch(() => {});
      await of.environment.advance(1000);
      end('flight');
      await of.environment.advance(1000);
      end('hotel');
      await of.environment.advance(CEILING_MS - 10_000);
      if (!talk.isAlive()) continue;
      const said = talk
        .state()
        .transcript.filter(({ role }) => role === 'assistant')
        .map(({ text }) => text)
        .join();
      // A response that was interrupted by the crash may have fewer calls.
      const outputs = talk.state().subagents.map(({ outcome }) => String(outcome?.output));
      const seen = {
        begun: outputs.length,
        untold: outputs.filter((output) => !said.includes(output)),
        isOpen: talk.state().deliveries.some(({ state }) => state === 'pending'),
        errors: talk.errors,
      };
      await talk.close();
      return seen;
    }
  };
  const whole = {
    begun: 2,
    untold: [],
    isOpen: false,
    errors: [],
  };

  test('reach the user if no process is killed', async () => {
    const of = world();
    expect(await live(of)).toEqual(whole);
    const types = of.entries.map(({ event }) => event.type);
    expect(types.filter((type) => type === 'result.expected')).toHaveLength(2);
  });

  test.each(['before', 'after'] as const)(
    'reach the user after a kill %s each entry',
    async (when) => {
      const of = world();
      await live(of);
      const ends = of.entries.findIndex(({ event }) => event.type === 'session.close');
      expect(ends).toBeGreaterThan(30);
      let both = 0;
      for (let entry = 1; entry < ends; entry += 1) {
        const killed = world();
        killed.killAt(entry, when);
        const { begun, ...seen } = await live(killed);
        if (begun === 2) both += 1;

        expect({ entry, begun, ...seen }).toEqual({ entry, ...whole, begun });
      }
      expect(both).toBeGreaterThan(20);
    },
  );
});
