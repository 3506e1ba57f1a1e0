// Calls that were waiting while no process ran are executed only if the current code and configuration would execute
// them (CALL-JUDGEMENT-1, CALL-JUDGEMENT-2): restart × kind of change.

import { jsonSchema } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type SubagentConfig } from '../../../src/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, never, say } from '../../support/subagent-runs.ts';
import type { TalkOptions } from '../../support/text-talk.ts';

type Tool = Readonly<Record<string, unknown>>;
type Config = Partial<SubagentConfig>;

/** Creates a subagent that pays 900 after an approval and reports the result. */
function paying(ran: unknown[], tool: Tool | null, config: Config = {}): TalkOptions {
  const pay = {
    description: 'Pays',
    inputSchema: z.object({ dollars: z.number() }),
    needsApproval: true,
    execute: (input: unknown) => {
      ran.push(input);
      return 'paid';
    },
    ...tool,
  };
  return {
    subagents: {
      bank: {
        script: turns(calls(['pay', { dollars: 900 }]), ({ prompt }) =>
          say(`Result: ${JSON.stringify(prompt.at(-1)?.content)}`),
        ),
        config: { ...config, tools: tool === null ? {} : { pay } },
      },
    },
  };
}

const before = (ran: unknown[]): TalkOptions => paying(ran, {});

const suspended = async ({ session, environment }: ReturnType<typeof textLife>): Promise<void> => {
  await Promise.all([session.suspend(), environment.advance(1000)]);
};

interface Way {
  readonly options?: Parameters<typeof world>[0];
  readonly end: (life: ReturnType<typeof textLife>) => Promise<void>;
}

/** How the process ends while the approval is waiting. */
const ways: Record<string, Way> = {
  'a crash': { end: async (life) => life.kill() },
  'a suspension': { end: suspended },
  'hibernation with a snapshot': {
    options: { snapshots: { afterEntries: 1, trim: true } },
    end: suspended,
  },
};

/** Changes that invalidate an earlier approval. */
const changes: Record<string, readonly [Tool | null, Config, string]> = {
  'the schema takes other properties': [
    { inputSchema: z.object({ amount: z.number(), currency: z.string() }) },
    {},
    'another form',
  ],
  'the schema has a limit': [
    { inputSchema: z.object({ dollars: z.number().max(100) }) },
    {},
    'another form',
  ],
  'the schema has a check that a model does not read': [
    { inputSchema: z.object({ dollars: z.number().refine((sum) => sum < 500) }) },
    {},
    'no longer takes this input',
  ],
  'the schema makes another value of it': [
    { inputSchema: z.object({ dollars: z.number().transform((sum) => sum * 100) }) },
    {},
    'no longer takes this input',
  ],
  'the schema has a new default': [
    { inputSchema: z.object({ dollars: z.number(), currency: z.string().default('EUR') }) },
    {},
    'another form',
  ],
  'a JSON schema without a check': [
    {
      inputSchema: jsonSchema({ type: 'object', properties: { cents: { type: 'number' } } }),
    },
    {},
    'another form',
  ],
  'the tool is gone': [null, {}, 'no tool'],
  'others may approve it': [
    { answerableBy: ['bob'] },
    {},
    'has changed, so it has to be asked again',
  ],
  'others may answer its subagent': [
    {},
    { answerableBy: ['bob'] },
    'has changed, so it has to be asked again',
  ],
};

const ends = Object.keys(ways).flatMap((way) =>
  Object.keys(changes).map((change) => [way, change] as const),
);

async function begun(of: World, options: TalkOptions) {
  const life = textLife(of, options);
  await life.start();
  return life;
}

