// A text session whose process dies and which the next process resumes.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CapacityError, defineTool, type DoubtfulCall, type Journal } from '../../../src/index.ts';
import { readNotes, type Script } from '../../../src/testing/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../../support/text-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'comfort', label: 'Comfort' },
];

const booking: Script = turns(
  calls(['ask_user', { question: 'Which class?', options }]),
  ({ results }) => say(`Booked ${JSON.stringify(results[0])}`),
);

const asking: TalkOptions = {
  subagents: { ride: { script: booking, config: { interactive: true } } },
};

/** A tool that never returns in its first process. */
function hanging(more: object = {}) {
  const keys: string[] = [];
  return {
    keys,
    tool: {
      description: 'Pays',
      inputSchema: z.object({}),
      execute: (_: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
        keys.push(idempotencyKey);
        return keys.length === 1 ? never() : { paid: true };
      },
      ...more,
    },
  };
}

describe('a session after a crash', () => {
  test('P1: keeps the outcome of a failed subagent, including its diagnostics', async () => {
    const of = world();
    const failing: TalkOptions = {
      subagents: { ride: { script: () => ({ error: new Error('it broke') }) } },
    };
    const before = textLife(of, failing);
    await before.start();
    await before.type('use ride');
    const [failed] = before.state().subagents;
    expect(failed?.outcome?.diagnostics?.reason).toBeDefined();
    before.kill();

    const after = textLife(of, failing);
    await after.start();
    expect(after.state().subagents[0]?.outcome).toEqual(failed?.outcome);
  });

  test("repeats an approval question with its original text even if the tool's text has changed", async () => {
    const of = world();
    const paying = (approvalQuestion: string): TalkOptions => {
      const tools = {
        charge: simpleTool(() => 'charged', { needsApproval: true, approvalQuestion }),
      };
      return {
        subagents: { pay: { script: turns(calls(['charge']), say('Paid.')), config: { tools } } },
      };
    };
    const before = textLife(of, paying('May I charge $7?'));
    await before.start();
    await before.type('use pay');
    expect(before.question()?.question).toBe('May I charge $7?');
    before.kill();

    const after = textLife(of, paying('May I take $7?'));
    await after.start();
    expect(after.question()?.question).toBe('May I charge $7?');
    await after.type('yes');
    expect(after.state().subagents).toMatchObject([{ outcome: { text: 'Paid.' } }]);
    await after.close();
  });

  test(
    'resumes a subagent that is waiting for the user and keeps the id of its question',
    { tags: ['H17'] },
    async () => {
      const of = world();
      const before = textLife(of, asking);
      await before.start();
      await before.type('use ride');
      const asked = before.question();
      expect(asked).toMatchObject({ state: 'open' });
      before.kill();
      await of.environment.advance(30_000);

      const after = textLife(of, asking);
      await after.start();
      expect(after.question()).toMatchObject({
        requestId: asked?.requestId,
        question: 'Which class?',
        state: 'open',
      });
      await after.type('economy');
      expect(after.said().join('\n')).toContain('economy');
      expect(after.state().subagents).toMatchObject([{ id: 'sub_1', state: 'completed' }]);
      expect(after.errors).toEqual([]);
      await after.close();
    },
  );

  test('settles a question that was answered just before the crash, without presenting it again', async () => {
    const begin = (of: World, asked: string[] = []) =>
      textLife(of, {
        ...asking,
        hooks: { onQuestion: ({ requestId }) => void asked.push(requestId) },
      });
    const answered = async (of: World, life = begin(of)) => {
      await life.start();
      await life.type('use ride');
      const { requestId = '' } = life.question() ?? {};
      void life.session.answer(requestId, { optionId: 'comfort' });
      await of.environment.settle();
      return requestId;
    };
    const whole = world();
    await answered(whole);
    const at = whole.entries.findIndex(({ event }) => event.type === 'question.answer');
    const of = world();
    of.killAt(at + 1, 'after');
    const requestId = await answered(of);

    const asked: string[] = [];
    const after = begin(of, asked);
    // The client returns in the very first turn.
    after.session.attach();
    const states: string[] = [];
    after.session.events.subscribe((event) => {
      if (event.type === 'question.changed') states.push(event.question.state);
      else if (event.type === 'subagent.changed') states.push(event.subagent.state);
    });
    await after.start();
    expect(states[0]).toBe('answered');
    expect(asked).toEqual([]);
    expect(requestId).not.toBe('');
    expect(after.state().subagents[0]?.outcome?.text).toContain('comfort');
  });

  test('repeats an idempotent call with the original key', async () => {
    const of = world();
    const { keys, tool } = hanging({ idempotent: true });
    const paying: TalkOptions = {
      subagents: {
        pay: {
          script: turns(calls(['charge', {}, 'pay']), ({ results }) =>
            say(JSON.stringify(results)),
          ),
          config: { tools: { charge: tool } },
        },
      },
    };
    const before = textLife(of, paying);
    await before.start();
    await before.type('use pay');
    before.kill();
    const after = textLife(of, paying);
    await after.start();
    expect(keys).toEqual(['sub_1:1:pay', 'sub_1:1:pay']);
    expect(after.said().join('\n')).toContain('paid');
    await after.close();
  });

  test("P10: replies after the lead agent's inline tool call even if killed at any entry", async () => {
    const open = defineTool({
      name: 'open_gate',
      description: 'Opens the gate',
      parameters: z.object({}),
      idempotent: true,
      execute: () => 'the gate is open',
    });
    const written = async (entry?: number): Promise<number> => {
      const of = world();
      if (entry !== undefined) of.killAt(entry, 'after');
      for (;;) {
        const life = textLife(of, { tools: [open] });
        void life.start().catch(() => {});
        await of.environment.settle();
        if (!life.state().transcript.some(({ role }) => role === 'user'))
          void life.session.sendText('use open_gate').catch(() => {});
        await of.environment.advance(2_000);
        if (!life.isAlive()) continue;
        const said = of.entries.filter(({ event }) => event.type === 'assistant.said');
        expect(JSON.stringify(said), `after a kill at entry ${entry}`).toContain(
          'the gate is open',
        );
        const { written: count } = of;
        await life.close();
        return count;
      }
    };
    const count = await written();
    for (let entry = 1; entry <= count; entry += 1) await written(entry);
  });

  test('SLOTS-2: gives run slots first to subagents that already held a slot', async () => {
    const of = world();
    let times = 0;
    const charge = {
      description: 'Pays',
      inputSchema: z.object({}),
      idempotent: true,
      execute: () => {
        times += 1;
        return never();
      },
    };
    const both: TalkOptions = {
      subagents: {
        ...asking.subagents,
        pay: {
          script: () => calls(['charge']),
          config: { tools: { charge } },
        },
      },
      limits: { maxConcurrentPerSession: 1 },
    };
    const states = ({ state }: ReturnType<typeof textLife>) =>
      state().subagents.map((subagent) => subagent.state);
    const before = textLife(of, both);
    await before.start();
    await before.type('use ride and pay');
    await before.type('comfort');
    expect(states(before)).toEqual(['ready', 'running']);
    before.kill();
    const after = textLife(of, both);
    await after.start();
    expect(states(after)).toEqual(['ready', 'running']);
    expect(times).toBe(2);
    await after.close();
  });

  test('P6: reports a call in doubt to the model and the app, and repeats only an idempotent call', async () => {
    const of = world();
    const { keys, tool } = hanging();
    const doubtful: DoubtfulCall[] = [];
    const paying: TalkOptions = {
      hooks: { onCallInDoubt: (call) => void doubtful.push(call) },
      subagents: {
        pay: {
          script: turns(calls(['charge', { sum: 7 }, 'pay']), ({ results }) =>
            say(JSON.stringify(results)),
          ),
          config: { tools: { charge: tool } },
        },
      },
    };
    const before = textLife(of, paying);
    await before.start();
    await before.type('use pay');
    before.kill();
    const after = textLife(of, paying);
    await after.start();
    expect(keys).toEqual(['sub_1:1:pay']);
    expect(doubtful).toMatchObject([
      { subagentId: 'sub_1', toolName: 'charge', idempotencyKey: keys[0] },
    ]);
    expect(after.said().join('\n')).toContain('whether it was done is not known');
    const [view] = after.state().subagents;
    expect(view?.outcome?.toolLedger).toMatchObject([{ toolName: 'charge', status: 'in_flight' }]);
    await after.close();
  });

  test("repeats a lead agent's tool call only if it is idempotent", async () => {
    const run = async (idempotent: boolean) => {
      const of = world();
      const keys: string[] = [];
      const tool = defineTool({
        name: 'charge',
        description: 'Pays',
        parameters: z.object({}),
        idempotent,
        execute: (_, { idempotencyKey }) => {
          keys.push(idempotencyKey);
          return keys.length === 1 ? never() : { paid: true };
        },
      });
      const before = textLife(of, { tools: [tool] });
      await before.start();
      await before.type('use charge');
      before.kill();
      const after = textLife(of, { tools: [tool] });
      await after.start();
      const said = after.said().join('\n');
      await after.close();
      return { keys, said };
    };
    const again = await run(true);
    expect(again.keys).toEqual(['ses:call_1', 'ses:call_1']);
    expect(again.said).toContain('paid');
    const once = await run(false);
    expect(once.keys).toEqual(['ses:call_1']);
    expect(once.said).toContain('NEEDS_RECONCILE');
  });

  test('answers a message once unless it has already been answered', async () => {
    const of = world();
    const before = textLife(of, { lead: () => ({ text: 'Late.', delayMs: 5000 }) });
    await before.start();
    await before.type('hello');
    before.kill();
    const after = textLife(of);
    await after.start();
    expect(after.said()).toEqual(['You said: hello']);
    after.kill();
    const third = textLife(of);
    await third.start();
    expect(third.said()).toEqual([]);
    expect(third.state().transcript.map(({ text }) => text)).toEqual(['hello', 'You said: hello']);
    await third.close();
  });

  test('keeps deadlines', async () => {
    const of = world();
    const slow: TalkOptions = {
      subagents: {
        slow: {
          script: turns(calls(['wait'])),
          config: { timeout: 60_000, tools: { wait: simpleTool(never, { idempotent: true }) } },
        },
      },
    };
    const before = textLife(of, slow);
    await before.start();
    await before.type('use slow');
    await of.environment.advance(40_000);
    before.kill();
    const after = textLife(of, slow);
    await after.start();
    await of.environment.advance(19_000);
    expect(after.state().subagents).toMatchObject([{ state: 'running' }]);
    await of.environment.advance(2_000);
    expect(after.state().subagents).toMatchObject([{ outcome: { status: 'timed_out' } }]);
    await after.close();
  });

  test('ends a subagent as lost if its configuration is missing, and gives the reason', async () => {
    const of = world();
    const before = textLife(of, asking);
    await before.start();
    await before.type('use ride');
    before.kill();
    const after = textLife(of, {});
    await after.start();
    expect(after.state().subagents).toMatchObject([
      { outcome: { status: 'lost', error: { code: 'NOT_RECOVERABLE' } } },
    ]);
    const told = after.said().flatMap((text) => readNotes(text.replace(/^Told: /, '')));
    expect(told).toMatchObject([
      { quotes: { task: 'ride', error: expect.stringContaining('no configuration "ride"') } },
    ]);
    await after.close();
  });

  test('refuses to start if its agent is missing and resumes once the agent is available', async () => {
    const of = world();
    const others = [{ name: 'other' }];
    const before = textLife(of, { others });
    await before.start();
    await before.type('use transfer_to_agent {"agent_name":"other"}');
    before.kill();
    const without = textLife(of);
    await expect(without.session.start()).rejects.toMatchObject({
      code: 'UNKNOWN_AGENT',
      message: expect.stringContaining('"other"'),
    });
    await without.close();
    const after = textLife(of, { others });
    await after.start();
    expect(after.state().agent).toBe('other');
    await after.close();
  });

  test('starts a new session under the id of a closed one', async () => {
    const of = world();
    const before = textLife(of, asking);
    await before.start();
    await before.type('use ride');
    await before.close();
    const after = textLife(of, asking);
    await after.start();
    expect(after.state()).toMatchObject({ subagents: [], questions: [], transcript: [] });
    await after.type('hello');
    expect(after.said()).toEqual(['You said: hello']);
    after.kill();
    const third = textLife(of, asking);
    await third.start();
    expect(third.state().transcript.map(({ text }) => text)).toEqual(['hello', 'You said: hello']);
    await third.close();
  });

  test('reports which subagents resumed and how long the process was down', async () => {
    const of = world();
    const before = textLife(of, asking);
    await before.start();
    await before.type('use ride');
    before.kill();
    await of.environment.advance(1234);
    const after = textLife(of, asking);
    await after.start();
    expect(after.events.filter(({ type }) => type === 'session.recovered')).toMatchObject([
      { resumed: ['sub_1'], lost: [], downMs: 1234 },
    ]);
    await after.close();
  });
});

