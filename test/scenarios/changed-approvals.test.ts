// An approval with changed arguments (P3): the tool runs with exactly the arguments that the user approved.

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { SubagentConfig } from '../../src/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, say, subagentRuns } from '../support/subagent-runs.ts';
import { instructionsOf, type TalkOptions } from '../support/text-talk.ts';

interface Paying {
  readonly ran: unknown[];
  readonly tool?: Readonly<Record<string, unknown>>;
  readonly config?: Partial<SubagentConfig>;
  readonly input?: unknown;
}

const schema = z.object({ dollars: z.number().max(1000), to: z.string().default('Ada') });

const payTool = ({ ran, tool }: Paying) => ({
  description: 'Pays',
  inputSchema: schema,
  needsApproval: true,
  idempotent: true,
  execute: (input: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
    ran.push({ input, idempotencyKey });
    return { receipt: 7 };
  },
  ...tool,
});

/** A subagent that pays 900 dollars after an approval and reports what its model reads. */
function paying(paid: Paying): TalkOptions {
  return {
    subagents: {
      bank: {
        script: turns(calls(['pay', paid.input ?? { dollars: 900 }]), ({ prompt }) =>
          say(`Read: ${JSON.stringify(prompt.at(-1)?.content)}`),
        ),
        config: { tools: { pay: payTool(paid) }, ...paid.config },
      },
    },
  };
}

async function asked(paid: Paying, of: World = world()) {
  const life = textLife(of, paying(paid));
  await life.start();
  await life.type('use bank');
  const requestId = life.question()?.requestId ?? '';
  const answer = async (given: Parameters<typeof life.session.answer>[1], by?: string) => {
    const receipt = life.session.answer(requestId, given, by === undefined ? {} : { by });
    const settled = receipt.then(
      (value) => value,
      (error: Error & { code?: string }) => ({ refused: error.code, why: error.message }),
    );
    await of.environment.settle();
    return settled;
  };
  return { of, life, requestId, answer, bank: () => life.state().subagents[0] };
}

const inputs = (ran: readonly unknown[]) => ran.map((one) => (one as { input: unknown }).input);