describe('an approval that waits across a restart', () => {
  it.each(ends)('closes as withdrawn after %s if %s, and gives the reason', async (way, change) => {
    const of = world(ways[way]?.options);
    const ran: unknown[] = [];
    const first = await begun(of, before(ran));
    await first.type('use bank');
    const asked = first.question()?.requestId ?? '';
    expect(first.question()?.state).toBe('open');
    await ways[way]?.end(first);

    const [tool, config, reason] = changes[change] ?? [null, {}, ''];
    const second = await begun(of, paying(ran, tool, config));
    const view = second.state().questions.find(({ requestId }) => requestId === asked);
    expect(view).toMatchObject({ state: 'withdrawn', reason: expect.stringContaining(reason) });
    const late = second.session.answer(asked, { approved: true });
    await of.environment.settle();
    expect(await late).toMatchObject({ accepted: false });
    await second.type('yes');
    expect(ran).toEqual([]);
    const { outcome } = second.state().subagents[0] ?? {};
    expect(outcome?.text).toContain(reason);
    expect(outcome?.toolLedger).toMatchObject([{ status: 'denied', approval: 'withdrawn' }]);
  });

  it.each(Object.keys(ways))('remains open after %s, if nothing has changed', async (way) => {
    const of = world(ways[way]?.options);
    const ran: unknown[] = [];
    const first = await begun(of, before(ran));
    await first.type('use bank');
    await ways[way]?.end(first);
    const second = await begun(of, before(ran));
    expect(second.question()?.state).toBe('open');
    await second.type('yes');
    expect(ran).toEqual([{ dollars: 900 }]);
  });

  it.each([
    ['a transformation', z.object({ dollars: z.number().transform((sum) => `$${sum}`) })],
    ['a value that is no JSON', z.object({ dollars: z.number().transform((ms) => new Date(ms)) })],
    ['a default', z.object({ dollars: z.number(), currency: z.string().default('USD') })],
    ['properties that are dropped', z.object({})],
  ])('remains open if the same schema has %s', async (_, inputSchema) => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, paying(ran, { inputSchema }));
    await first.type('use bank');
    first.kill();
    const second = await begun(of, paying(ran, { inputSchema }));
    await second.type('yes');
    expect(ran).toEqual([await inputSchema.parseAsync({ dollars: 900 })]);
  });

  it('reopens when the model calls the current version of the tool', async () => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, before(ran));
    await first.type('use bank');
    first.kill();
    const inputSchema = z.object({ amount: z.number(), currency: z.string() });
    const now = paying(ran, { inputSchema });
    const script = turns(
      calls(['pay', { dollars: 900 }]),
      calls(['pay', { amount: 900, currency: 'USD' }]),
      say('Paid.'),
    );
    const bank = { ...now.subagents?.['bank'], script };
    const second = await begun(of, { ...now, subagents: { bank } });
    const anew = second.state().questions.findLast(({ state }) => state === 'open');
    expect(anew?.action?.input).toEqual({ amount: 900, currency: 'USD' });
    await second.type('yes');
    expect(ran).toEqual([{ amount: 900, currency: 'USD' }]);
  });

  it('does not run if the code has changed between the answer and the call', async () => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, before(ran));
    await first.type('use bank');
    const answer = of.entries.length;
    of.killAt(of.written + 2, 'before');
    await first.type('yes');
    expect([first.isAlive(), ran]).toEqual([false, []]);
    expect(of.entries.length).toBeGreaterThan(answer);
    const second = await begun(of, paying(ran, changes['the schema has a limit']?.[0] ?? {}));
    await second.environment.advance(1000);
    expect(ran).toEqual([]);
    expect(JSON.stringify(second.state().subagents[0]?.outcome)).toContain('pay');
  });

  it('does not run after its run has been cancelled', async () => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, before(ran));
    await first.type('use bank');
    const asked = first.question()?.requestId ?? '';
    first.session.subagents.cancel(first.state().subagents[0]?.id ?? '', 'no longer wanted');
    await first.environment.settle();
    first.kill();
    const second = await begun(of, before(ran));
    const late = second.session.answer(asked, { approved: true });
    await of.environment.settle();
    expect([await late, ran]).toMatchObject([{ accepted: false }, []]);
  });
});

