// The results of one request, delivered in one reply: when it is spoken, what it says, and what happens to results that
// arrive late, have been seen before, or fail.

import { describe, expect, test } from 'vitest';
import { TextSession, type ConsolidationOptions } from '../../../../src/index.ts';
import { endless, siblingTalk } from '../../../support/siblings.ts';
import { calls, say, steps } from '../../../support/subagent-runs.ts';
import { agentOf, answering, castOf, configsOf, leadScript } from '../../../support/text-talk.ts';

const CEILING_MS = 300_000;

describe("results of one request's calls", { tags: ['R34'] }, () => {
  test('share one reply once the last of them is ready', { tags: ['RW11'] }, async () => {
    const { start, type, finish, told, prompts, deliveries } = siblingTalk(['flight', 'hotel']);
    await start();
    await type('use flight and hotel');
    await finish('flight');
    expect(told()).toEqual([]);
    // The card is on the screen meanwhile.
    expect(deliveries()).toEqual(['flight pending']);
    await finish('hotel');
    expect(told()).toHaveLength(1);
    expect(told()[0]).toMatchObject({ deliveryIds: ['call_1', 'call_2'] });
    expect(deliveries()).toEqual(['flight delivered', 'hotel delivered']);
    const prompt = prompts.at(-1) ?? '';
    expect(prompt).toContain('{"task":"flight","result":"flight is found"}');
    expect(prompt).toContain('{"task":"hotel","result":"hotel is found"}');
    expect(prompt).toContain('in one reply');
  });

  test('include a failure among the successes, with its exact error', async () => {
    const { start, type, finish, told, prompts } = siblingTalk(['flight'], {
      subagents: { hotel: { script: () => ({ error: new Error('no rooms in Prague') }) } },
    });
    await start();
    await type('use flight and hotel');
    await finish('flight');
    expect(told()).toHaveLength(1);
    expect(prompts.at(-1)).toContain('flight is found');
    expect(prompts.at(-1)).toMatch(
      /"task":"hotel","arguments":\{\},"error":"[^"]*no rooms in Prague/,
    );
  });

  test('BATCH-4: arrive immediately, worded in the singular, if there is only one', async () => {
    const { start, type, finish, told, prompts } = siblingTalk(['flight']);
    await start();
    await type('use flight');
    await finish('flight');
    expect(told()[0]).toMatchObject({ deliveryId: 'call_1' });
    expect(told()[0]).not.toHaveProperty('deliveryIds');
    expect(prompts.at(-1)).toMatch(/^\[note \S+\] Tell the user.*"task":"flight"/s);
  });

  test('form two batches for two requests', async () => {
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel', 'car', 'museum']);
    await start();
    await type('use flight and hotel');
    await type('use car and museum');
    await finish('flight', 'car', 'museum');
    expect(told().map(({ deliveryIds }) => deliveryIds)).toEqual([['call_3', 'call_4']]);
    await finish('hotel');
    expect(told().at(-1)).toMatchObject({ deliveryIds: ['call_1', 'call_2'] });
  });

  test('include calls that the model makes later in its reply', async () => {
    let calledAgain = false;
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel'], {
      lead(prompt) {
        if (calledAgain || prompt.prompt.at(-1)?.role !== 'tool') return leadScript(prompt);
        calledAgain = true;
        return calls(['hotel']);
      },
    });
    await start();
    await type('use flight');
    await finish('flight', 'hotel');
    expect(told()).toHaveLength(1);
    expect(told()[0]?.deliveryIds).toHaveLength(2);
  });

  test('do not wait for a call that is refused or cancelled', async () => {
    const { start, type, finish, told, session } = siblingTalk(['flight', 'hotel'], {
      subagents: { car: endless },
    });
    await start();
    await type('use flight and hotel and nothing and car');
    await finish('flight', 'hotel');
    expect(told()).toEqual([]);
    const car = session.subagents.list().find(({ name }) => name === 'car');
    session.subagents.cancel(car?.id ?? '');
    await finish();
    await finish('flight');
    expect(told()).toHaveLength(1);
    expect(told()[0]?.deliveryIds).toHaveLength(2);
  });

  test('P2: do not wait for a call that asks the user a question', async () => {
    const { start, type, finish, told, question } = siblingTalk(['flight'], {
      subagents: {
        ride: {
          script: steps(calls(['ask_user', { question: 'Economy or Premium?' }]), say('Booked.')),
          config: { interactive: true },
        },
      },
      lead: answering('Economy'),
    });
    await start();
    await type('use flight and ride');
    expect(question()?.state).toBe('open');
    await finish('flight');
    expect(told().map(({ deliveryId }) => deliveryId)).toEqual(['call_1']);
    await type('Economy');
    expect(told().map(({ deliveryId }) => deliveryId)).toEqual(['call_1', 'call_2']);
  });
});

