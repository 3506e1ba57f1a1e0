// The subagent service in a session: the lead agent and the app act as the parent, on behalf of the user.

import { z } from 'zod';
import { describe, expect, test } from 'vitest';
import { createChildSubagentToolset } from '../../../../src/actors/subagent/child-toolset.ts';
import { leadTools } from '../../../../src/actors/subagents/toolsets/lead-toolset.ts';
import { createParentSubagentToolset } from '../../../../src/actors/subagents/toolsets/parent-toolset.ts';
import { THE_LEAD, type SpawnRequest } from '../../../../src/actors/contracts/service-types.ts';
import { defineTool, type SubagentConfig } from '../../../../src/index.ts';
import type { Script } from '../../../../src/testing/index.ts';
import { calls, never, resultsIn, say, simpleTool } from '../../../support/subagent-runs.ts';
import { instructionsOf, textTalk, type TalkOptions } from '../../../support/text-talk.ts';

/** Returns the number of answers in this run, because runs share scripts but not counts. */
const stepOf = ({ prompt }: Parameters<Script>[0]): number =>
  prompt.filter(({ role }) => role === 'assistant').length + 1;

const byStep =
  (...all: (ReturnType<typeof say> | Script)[]): Script =>
  (prompt) => {
    const step = all[Math.min(stepOf(prompt), all.length) - 1] as (typeof all)[number];
    return typeof step === 'function' ? step(prompt) : step;
  };

const asks = byStep(calls(['request_input', { question: 'Which?' }]), (prompt) =>
  say(`Heard ${JSON.stringify(resultsIn(prompt)[0]?.[2])}`),
);

function talk(options: TalkOptions = {}, config: Partial<SubagentConfig> = {}) {
  const it = textTalk(options);
  const configOf = (name: string): SubagentConfig => ({
    name,
    instructions: instructionsOf(name),
    context: 'none',
    ...config,
    tools: { ...createChildSubagentToolset(), ...config.tools },
  });
  const spawn = (name: string, more: Partial<SpawnRequest> = {}): string => {
    const receipt = it.session.subagents.service.spawn({
      config: configOf(name),
      task: { toolName: name, args: {}, description: `Do ${name}` },
      caller: THE_LEAD,
      ...more,
    });
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    return receipt.subagentId;
  };
  return { ...it, spawn, configOf };
}

const helper = (script: Script): TalkOptions => ({ subagents: { helper: { script } } });

describe('a subagent that the app or the lead model spawned', () => {
  test(
    "asks the lead agent during a pause, and accepts the app's answer",
    { tags: ['MW10'] },
    async () => {
      const { start, spawn, session, environment, said } = talk(helper(asks));
      await start();
      const id = spawn('helper');
      await environment.advance(1000);
      expect(said().at(-1)).toContain('SUBAGENT REQUEST');
      expect(said().at(-1)).toContain(`"subagent":"helper","subagentId":"${id}"`);
      expect(said().at(-1)).toContain('"question":"Which?"');
      const checked = session.subagents.service.check(id, THE_LEAD);
      const requestId = (checked.ok && checked.report.pendingRequest?.requestId) || '';
      const sent = session.subagents.send(id, { content: 'Red', inResponseTo: requestId });
      expect(sent).toMatchObject({ ok: true, resolvedPending: true });
      await environment.advance(1000);
      expect(session.subagents.get(id)).toMatchObject({
        state: 'completed',
        depth: 1,
        parentId: null,
      });
      expect(said().at(-1)).toContain(String.raw`\"response\":\"Red\"`);
    },
  );

  test('delivers its result if no caller is waiting for it', async () => {
    const limits = { stateRetentionMs: 60_000, sweepIntervalMs: 1000 };
    const { start, spawn, session, environment, said } = talk({
      ...helper(() => say('Found it')),
      limits,
    });
    await start();
    const told = spawn('helper');
    const waited = spawn('helper');
    expect(await session.subagents.service.await([waited], THE_LEAD)).toMatchObject({
      why: 'ended',
    });
    await environment.advance(30_000);
    const results = said().filter((text) => text.includes('Found it'));
    expect(results).toEqual([expect.stringContaining(`helper (${told})`)]);
    expect(session.subagents.service.list(THE_LEAD, { includeEnded: true })).toHaveLength(2);
    await environment.advance(90_000);
    expect(session.subagents.service.list(THE_LEAD, { includeEnded: true })).toEqual([]);
  });

  test('delivers a failure with its reason, but does not announce a cancellation', async () => {
    const { start, spawn, session, environment, said } = talk(
      helper(() => calls(['hang'])),
      { tools: { hang: simpleTool(never) }, timeout: 5000 },
    );
    await start();
    spawn('helper');
    const cancelled = spawn('helper');
    await environment.settle();
    expect(session.subagents.cancel(cancelled)).toBe(true);
    await environment.advance(20_000);
    expect(said()).toEqual([expect.stringContaining('The run used up its time')]);
    expect(session.subagents.get(cancelled)?.outcome?.error?.message).toContain('the user');
  });

  test('users row 26: appears with its descendants, and calls its hooks', async () => {
    const started: string[] = [];
    const { start, spawn, state, environment } = talk(
      {
        ...helper(() => calls(['hang'])),
        hooks: { onSubagentStart: ({ name, depth }) => started.push(`${name} ${depth}`) },
      },
      { tools: { hang: simpleTool(never) }, inactivityTimeoutMs: 1000 },
    );
    await start();
    const parent = spawn('helper');
    spawn('helper', { caller: { subagentId: parent }, callId: 'call_1' });
    await environment.advance(70_000);
    expect(started).toEqual(['helper 1', 'helper 2']);
    expect(state().subagents).toMatchObject([
      { id: parent, parentId: null, depth: 1, hung: true },
      // A call by a child does not count as a call by the lead agent.
      { parentId: parent, depth: 2, callId: null, hung: true },
    ]);
  });

  test('reaches the user with its question, even from a grandchild', async () => {
    const { start, spawn, session, environment, question } = talk(
      {
        subagents: {
          holder: { script: () => calls(['hang']) },
          helper: {
            script: byStep(calls(['ask_user', { question: 'Are you sure?' }]), say('Thanks')),
          },
        },
      },
      { interactive: true, tools: { hang: simpleTool(never) } },
    );
    await start();
    const parent = spawn('holder');
    const child = spawn('helper', { caller: { subagentId: parent } });
    await environment.advance(1000);
    expect(question()).toMatchObject({ subagentId: child, question: 'Are you sure?' });
    await session.answer(question()?.requestId ?? '', { text: 'Yes' });
    await environment.settle();
    expect(session.subagents.get(child)?.outcome).toMatchObject({ text: 'Thanks' });
    expect(session.subagents.get(parent)?.state).toBe('running');
  });
});