describe('a question that waits across a restart', () => {
  const asking = (config: Config): TalkOptions => ({
    subagents: {
      ride: {
        script: turns(calls(['ask_user', { question: 'Where to?' }]), ({ results }) =>
          say(JSON.stringify(results)),
        ),
        config: { interactive: true, ...config },
      },
    },
  });

  it('closes as withdrawn if the users who may answer have changed', async () => {
    const of = world();
    const first = await begun(of, asking({}));
    await first.type('use ride');
    first.kill();
    const second = await begun(of, asking({ answerableBy: ['bob'] }));
    const [view] = second.state().questions;
    expect(view).toMatchObject({ state: 'withdrawn' });
    expect(second.state().subagents[0]?.outcome?.text).toContain('who may answer it has changed');
  });

  it('remains open if nothing has changed', async () => {
    const of = world();
    const first = await begun(of, asking({}));
    await first.type('use ride');
    first.kill();
    const second = await begun(of, asking({}));
    expect(second.question()?.state).toBe('open');
  });
});

describe('an idempotent call that runs again after a crash', () => {
  const once = (ran: unknown[], tool: Tool): TalkOptions =>
    paying(ran, {
      needsApproval: false,
      idempotent: true,
      execute: (input: unknown) => {
        ran.push(input);
        return ran.length === 1 ? never() : 'paid';
      },
      ...tool,
    });

  it.each<[string, Tool]>([
    ['the schema takes other properties', { inputSchema: z.object({ amount: z.number() }) }],
    ['the schema has a limit', { inputSchema: z.object({ dollars: z.number().max(100) }) }],
    ['it needs approval now', { needsApproval: true }],
  ])('becomes doubtful instead if %s', async (_, tool) => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, once(ran, {}));
    await first.type('use bank');
    first.kill();
    const doubtful: string[] = [];
    const second = await begun(of, {
      ...once(ran, tool),
      hooks: { onCallInDoubt: ({ toolName }) => void doubtful.push(toolName) },
    });
    await second.environment.advance(1000);
    expect(ran).toEqual([{ dollars: 900 }]);
    expect(doubtful).toEqual(['pay']);
    expect(second.state().subagents[0]?.outcome?.toolLedger).toMatchObject([
      { status: 'in_flight' },
    ]);
  });

  it('becomes in doubt if the tool no longer exists', async () => {
    const of = world();
    const ran: unknown[] = [];
    const first = await begun(of, once(ran, {}));
    await first.type('use bank');
    first.kill();
    const doubtful: string[] = [];
    const second = await begun(of, {
      ...paying(ran, null),
      hooks: { onCallInDoubt: ({ toolName }) => void doubtful.push(toolName) },
    });
    await second.environment.advance(1000);
    expect([ran, doubtful]).toEqual([[{ dollars: 900 }], ['pay']]);
  });

  it("becomes in doubt if the lead agent's tool expects a different input", async () => {
    const of = world();
    const ran: unknown[] = [];
    const doubtful: string[] = [];
    const lead = (parameters: z.ZodType<object>): TalkOptions => ({
      hooks: { onCallInDoubt: ({ toolName }) => void doubtful.push(toolName) },
      tools: [
        defineTool({
          name: 'pay',
          description: 'Pays',
          parameters,
          idempotent: true,
          execute: (input: unknown) => {
            ran.push(input);
            return ran.length === 1 ? never() : 'paid';
          },
        }),
      ],
    });
    const first = await begun(of, lead(z.object({ dollars: z.number() })));
    void first.type('use pay {"dollars":900}');
    await first.environment.settle();
    expect(ran).toEqual([{ dollars: 900 }]);
    first.kill();
    const second = await begun(of, lead(z.object({ dollars: z.number().max(100) })));
    await second.environment.advance(1000);
    expect([ran, doubtful]).toEqual([[{ dollars: 900 }], ['pay']]);
  });
});
