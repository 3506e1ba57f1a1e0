// Actions and limits that occur once in a session's whole lifetime, in any number of processes: the first agent enters,
// and the budget's time passes.
import { THE_LEAD, createSubagentService } from '../../../src/entries/subagents.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { describe, expect, test } from 'vitest';
import { textLife, turns, voiceLife, world, type World } from '../../support/crashes.ts';
import { askingOrder } from '../../support/program-life.ts';
import { calls, never, say } from '../../support/subagent-runs.ts';
import { castOf, configOf, type TalkOptions } from '../../support/text-talk.ts';

type Life = ReturnType<typeof textLife>;

const ways = {
  killed: async (life: Life) => life.kill(),
  suspended: (life: Life) => life.session.suspend(),
  hibernated: (life: Life) => life.session.hibernate(),
};
const journals = [
  ['all entries', {}],
  ['the last snapshot', { snapshots: { afterEntries: 2, trim: true } }],
] as const;
const cases = Object.entries(ways).flatMap(([how, leave]) =>
  journals.map(([what, on]) => [how, what, leave, on] as const),
);

const AN_HOUR = 3_600_000;

describe('BUDGETS-11: the time budget, which runs only while a process runs', () => {
  const options: TalkOptions = {
    budget: { timeMs: 10_000 },
    subagents: {
      ride: {
        script: turns(calls(['ask_user', { question: 'Which class?' }]), say('Nothing.')),
        config: { interactive: true, inputTimeout: 24 * AN_HOUR },
      },
    },
  };

  test.each(cases)(
    'continues after the session was %s and resumed from %s',
    async (_how, _what, leave, on) => {
      const of = world(on);
      const ends: string[] = [];
      const begin = async (): Promise<Life> => {
        const life = textLife(of, {
          ...options,
          hooks: { onSubagentEnd: ({ outcome }) => void ends.push(outcome.error?.code ?? '') },
        });
        await life.start();
        return life;
      };
      let life = await begin();
      await life.type('use ride');
      for (let process = 1; process <= 2; process += 1) {
        await of.environment.advance(4_000);
        // It is unknown what a process did after its last entry.
        life.session.notifyBackground('News');
        await of.environment.settle();
        await leave(life);
        await of.environment.advance(AN_HOUR);
        life = await begin();
      }
      await of.environment.advance(1_000);
      expect(ends).toEqual([]);
      await of.environment.advance(1_000);
      expect(ends).toEqual(['BUDGET_EXHAUSTED']);
      await life.close();
    },
  );

  test.each([
    ['killed', 'all entries', {}],
    ['suspended', 'the last snapshot', { snapshots: { afterEntries: 2, trim: true } }],
  ] as const)(
    "continues after a program's service was %s and resumed from %s",
    async (how, _what, on) => {
      const of = world(on);
      const begin = async () => {
        const { process, runtime } = of.begin();
        const order = configOf('order', askingOrder.config);
        const service = createSubagentService({
          runtime,
          id: 'orders',
          budget: { timeMs: 10_000 },
          configs: { order },
          model: castOf({ subagents: { order: { script: askingOrder.script } } }),
          onQuestion: () => never(),
        });
        await service.recover();
        const spawn = (): string => {
          const task = { toolName: 'order', args: {}, description: 'Order it' };
          const receipt = service.spawn({ config: order, task, caller: THE_LEAD });
          return receipt.status === 'accepted' ? receipt.subagentId : receipt.error.code;
        };
        return { service, spawn, kill: () => process.kill() };
      };
      let program = await begin();
      const id = program.spawn();
      for (let process = 1; process <= 2; process += 1) {
        await of.environment.advance(4_000);
        program.spawn();
        await of.environment.settle();
        if (how === 'killed') program.kill();
        else await program.service.suspend();
        await of.environment.advance(AN_HOUR);
        program = await begin();
      }
      const stateOf = () =>
        program.service.list(THE_LEAD, { includeEnded: true }).find((one) => one.id === id)?.state;
      await of.environment.advance(1_000);
      expect(stateOf()).toBe('waiting_for_input');
      await of.environment.advance(1_000);
      expect(stateOf()).toBe('failed');
      expect(program.spawn()).toBe('BUDGET_EXCEEDED');
      await program.service.suspend();
    },
  );
});

