// ONCE-1, ONCE-2: if a tool returns a subagent's result to the lead agent, the result is reported once, whether the
// subagent works for a background call or was spawned by a tool. If the lead agent says nothing after that, the result
// is reported as a delivery (P4).

import { describe, expect, test } from 'vitest';
import { leadTools } from '../../src/entries/subagents.ts';
import { createParentSubagentToolset } from '../../src/index.ts';
import { simulatedEnvironment, type Script, type ScriptedStep } from '../../src/testing/index.ts';
import { calls, say } from '../support/subagent-runs.ts';
import { instructionsOf, leadScript, textTalk } from '../support/text-talk.ts';

const RESULT = 'the parcel is in Lyon';
const WORK_MS = 20_000;

/** How the subagents start, and the order in which the lead agent starts them. */
const KINDS = {
  'a background call': {
    begin: 'use parcel',
    pending: 'On it.',
    ends: say(RESULT),
  },
  'a call that stays open': {
    begin: 'use parcel',
    pending: null,
    ends: say(RESULT),
  },
  'a spawned subagent': {
    begin: `use spawn_subagent ${JSON.stringify({ task: 'parcel', contextMode: 'fresh' })}`,
    pending: 'On it.',
    ends: calls(['complete_task', { result: RESULT }]),
  },
} as const;
type Kind = keyof typeof KINDS;
const kinds = Object.keys(KINDS) as Kind[];

/** A step that takes time. */
const after = (
  { scheduler }: ReturnType<typeof simulatedEnvironment>,
  ms: number,
  step: ScriptedStep,
): Promise<ScriptedStep> => new Promise((resolve) => scheduler.schedule(() => resolve(step), ms));

/** A lead agent that responds to the results of its waits with `reply`. */
async function waiting(
  kind: Kind,
  { reply, input = { subagentId: 'sub_1' } }: { reply?: ScriptedStep; input?: object } = {},
) {
  const { begin, pending, ends } = KINDS[kind];
  const environment = simulatedEnvironment();
  const script: Script = () => after(environment, WORK_MS, ends);
  const isOfWait = ({ prompt }: Parameters<typeof leadScript>[0]): boolean =>
    prompt.at(-1)?.role === 'tool' && JSON.stringify(prompt.at(-1)).includes(RESULT);
  const talk = textTalk({
    environment,
    subagents: { parcel: { script, pending } },
    tools: leadTools(
      createParentSubagentToolset({ agent: { instructions: instructionsOf('parcel') } }),
    ),
    lead: (prompt) => (reply && isOfWait(prompt) ? reply : leadScript(prompt)),
    limits: { maxDeliveries: 1 },
  });
  await talk.start();
  await talk.type(begin);
  const told = (): number => talk.said().join('\n').split(RESULT).length - 1;
  const sent = talk.session.sendText(`use await_subagent ${JSON.stringify(input)}`);
  await talk.environment.settle();
  return { ...talk, told, sent };
}

describe.each(kinds)('%s that the lead agent waits for', (kind) => {
  test.each([
    ['one', { subagentId: 'sub_1' }],
    ['several', { subagentIds: ['sub_1'], mode: 'any' }],
  ])(
    'reaches the user once, in the reply after a wait for %s, and is not delivered again',
    async (_, input) => {
      const { environment, told, session, state, type, said, close } = await waiting(kind, {
        input,
      });
      await environment.advance(WORK_MS + 600_000);
      expect(told()).toBe(1);
      expect(session.pendingToolCalls).toEqual([]);
      // A model that also received the result as a delivery would repeat it.
      expect(state().deliveries).toEqual([]);
      // TOOL-CALL-5: the only place in the outbox is free again.
      await type(KINDS[kind].begin);
      expect(said().join()).not.toContain('OUTBOX_FULL');
      await environment.advance(WORK_MS + 1000);
      expect(told()).toBe(2);
      await close();
    },
  );

  test.each([
    ['the lead agent says nothing', say('')],
    ['its model fails', { error: new Error('The model is down') }],
  ])('P4: arrives as a separate delivery if %s', async (_, reply) => {
    const { environment, told, session, state, close } = await waiting(kind, { reply });
    await environment.advance(WORK_MS + 600_000);
    expect(told()).toBe(1);
    expect(state().deliveries.at(-1)).toMatchObject({ state: 'delivered' });
    expect(session.pendingToolCalls).toEqual([]);
    await close();
  });

  test('arrives as a separate delivery if the wait has ended first', async () => {
    const { environment, told, close } = await waiting(kind, {
      input: { subagentId: 'sub_1', timeoutMs: 1000 },
    });
    await environment.advance(WORK_MS + 600_000);
    expect(told()).toBe(1);
    await close();
  });

  test('arrives as a separate delivery if a new message from the user ends the wait', async () => {
    const { environment, told, type, close } = await waiting(kind);
    await type('Hello?');
    await environment.advance(WORK_MS + 600_000);
    expect(told()).toBe(1);
    await close();
  });
});