describe('an approval with changed arguments', () => {
  it('P3: runs the tool once with the changed arguments and informs the model of the change', async () => {
    const ran: unknown[] = [];
    const { of, life, requestId, answer, bank } = await asked({ ran });
    expect(await answer({ approved: true, input: { dollars: 20 } })).toEqual({ accepted: true });
    expect(inputs(ran)).toEqual([{ dollars: 20, to: 'Ada' }]);
    expect(bank()?.outcome?.toolLedger).toMatchObject([
      {
        input: { dollars: 20, to: 'Ada' },
        askedInput: { dollars: 900, to: 'Ada' },
        approval: 'given',
        status: 'ok',
      },
    ]);
    const read = bank()?.outcome?.text ?? '';
    expect(read).toContain('The user changed the arguments of this call.');
    expect(JSON.parse(read.slice('Read: '.length))).toMatchObject([
      {
        type: 'tool-result',
        output: {
          value: {
            result: { receipt: 7 },
            note: expect.stringContaining('{"dollars":20,"to":"Ada"}'),
          },
        },
      },
    ]);
    expect(life.state().questions).toMatchObject([
      {
        requestId,
        state: 'answered',
        answer: 'Yes, with dollars: 20, to: "Ada"',
        action: { input: { dollars: 900, to: 'Ada' } },
        changed: { input: { dollars: 20, to: 'Ada' } },
      },
    ]);
    const journal = JSON.stringify(of.entries);
    expect(journal).toContain(
      '"changed":{"input":{"dollars":20,"to":"Ada"},"given":{"dollars":20}}',
    );
    await life.close();
  });

  it('counts as a plain approval if the arguments are unchanged', async () => {
    const ran: unknown[] = [];
    const { life, answer, bank } = await asked({ ran });
    await answer({ approved: true, input: { dollars: 900 } });
    expect(inputs(ran)).toEqual([{ dollars: 900, to: 'Ada' }]);
    expect(bank()?.outcome?.toolLedger[0]).not.toHaveProperty('askedInput');
    expect(bank()?.outcome?.text).not.toContain('changed');
    await life.close();
  });

  it('runs a tool whose schema converts its input to something other than JSON', async () => {
    const ran: unknown[] = [];
    const inputSchema = z.object({ day: z.string().transform((day) => new Date(day)) });
    const input = { day: '2026-12-03' };
    const { life, answer } = await asked({ ran, tool: { inputSchema }, input });
    await answer({ approved: true, input: { day: '2026-12-04' } });
    expect(inputs(ran)).toEqual([{ day: new Date('2026-12-04') }]);
    await life.close();
  });

  it("runs only the unchanged call if the tool's schema converts values", async () => {
    const ran: unknown[] = [];
    const inputSchema = z.object({
      dollars: z
        .number()
        .max(1000)
        .transform((dollars) => dollars * 100),
    });
    const { life, answer, bank } = await asked({ ran, tool: { inputSchema } });
    // The question shows the value that the tool receives, because 20 could mean dollars or cents.
    expect(life.question()?.action?.input).toEqual({ dollars: 90_000 });
    expect(await answer({ approved: true, input: { dollars: 20 } })).toMatchObject({
      refused: 'INVALID_INPUT',
      why: expect.stringContaining('its schema converts them'),
    });
    expect([life.question()?.state, ran]).toEqual(['open', []]);
    expect(await answer({ approved: true })).toEqual({ accepted: true });
    expect(inputs(ran)).toEqual([{ dollars: 90_000 }]);
    expect(bank()?.outcome?.toolLedger).toMatchObject([{ approval: 'given', status: 'ok' }]);
    await life.close();
  });

  const wrong: Record<string, readonly [unknown, string]> = {
    'a value out of range': [{ dollars: 2000 }, 'INVALID_INPUT'],
    'a missing property': [{ to: 'Bob' }, 'INVALID_INPUT'],
    'a text': ['20 dollars', 'INVALID_INPUT'],
    null: [null, 'INVALID_INPUT'],
    'a megabyte': [{ dollars: 20, to: 'x'.repeat(1_000_000) }, 'TEXT_TOO_LONG'],
    'no JSON': [{ dollars: 20n }, 'INVALID_ANSWER'],
  };

  it.each(Object.keys(wrong))('stays open after %s', async (name) => {
    const ran: unknown[] = [];
    const { life, answer } = await asked({ ran });
    const [input, code] = wrong[name] ?? [];
    expect(await answer({ approved: true, input })).toMatchObject({ refused: code });
    expect(life.question()?.state).toBe('open');
    expect(ran).toEqual([]);
    expect(await answer({ approved: true })).toEqual({ accepted: true });
    expect(inputs(ran)).toEqual([{ dollars: 900, to: 'Ada' }]);
    await life.close();
  });

  it.each([
    ['a denial', { approved: false, input: { dollars: 20 } }],
    ['words', { text: 'yes', input: { dollars: 20 } }],
    ['arguments alone', { input: { dollars: 20 } }],
  ])('rejects %s that also contains arguments', async (_, given) => {
    const ran: unknown[] = [];
    const { life, answer } = await asked({ ran });
    expect(await answer(given)).toMatchObject({ refused: 'INVALID_ANSWER' });
    expect(life.question()?.state).toBe('open');
    expect(ran).toEqual([]);
    await life.close();
  });

  it("refuses a changed call if the tool's author does not permit changes", async () => {
    const ran: unknown[] = [];
    const toolApproval = {
      pay: ({ dollars }: { dollars: number }) =>
        dollars > 950 ? ({ type: 'denied', reason: 'too much' } as const) : 'user-approval',
    };
    const { life, answer } = await asked({ ran, config: { toolApproval } });
    expect(await answer({ approved: true, input: { dollars: 990 } })).toMatchObject({
      refused: 'INVALID_INPUT',
      why: expect.stringContaining('too much'),
    });
    expect(life.question()?.state).toBe('open');
    expect(ran).toEqual([]);
    await life.close();
  });

  it('rejects another user before it reads the arguments', async () => {
    const ran: unknown[] = [];
    const { life, answer } = await asked({ ran, tool: { answerableBy: ['carl'] } });
    for (const input of [{ dollars: 20 }, 'nonsense'])
      expect(await answer({ approved: true, input }, 'anna')).toEqual({
        accepted: false,
        reason: 'not_allowed',
      });
    expect(await answer({ approved: true, input: { dollars: 20 } }, 'carl')).toMatchObject({
      accepted: true,
      by: 'carl',
    });
    expect(inputs(ran)).toEqual([{ dollars: 20, to: 'Ada' }]);
    await life.close();
  });

  it('counts only the first answer', async () => {
    const ran: unknown[] = [];
    const { life, requestId, of } = await asked({ ran });
    const answers = [20, 30].map((dollars) =>
      life.session.answer(requestId, { approved: true, input: { dollars } }),
    );
    answers.push(life.session.answer(requestId, { approved: false }));
    await of.environment.settle();
    const receipts = await Promise.all(answers);
    expect(receipts.filter(({ accepted }) => accepted)).toHaveLength(1);
    expect(ran.length).toBeLessThanOrEqual(1);
    expect(await life.session.answer(requestId, { approved: true, input: { dollars: 5 } })).toEqual(
      { accepted: false, reason: 'over' },
    );
    await life.close();
  });

  it('refuses the answer if the subagent has been cancelled in the meantime', async () => {
    const ran: unknown[] = [];
    const { life, requestId, of, bank } = await asked({ ran });
    const receipt = life.session.answer(requestId, { approved: true, input: { dollars: 20 } });
    life.session.subagents.cancel(bank()?.id ?? '', 'not needed');
    await of.environment.settle();
    expect(await receipt).toEqual({ accepted: false, reason: 'over' });
    expect(ran).toEqual([]);
    await life.close();
  });
});