describe('the life of a subagent', { tags: ['RW10', 'HW4'] }, () => {
  test('continues across user turns until the session ends', async () => {
    const { start, spawn, type, session, close } = talk(
      helper(() => calls(['hang'])),
      { tools: { hang: simpleTool(never) } },
    );
    await start();
    const parent = spawn('helper');
    const child = spawn('helper', { caller: { subagentId: parent } });
    await type('hello');
    await type('something else');
    expect(session.subagents.get(parent)?.state).toBe('running');
    expect(session.subagents.get(child)?.state).toBe('running');
    await close();
    expect(session.subagents.get(parent)?.state).toBe('cancelled');
    expect(session.subagents.get(child)?.state).toBe('cancelled');
  });

  test('keeps two sessions of the same runtime separate', { tags: ['RW6'] }, async () => {
    const one = talk(
      helper(() => calls(['hang'])),
      { tools: { hang: simpleTool(never) } },
    );
    const two = talk(helper(() => say('x')));
    await one.start();
    await two.start();
    const id = one.spawn('helper');
    expect(two.session.subagents.service.check(id, THE_LEAD)).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
    expect(two.session.subagents.cancel(id)).toBe(false);
  });
});

describe('P8: the grants of a lead agent', () => {
  const lookUp = defineTool({
    name: 'look_up',
    description: 'Looks something up',
    parameters: z.object({ what: z.string() }),
    execute: ({ what }, { sessionId }) => `${what} in ${sessionId}`,
  });

  test("contain the lead agent's inline tools, and nothing else", async () => {
    const { start, spawn, session, environment } = talk({
      ...helper(
        byStep(calls(['look_up', { what: 'tea' }]), ({ results, toolNames }) =>
          say(JSON.stringify({ results, toolNames })),
        ),
      ),
      tools: [lookUp],
    });
    await start();
    const id = spawn('helper', { grant: { tools: ['look_up'] } });
    await environment.settle();
    const { outcome } = session.subagents.get(id) ?? {};
    expect(JSON.parse(outcome?.text ?? '')).toMatchObject({
      results: [`tea in ${session.id}`],
      toolNames: expect.arrayContaining(['look_up']),
    });
    expect(() => spawn('helper', { grant: { tools: ['rm'] } })).toThrow('"rm"');
  });

  test("let a subagent call the lead agent's tools, and name the subagent as the caller", async () => {
    const { start, spawn, session, environment } = talk(
      {
        subagents: {
          holder: { script: () => calls(['hang']) },
          helper: {
            script: byStep(calls(['list_subagents']), ({ results }) =>
              say(JSON.stringify(results[0])),
            ),
          },
        },
        tools: leadTools(createParentSubagentToolset()),
      },
      { tools: { hang: simpleTool(never) } },
    );
    await start();
    const other = spawn('holder');
    const id = spawn('helper', { grant: {} });
    await environment.settle();
    const { text } = session.subagents.get(id)?.outcome ?? {};
    expect(text).toContain('"subagents":');
    expect(text).not.toContain(other);
  });
});

test("run background calls of one kind in sequence and share their history with lifetime 'session'", async () => {
  let disposed = 0;
  const { start, type, state, environment, close } = textTalk({
    subagents: {
      work: {
        script: ({ prompt }) => say(`${prompt.length} messages`),
        config: { lifetime: 'session', context: 'none', dispose: () => void (disposed += 1) },
      },
    },
  });
  await start();
  await type('use work {"n":1} and work {"n":2}');
  await environment.advance(60_000);
  expect(state().subagents.map(({ outcome }) => outcome?.text)).toEqual([
    '2 messages',
    '4 messages',
  ]);
  expect(disposed).toBe(0);
  await close();
  expect(disposed).toBe(1);
});