describe('usage from before a crash', () => {
  test('counts towards the budget', async () => {
    const of = world();
    const options: TalkOptions = {
      subagents: {
        ride: { script: booking, config: { interactive: true, budget: { steps: 2 } } },
      },
    };
    const before = textLife(of, options);
    await before.start();
    await before.type('use ride');
    before.kill();
    const after = textLife(of, options);
    await after.start();
    await after.type('economy');
    // The subagent takes the second of its two steps.
    expect(after.state().subagents).toMatchObject([{ state: 'completed', step: 2 }]);
    await after.close();

    const tight: TalkOptions = {
      subagents: {
        ride: { script: booking, config: { interactive: true, budget: { steps: 1 } } },
      },
    };
    const third = world();
    const first = textLife(third, tight);
    await first.start();
    await first.type('use ride');
    first.kill();
    const second = textLife(third, tight);
    await second.start();
    await second.type('economy');
    expect(second.state().subagents[0]?.outcome?.error?.code).toBe('BUDGET_EXHAUSTED');
    await second.close();
  });
});

describe('cost from before a crash', () => {
  test('keeps its original price', async () => {
    const of = world({ price: () => price });
    let price = 4;
    const options: TalkOptions = {
      subagents: {
        ride: { script: booking, config: { interactive: true, budget: { cost: 5 } } },
      },
    };
    const before = textLife(of, options);
    await before.start();
    await before.type('use ride');
    before.kill();
    price = 2;
    const after = textLife(of, options);
    await after.start();
    expect(after.state().subagents).toMatchObject([{ usage: { cost: 4 } }]);
    await after.type('economy');
    expect(after.state().subagents).toMatchObject([{ state: 'completed', usage: { cost: 6 } }]);
    await after.close();
  });
});