describe('the time limit for waiting', { tags: ['R34', 'R41'] }, () => {
  test(
    'delivers the available results after 300 s, and a late result separately',
    { tags: ['R41'] },
    async () => {
      const { start, type, finish, told, prompts, environment } = siblingTalk([
        'flight',
        'hotel',
        'car',
      ]);
      await start();
      await type('use flight and hotel and car');
      await environment.advance(60_000);
      // The time counts from the first result; before that, no result is waiting.
      await finish('flight', 'hotel');
      await environment.advance(CEILING_MS - 1);
      expect(told()).toEqual([]);
      await environment.advance(1);
      expect(told()[0]).toMatchObject({ deliveryIds: ['call_1', 'call_2'] });
      expect(prompts.at(-1)).toContain('"stillWorking":["car"]');
      await finish('car');
      expect(told().map(({ deliveryId }) => deliveryId)).toEqual(['batch_call_1', 'call_3']);
    },
  );

  test(
    'rises to 600 s if no client was attached when the work started',
    { tags: ['R41'] },
    async () => {
      const talk = siblingTalk(['flight', 'hotel']);
      const { session, type, finish, prompts, environment } = talk;
      const leave = session.attach();
      await talk.start();
      leave();
      await type('use flight and hotel');
      session.attach();
      await finish('flight');
      await environment.advance(CEILING_MS);
      expect(prompts.at(-1)).not.toContain('flight is found');
      await environment.advance(CEILING_MS);
      expect(prompts.at(-1)).toContain('flight is found');
    },
  );

  test(
    '`cancel`: cancels late work, and delivers it with the other results as cancelled',
    { tags: ['R34'] },
    async () => {
      const { start, type, finish, told, prompts, environment, state, session } = siblingTalk(
        ['flight'],
        { subagents: { car: endless }, consolidation: { atCeiling: 'cancel' } },
      );
      await start();
      await type('use flight and car');
      await finish('flight');
      await environment.advance(CEILING_MS);
      expect(told()).toHaveLength(1);
      expect(prompts.at(-1)).toMatch(
        /"task":"car","arguments":\{\},"error":"[^"]*consolidation ceiling/,
      );
      expect(session.subagents.list().map(({ state: now }) => now)).toEqual([
        'completed',
        'cancelled',
      ]);
      expect(state().deliveries.map(({ state: now }) => now)).toEqual(['delivered', 'delivered']);
    },
  );

  test('refuses invalid options', () => {
    const session = (consolidation: unknown) =>
      new TextSession({
        model: castOf({}),
        agents: [agentOf({})],
        subagentConfigs: configsOf({}),
        consolidation: consolidation as Partial<ConsolidationOptions>,
      });
    expect(() => session({ interactiveCeilingMs: 0 })).toThrow(/consolidation: .*\n.*Ceiling/);
    expect(() => session({ atCeiling: 'later' })).toThrow(/atCeiling/);
    expect(() => session({ ceiling: 1 })).toThrow(/ceiling/);
  });
});

describe('results that are not delivered together', () => {
  test('arrive one by one with `off`', async () => {
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel'], {
      consolidation: 'off',
    });
    await start();
    await type('use flight and hotel');
    await finish('hotel', 'flight');
    expect(told().map(({ deliveryId }) => deliveryId)).toEqual(['call_2', 'call_1']);
  });

  test('arrive one by one from a subagent with `consolidate: false`, without delaying others', async () => {
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel'], {
      subagents: { alarm: { script: () => say('Rain!'), config: { consolidate: false } } },
    });
    await start();
    await type('use flight and hotel and alarm');
    expect(told().map(({ deliveryId }) => deliveryId)).toEqual(['call_3']);
    await finish('flight', 'hotel');
    expect(told()).toHaveLength(2);
  });
});