describe('an approval with changed arguments, across a restart', () => {
  const instances: Record<string, (paid: Paying) => Partial<SubagentConfig>> = {
    'tools of the configuration': () => ({}),
    'tools of an instance': (paid) => ({
      tools: {},
      createInstance: () => ({
        name: 'bank',
        instructions: instructionsOf('bank'),
        tools: { pay: payTool(paid) },
      }),
    }),
  };

  it.each(Object.keys(instances))('checks the answer in a later process: %s', async (name) => {
    const ran: unknown[] = [];
    const paid = { ran };
    const config = instances[name]?.(paid) ?? {};
    const first = await asked({ ran, config });
    expect(first.requestId).not.toBe('');
    first.life.kill();
    const second = textLife(first.of, paying({ ran, config }));
    await second.start();
    const wrongOne = second.session.answer(first.requestId, { approved: true, input: {} });
    const caught = wrongOne.catch((error: { code: string }) => error.code);
    await first.of.environment.settle();
    expect(await caught).toBe('INVALID_INPUT');
    const receipt = second.session.answer(first.requestId, {
      approved: true,
      input: { dollars: 20 },
    });
    await first.of.environment.settle();
    expect(await receipt).toEqual({ accepted: true });
    expect(inputs(ran)).toEqual([{ dollars: 20, to: 'Ada' }]);
    await second.close();
  });

  for (const snapshots of [false, true]) {
    const play = async (of: World) => {
      const ran: unknown[] = [];
      for (;;) {
        const life = textLife(of, paying({ ran }));
        void life.start().catch(() => {});
        await of.environment.settle();
        for (let round = 0; round < 6 && life.isAlive(); round += 1) {
          if (life.state().subagents.length === 0)
            void life.session.sendText('use bank').catch(() => {});
          await of.environment.settle();
          const { requestId = '' } = life.question() ?? {};
          if (requestId !== '')
            void life.session
              .answer(requestId, { approved: true, input: { dollars: 20 } })
              .catch(() => {});
          await of.environment.settle();
          await of.environment.advance(1000);
        }
        if (!life.isAlive()) continue;
        const { outcome } = life.state().subagents[0] ?? {};
        const { written } = of;
        await life.close();
        return { ran, outcome, written };
      }
    };
    const worldOf = () => world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});

    it(`P3: runs with exactly these arguments if killed at any entry (snapshots: ${snapshots})`, async () => {
      const whole = worldOf();
      const { written } = await play(whole);
      for (const [when, entry] of instantsOf(written)) {
        const of = worldOf();
        of.killAt(entry, when);
        const { ran, outcome } = await play(of);
        const ledger = outcome?.toolLedger.map(({ input, askedInput, status }) => ({
          input,
          askedInput,
          status,
        }));
        expect({
          when,
          entry,
          ran: [...new Set(ran.map((one) => JSON.stringify(one)))],
          ledger,
        }).toEqual({
          when,
          entry,
          ran: [expect.stringContaining('{"dollars":20,"to":"Ada"}')],
          ledger: [
            {
              input: { dollars: 20, to: 'Ada' },
              askedInput: { dollars: 900, to: 'Ada' },
              status: 'ok',
            },
          ],
        });
      }
    });
  }
});

describe('a program that approves with changed arguments', () => {
  it.each([
    [20, [{ dollars: 20, to: 'Ada' }], []],
    [5000, [], ['INVALID_INPUT']],
  ])(
    'runs the tool with the changed arguments if they are valid: %i',
    async (dollars, runs, codes) => {
      const ran: unknown[] = [];
      const { environment, errors, outcome } = subagentRuns(
        turns(calls(['pay', { dollars: 900 }]), say('Done')),
      );
      const result = outcome(
        { tools: { pay: payTool({ ran }) } },
        { onQuestion: () => ({ approved: true, input: { dollars } }) },
      );
      await environment.settle();
      expect((await result).status).toBe('completed');
      expect(inputs(ran)).toEqual(runs);
      expect(errors.map(({ error }) => (error as { code: string }).code)).toEqual(codes);
    },
  );
});