test('AWAITING-6: delivers finished results once if a new message ends a wait for several subagents', async () => {
  const environment = simulatedEnvironment();
  const talk = textTalk({
    environment,
    subagents: {
      parcel: { script: () => after(environment, 1000, say(RESULT)) },
      slow: { script: () => after(environment, 100_000, say('the slow one is done')) },
    },
    tools: leadTools(createParentSubagentToolset()),
    consolidation: 'off',
  });
  await talk.start();
  await talk.type('use parcel and slow');
  const wait = { subagentIds: ['sub_1', 'sub_2'], mode: 'all' };
  await talk.session.sendText(`use await_subagent ${JSON.stringify(wait)}`);
  await environment.advance(5000);
  expect(talk.said().join()).not.toContain(RESULT);
  await talk.type('Hello?');
  const answers = talk.events.filter(({ type }) => type === 'tool.answered');
  expect(JSON.stringify(answers)).toContain('"why":"user"');
  expect(JSON.stringify(answers)).not.toContain(RESULT);
  await environment.advance(600_000);
  expect(talk.said().join('\n').split(RESULT)).toHaveLength(2);
  expect(talk.said().join('\n').split('the slow one is done')).toHaveLength(2);
  await talk.close();
});

/** How the lead agent replies to the result that it looks up. */
const REPLIES = {
  'and tells': null,
  'and does not mention': say(''),
  'and whose reply fails': { error: new Error('The model is down') },
} as const;

test.each(
  kinds.flatMap((kind) =>
    (Object.keys(REPLIES) as (keyof typeof REPLIES)[]).map((how) => [kind, how] as const),
  ),
)('ONCE-2: tells once %s whose pending result the lead agent looks up %s', async (kind, how) => {
  const { begin, pending, ends } = KINDS[kind];
  const environment = simulatedEnvironment();
  const talk = textTalk({
    environment,
    subagents: { parcel: { script: () => after(environment, 1000, ends), pending } },
    tools: leadTools(
      createParentSubagentToolset({ agent: { instructions: instructionsOf('parcel') } }),
    ),
    // The model takes time, and the result arrives while it is thinking.
    lead: (prompt) => {
      const last = prompt.prompt.at(-1);
      if (prompt.user === 'how is it?' && last?.role !== 'tool')
        return after(environment, 5000, calls(['check_subagent', { subagentId: 'sub_1' }]));
      const hasRead = last?.role === 'tool' && JSON.stringify(last).includes(RESULT);
      return (hasRead && REPLIES[how]) || leadScript(prompt);
    },
    limits: { maxDeliveries: 1 },
  });
  await talk.start();
  await talk.type(begin);
  const sent = talk.session.sendText('how is it?').catch(() => {});
  await talk.environment.advance(600_000);
  await sent;
  const told = talk.said().join('\n').split(RESULT).length - 1;
  expect(told).toBe(1);
  expect(talk.session.pendingToolCalls).toEqual([]);
  expect(talk.state().deliveries.map(({ state }) => state)).toEqual([
    REPLIES[how] === null ? 'dismissed' : 'delivered',
  ]);
  // The only place in the outbox is free again.
  await talk.type(begin);
  expect(talk.said().join()).not.toContain('OUTBOX_FULL');
  await talk.close();
});