describe('P4: consolidated results are not lost', () => {
  const busy = () => {
    let release: () => void = () => {};
    const talk = siblingTalk(['flight', 'hotel'], {
      lead: (prompt) =>
        prompt.user === 'think' && prompt.prompt.at(-1)?.role === 'user'
          ? new Promise((resolve) => {
              release = () => resolve(say('I thought.'));
            })
          : leadScript(prompt),
    });
    return {
      ...talk,
      async release() {
        release();
        await talk.environment.settle();
      },
    };
  };

  test('arrive again in full after an interruption', async () => {
    const { start, type, finish, told, session, environment } = siblingTalk(['flight', 'hotel']);
    await start();
    await type('use flight and hotel');
    let broke = false;
    session.parts.subscribe((part) => {
      if (broke || part.type !== 'text.delta' || !part.text.startsWith('Told')) return;
      broke = true;
      session.notifyBackground('Fire!', { priority: 'urgent', label: 'ALARM' });
    });
    await finish('flight', 'hotel');
    await environment.settle();
    expect(broke).toBe(true);
    const last = told().at(-1);
    expect(last).toMatchObject({ deliveryIds: ['call_1', 'call_2'] });
    expect(last?.text).toContain('flight is found');
    expect(last?.text).toContain('hotel is found');
  });

  test.each(['shown', 'dismiss'] as const)(
    '%s: omit a part that has already been seen and whose call has ended',
    async (how) => {
      const { start, type, finish, told, session, environment, release, deliveries } = busy();
      await start();
      await type('use flight and hotel');
      await type('think');
      await finish('flight', 'hotel');
      session[how]('call_1', { by: 'ada' });
      await environment.settle();
      await release();
      expect(told().at(-1)?.text).toContain('hotel is found');
      expect(told().at(-1)?.text).not.toContain('flight is found');
      expect(deliveries()).toEqual([
        how === 'shown' ? 'flight delivered' : 'flight dismissed',
        'hotel delivered',
      ]);
      const views = session.store.get().context.deliveries;
      expect(views.map(({ by }) => by)).toEqual(['ada', undefined]);
    },
  );

  test('free the place of a result that was seen before its siblings were ready', async () => {
    const { start, type, finish, told, session, environment } = siblingTalk(
      ['flight', 'hotel', 'car'],
      { limits: { maxDeliveries: 2 } },
    );
    await start();
    await type('use flight and hotel');
    await finish('flight');
    session.shown('call_1');
    await environment.settle();
    await type('use car');
    expect(session.subagents.list()).toHaveLength(3);
    await finish('hotel', 'car');
    expect(
      told()
        .map(({ text }) => text)
        .join(),
    ).not.toContain('flight is found');
    expect(told()).toHaveLength(2);
  });

  test('TOOL-CALL-1: answer every open call exactly once', async () => {
    const answers: unknown[] = [];
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel'], {
      each: { pending: null },
      hooks: { onToolResult: ({ callId, output }) => answers.push([callId, output]) },
    });
    await start();
    await type('use flight and hotel');
    await finish('flight', 'hotel');
    expect(told()).toHaveLength(1);
    expect(answers).toEqual([
      ['call_1', 'flight is found'],
      ['call_2', 'hotel is found'],
    ]);
  });

  test('OUTBOX-6: free all their places once delivered', async () => {
    const { start, type, finish, told } = siblingTalk(['flight', 'hotel'], {
      limits: { maxDeliveries: 2 },
    });
    await start();
    for (let round = 1; round <= 3; round += 1) {
      await type('use flight and hotel');
      await finish('flight', 'hotel');
      expect(told()).toHaveLength(round);
      expect(told().at(-1)?.deliveryIds).toHaveLength(2);
    }
  });

  test('arrive one by one as cards when the lead model fails', { tags: ['RW12'] }, async () => {
    let fails = false;
    const { start, type, finish, parts, deliveries } = siblingTalk(['flight', 'hotel'], {
      lead: (prompt) => (fails ? { error: new Error('overloaded') } : leadScript(prompt)),
    });
    await start();
    await type('use flight and hotel');
    fails = true;
    await finish('flight', 'hotel');
    expect(parts.flatMap((part) => (part.type === 'delivery.card' ? [part.text] : []))).toEqual([
      'flight is found',
      'hotel is found',
    ]);
    expect(deliveries()).toEqual(['flight delivered', 'hotel delivered']);
  });
});