test('SESSION-LIFE-6: finishes an interrupted close and starts a new session under the id', async () => {
  const of = world();
  const before = textLife(of, asking);
  await before.start();
  await before.type('use ride');
  of.killAt(of.written + 1, 'after');
  void before.session.close();
  await of.environment.settle();
  expect(before.isAlive()).toBe(false);
  expect(of.entries.at(-1)?.event.type).toBe('session.close');

  const closing = textLife(of, asking);
  await expect(closing.session.start()).rejects.toMatchObject({ code: 'CLOSE_INTERRUPTED' });
  expect(closing.state()).toMatchObject({
    connection: 'closed',
    subagents: [{ state: 'cancelled' }],
  });
  await expect(closing.session.start()).rejects.toMatchObject({ code: 'CLOSE_INTERRUPTED' });

  const after = textLife(of, asking);
  await after.start();
  expect(after.state()).toMatchObject({ connection: 'active', subagents: [] });
  await after.close();
});

describe('a journal that is unavailable', () => {
  test("makes a session's start fail until the journal is available", async () => {
    const of = world();
    const { runtime } = of.begin();
    let isFree = false;
    const journal: Journal = {
      ...runtime.journal,
      claim() {
        if (!isFree) throw new CapacityError('SCOPE_IN_USE', 'another process has it');
      },
    };
    const talk = textTalk({ runtime: { ...runtime, journal }, sessionId: 'ses' });
    await expect(talk.session.start()).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
    isFree = true;
    await talk.start();
    await talk.type('hello');
    expect(talk.said()).toEqual(['You said: hello']);
    await talk.close();
  });
});