describe('the first agent', () => {
  const entering = (of: World, entered: string[], name = 'process'): Life =>
    textLife(of, {
      agent: { onEnter: () => void entered.push(name) },
    });

  test.each(cases)(
    'calls onEnter once if %s before the first message and resumed from %s',
    async (_h, _w, leave, on) => {
      const of = world(on);
      const entered: string[] = [];
      for (let process = 1; process <= 3; process += 1) {
        const life = entering(of, entered, `process ${process}`);
        const events: string[] = [];
        life.session.events.subscribe(({ type }) => void events.push(type));
        await life.start();
        await of.environment.settle();
        expect(events.filter((type) => type === 'agent.entered')).toHaveLength(1);
        await leave(life);
        await of.environment.advance(AN_HOUR);
      }
      expect(entered).toEqual(['process 1']);
    },
  );

  test('greets the user once', async () => {
    const told: string[] = [];
    const begin = async (of: World) => {
      const life = textLife(of, {
        greeting: 'Say hello.',
        agent: { onEnter: () => void told.push('entered') },
        lead: ({ user }) => say(`Told: ${user}`),
      });
      await life.start();
      return life;
    };
    const whole = world();
    await begin(whole);
    await whole.environment.settle();
    const entered = whole.entries.findIndex(({ event }) => event.type === 'agent.entered');
    expect(entered).toBeGreaterThan(0);
    const of = world();
    of.killAt(entered + 1, 'after');
    void begin(of);
    await of.environment.settle();
    const life = await begin(of);
    await of.environment.advance(1000);
    // Once in each world.
    expect(told).toEqual(['entered', 'entered']);
    expect(life.said()).toEqual([expect.stringMatching(/^Told: \[note \S+\] Say hello\.$/)]);
    await life.close();
  });

  test('calls onEnter again if the process dies during onEnter', async () => {
    const of = world();
    const entered: string[] = [];
    const first = textLife(of, { agent: { onEnter: () => (entered.push('first'), never()) } });
    void first.start();
    await of.environment.settle();
    first.kill();
    const life = entering(of, entered, 'second');
    await life.start();
    await of.environment.settle();
    expect(entered).toEqual(['first', 'second']);
    await life.close();
  });
});

describe('an agent that takes over', () => {
  const begin = async (of: World, entered: string[], onEnter?: () => unknown): Promise<Life> => {
    const life = textLife(of, {
      others: [
        {
          name: 'billing',
          greeting: 'Ask for the invoice.',
          onEnter: (_, from) => {
            entered.push(`from ${from}`);
            return onEnter?.();
          },
        },
      ],
      lead: ({ user }) => say(`Told: ${user}`),
    });
    await life.start();
    await of.environment.settle();
    return life;
  };
  const greetings = (life: Life) => life.said().filter((text) => text.includes('invoice'));

  test.each(journals)(
    'calls onEnter again if the process dies during onEnter: %s',
    async (_what, on) => {
      const of = world(on);
      const entered: string[] = [];
      let life = await begin(of, entered, never);
      await life.type('Hello');
      void life.session.transfer('billing');
      await of.environment.settle();
      expect(life.state().agent).toBe('lead');
      life.kill();
      const greeted: number[] = [];
      for (let process = 2; process <= 3; process += 1) {
        life = await begin(of, entered);
        expect(life.state().agent).toBe('billing');
        expect(entered).toEqual(['from lead', 'from lead']);
        greeted.push(greetings(life).length);
        life.kill();
      }
      expect(greeted).toEqual([1, 0]);
    },
  );

  test('keeps the session busy while an agent is entering or leaving', async () => {
    const of = world();
    let entered = (): void => {};
    const life = await begin(of, [], () => new Promise<void>((resolve) => (entered = resolve)));
    await life.type('Hello');
    expect(life.session.isIdle).toBe(true);
    const transferred = life.session.transfer('billing');
    expect(life.session.isIdle).toBe(false);
    await of.environment.settle();
    expect(life.session.isIdle).toBe(false);
    entered();
    await transferred;
    await of.environment.settle();
    expect(life.session.isIdle).toBe(true);
    await life.close();
  });

  test.each(cases)(
    'calls onEnter once if %s afterwards and resumed from %s',
    async (_how, _what, leave, on) => {
      const of = world(on);
      const entered: string[] = [];
      let life = await begin(of, entered);
      await life.type('Hello');
      await life.session.transfer('billing');
      await of.environment.settle();
      expect(greetings(life)).toHaveLength(1);
      await leave(life);
      await of.environment.advance(AN_HOUR);
      life = await begin(of, entered);
      expect(life.state().agent).toBe('billing');
      expect(entered).toEqual(['from lead']);
      expect(greetings(life)).toEqual([]);
      await life.close();
    },
  );
});

describe('a greeting, wherever the process dies', () => {
  const begin = async (of: World): Promise<Life> => {
    const life = textLife(of, {
      greeting: 'Say hello.',
      others: [{ name: 'billing', greeting: 'Ask for the invoice.', onEnter: () => undefined }],
      lead: ({ user }) => say(`Told: ${user}`),
    });
    void life.start();
    await of.environment.settle();
    return life;
  };
  const takeOver = async (of: World): Promise<void> => {
    const life = await begin(of);
    void life.session.transfer('billing');
    await of.environment.settle();
  };
  const said = ({ entries }: World, words: string) =>
    entries
      .filter(({ event }) => event.type === 'assistant.said' && 'text' in event)
      .filter(({ event }) => (event as unknown as { text: string }).text.includes(words)).length;

  test('plays once for the first agent and once for the agent that takes over', async () => {
    const whole = world();
    await takeOver(whole);
    const events = whole.entries.map(({ event }) => event.type);
    expect(events.filter((type) => type === 'assistant.said')).toHaveLength(2);
    const isLed = events.indexOf('transfer.ended') + 1;
    for (let entry = 2; entry <= events.length; entry += 1)
      for (const when of ['before', 'after'] as const) {
        const of = world();
        of.killAt(entry, when);
        await takeOver(of);
        await begin(of);
        const hasLed = entry > isLed || (entry === isLed && when === 'after');
        expect({
          entry,
          when,
          hello: said(of, 'hello'),
          invoice: said(of, 'invoice'),
        }).toEqual({ entry, when, hello: 1, invoice: hasLed ? 1 : 0 });
      }
  });

  test('counts as delivered if an earlier version stored it as text', async () => {
    const before = world();
    const whole = world();
    await begin(whole);
    const isNote = ({ event }: JournalEntry) => event.type === 'conversation.noted';
    before.killAt(whole.entries.findIndex(isNote) + 1, 'after');
    await begin(before);
    const entries = before.entries.map((entry) => {
      if (!isNote(entry)) return entry;
      const { note: _, ...event } = entry.event as JournalEntry['event'] & { note?: unknown };
      return { ...entry, event: { ...event, text: '[SYSTEM: Say hello.]' } };
    });
    expect(entries.at(-1)).toMatchObject({ event: { text: '[SYSTEM: Say hello.]' } });
    const of = world({ inheritance: { entries, at: before.environment.clock.now() } });
    await begin(of);
    expect(said(of, 'hello')).toBe(1);
  });

  const voice = (of: World, onEnter: () => unknown = () => undefined) =>
    voiceLife(of, { others: [{ name: 'billing', greeting: 'Ask for the invoice.', onEnter }] });
  const greetings = (of: World) =>
    of.entries.filter(
      ({ event }) =>
        event.type === 'conversation.noted' && JSON.stringify(event).includes('invoice'),
    ).length;

  test('reaches the first listener in the next process if a transfer had no listener', async () => {
    const of = world();
    let life = voice(of);
    await life.start();
    await life.say('Hello');
    await life.speak('Hello!');
    life.leave();
    await life.session.transfer('billing');
    await life.session.suspend();
    life = voice(of);
    await life.session.start();
    expect([greetings(of), life.asked()]).toEqual([0, null]);
    life.session.attach();
    await of.environment.settle();
    expect([greetings(of), life.asked()]).toEqual([1, 'reply']);
    await life.close();
  });

  test("contains the agent's pending answer", async () => {
    const of = world();
    let life = voice(of, never);
    await life.start();
    await life.say('My invoice, please');
    life.model().call({
      callId: 'call_1',
      name: 'transfer_to_agent',
      arguments: '{"agent_name":"billing"}',
    });
    await of.environment.settle();
    expect(of.entries.map(({ event }) => event.type)).toContain('transfer.ended');
    life.kill();
    life = voice(of);
    await life.session.start();
    await of.environment.settle();
    life.session.attach();
    await of.environment.settle();
    expect([greetings(of), life.model().openRequests.length]).toEqual([1, 1]);
    await life.close();
  });
});
