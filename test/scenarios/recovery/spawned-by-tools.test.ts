// Subagents that a model spawned with a tool. No configuration has their name, so after a crash the tool creates each
// of them again.

import { describe, expect, test } from 'vitest';
import { leadTools } from '../../../src/entries/subagents.ts';
import { createParentSubagentToolset } from '../../../src/index.ts';
import { companions, rockbotToolset } from '../../../src/compat/index.ts';
import { readTask, type Script } from '../../../src/testing/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';
import { instructionsOf, leadScript, type TalkOptions } from '../../support/text-talk.ts';

const worker = { instructions: instructionsOf('worker') };

function spawning(
  tools: Readonly<Record<string, object>>,
  script: Script,
  more: Partial<TalkOptions> = {},
): TalkOptions {
  return {
    ...more,
    subagents: { worker: { script } },
    tools: leadTools(tools),
  };
}

/** A tool that hangs in its first process and works in later ones. */
function once() {
  let count = 0;
  const look = simpleTool(
    () => {
      count += 1;
      return count === 1 ? never() : { seen: 'a map' };
    },
    { idempotent: true },
  ) as object;
  return look;
}

async function killedAndBegunAgain(of: World, options: () => TalkOptions, ...words: string[]) {
  const before = textLife(of, options());
  await before.start();
  for (const text of words) await before.type(text);
  before.kill();
  const after = textLife(of, options());
  await after.start();
  return after;
}

describe('spawn_subagent', () => {
  test('P1, P8: resumes its subagents with the kind, instructions, tools and schema of the call', async () => {
    const systems: string[] = [];
    const told: unknown[] = [];
    const look = once();
    const script = turns(
      calls(['look', {}, 'l1']),
      calls(['complete_task', { result: { found: 1 } }]),
    );
    const options = (): TalkOptions =>
      spawning(
        {
          look,
          other: simpleTool(() => 'other') as object,
          ...createParentSubagentToolset({ adapters: { scout: worker } }),
        },
        (prompt) => {
          systems.push(prompt.system);
          told.push(readTask(prompt.prompt)?.arguments['instructions']);
          expect(prompt.toolNames).toContain('look');
          expect(prompt.toolNames).not.toContain('other');
          return script(prompt);
        },
      );
    const after = await killedAndBegunAgain(
      world(),
      options,
      `use spawn_subagent ${JSON.stringify({
        task: 'Find it',
        adapterName: 'scout',
        contextMode: 'fresh',
        systemPrompt: 'Be quick.',
        tools: ['look'],
        responseSchema: { type: 'object', properties: { found: { type: 'number' } } },
      })}`,
    );
    expect(after.state().subagents).toMatchObject([
      { state: 'completed', outcome: { output: { found: 1 } } },
    ]);
    expect(systems.length).toBeGreaterThan(1);
    expect(new Set(systems).size).toBe(1);
    expect(new Set(told)).toEqual(new Set(['Be quick.']));
    expect(systems[0]).not.toContain('Be quick.');
    expect(after.said().join('\n')).toContain('found');
    expect(after.errors).toEqual([]);
    await after.close();
  });

  test('ends a subagent as lost if its kind is unknown, and names the kind', async () => {
    let adapters: object = { scout: worker };
    const after = await killedAndBegunAgain(
      world(),
      () => {
        const options = spawning(
          { look: once(), ...createParentSubagentToolset({ adapters: adapters as never }) },
          turns(calls(['look'])),
        );
        adapters = {};
        return options;
      },
      `use spawn_subagent ${JSON.stringify({ task: 'Find it', adapterName: 'scout' })}`,
    );
    const [view] = after.state().subagents;
    expect(view?.outcome).toMatchObject({ status: 'lost', error: { code: 'NOT_RECOVERABLE' } });
    expect(view?.outcome?.error?.message).toContain('scout');
    await after.close();
  });

  test('restores each subagent with the tool that spawned it', async () => {
    const look = once();
    const after = await killedAndBegunAgain(
      world(),
      () => {
        const { spawn_subagent: ours } = createParentSubagentToolset({ agent: worker });
        const { spawn_subagent: theirs } = rockbotToolset({
          clock: { now: () => 0 },
          agent: { instructions: 'You are nobody.' },
        });
        return spawning(
          { look, theirs, ours },
          turns(calls(['look']), calls(['complete_task', { result: 'Done.' }])),
        );
      },
      'use ours {"task":"Find it","contextMode":"fresh"}',
    );
    expect(after.state().subagents).toMatchObject([{ outcome: { output: 'Done.' } }]);
    await after.close();
  });

  test('keeps the tools of subagents that a previous lead agent spawned', async () => {
    const look = once();
    const after = await killedAndBegunAgain(
      world(),
      () =>
        spawning(
          { look, ...createParentSubagentToolset({ agent: worker }) },
          turns(calls(['look']), calls(['complete_task', { result: 'Done.' }])),
          { others: [{ name: 'other' }] },
        ),
      'use spawn_subagent {"task":"Find it","contextMode":"fresh","tools":["look"]}',
      'use transfer_to_agent {"agent_name":"other"}',
    );
    expect(after.state()).toMatchObject({
      agent: 'other',
      subagents: [{ outcome: { output: 'Done.' } }],
    });
    await after.close();
  });
});

describe('P1, P6: a spawned subagent after a kill at each entry', async () => {
  const lead: Script = (prompt) => {
    const { results, user } = prompt;
    const [result] = results as { subagentId?: string; status?: string }[];
    if (user.startsWith('find') && prompt.prompt.at(-1)?.role === 'user')
      return calls(['spawn_subagent', { task: 'Find it', contextMode: 'fresh' }]);
    if (result?.status === 'spawning')
      return calls(['await_subagent', { subagentId: result.subagentId }]);
    return leadScript(prompt);
  };
  const live = async (of: World) => {
    const keys = new Set<string>();
    const look = simpleTool(({ idempotencyKey = '' }) => keys.add(idempotencyKey).size, {
      idempotent: true,
    }) as object;
    for (;;) {
      const talk = textLife(
        of,
        spawning(
          { look, ...createParentSubagentToolset({ agent: worker }) },
          turns(
            calls(['report_progress', { update: 'Half.' }], ['look', {}, 'l1']),
            calls(['complete_task', { result: 'A map.' }]),
          ),
          { lead },
        ),
      );
      void talk.start().catch(() => {});
      await of.environment.settle();
      const words = talk.state().transcript.filter(({ role }) => role === 'user');
      if (talk.isAlive() && words.length === 0) void talk.session.sendText('find').catch(() => {});
      await of.environment.advance(2000);
      if (!talk.isAlive()) continue;
      const { subagents } = talk.state();
      const seen = {
        outputs: subagents.map(({ outcome }) => outcome?.output),
        looked: keys.size,
        said: talk.said().filter((text) => text.includes('A map.')).length > 0,
        errors: talk.errors,
      };
      await talk.close();
      return seen;
    }
  };
  const whole = { outputs: ['A map.'], looked: 1, said: true, errors: [] };
  const of = world();
  const first = await live(of);
  const instants = of.entries.filter(({ event }) => event.type !== 'session.close');

  test('completes the story and produces results if nothing is killed', () => {
    expect(first).toEqual(whole);
    expect(instants.length).toBeGreaterThan(15);
  });

  test.each(instants.slice(0, -2).map(({ unit, event }, index) => [index + 1, unit, event.type]))(
    'ends once after a kill at entry %i: %s, %s',
    async (entry) => {
      const killed = world();
      killed.killAt(entry, 'after');
      expect(await live(killed)).toEqual(whole);
    },
  );
});

describe("RockBot's spawn_subagent", () => {
  test('resumes its subagents with their context and their tools', async () => {
    const look = once();
    const systems = new Set<string>();
    const told = new Set<unknown>();
    const script = turns(
      calls(['look'], ['ReportProgress', { message: 'Half.' }]),
      say('Found a map.'),
    );
    const after = await killedAndBegunAgain(
      world(),
      () =>
        spawning(
          {
            ...rockbotToolset({
              clock: { now: () => 0 },
              agent: { ...worker, tools: { look } },
            }),
          },
          (prompt) => {
            systems.add(prompt.system);
            told.add(readTask(prompt.prompt)?.arguments['context']);
            return script(prompt);
          },
        ),
      'use spawn_subagent {"description":"Find it","context":"It is old."}',
    );
    expect(after.state().subagents).toMatchObject([{ outcome: { output: 'Found a map.' } }]);
    expect(systems.size).toBe(1);
    expect(told).toEqual(new Set(['It is old.']));
    expect([...systems][0]).not.toContain('It is old.');
    await after.close();
  });
});

describe('companions', () => {
  const options = (look: object) => (): TalkOptions =>
    spawning(
      { ...companions([{ agent: { name: 'scout', ...worker, tools: { look } } }]) },
      (prompt) => {
        const told = prompt.prompt.filter(({ role }) => role === 'user').length;
        return /look/.test(prompt.user) && prompt.prompt.at(-1)?.role === 'user'
          ? calls(['look'])
          : say(`Told ${told} times.`);
      },
    );

  test('resume under their names with their history', { tags: ['H18'] }, async () => {
    const of = world();
    const live = options(once());
    const after = await killedAndBegunAgain(
      of,
      live,
      'use companion__spawnAgent {"agentType":"scout","message":"look"}',
    );
    expect(after.state().subagents).toMatchObject([{ name: 'scout-1', state: 'completed' }]);
    await after.type('use companion__listChildren');
    expect(after.said().at(-1)).toContain('scout-1');
    after.kill();
    const third = textLife(of, live());
    await third.start();
    await third.type('use companion__sendMessage {"agentId":"scout-1","message":"More"}');
    await third.type('use companion__spawnAgent {"agentType":"scout","message":"Hi"}');
    expect(third.state().subagents.map(({ name, outcome }) => [name, outcome?.output])).toEqual([
      ['scout-1', 'Told 1 times.'],
      ['scout-1', 'Told 2 times.'],
      ['scout-2', 'Told 1 times.'],
    ]);
    expect(third.errors).toEqual([]);
    await third.close();
  });

  test('remain dismissed after a restart', async () => {
    const of = world();
    const after = await killedAndBegunAgain(
      of,
      options(once()),
      'use companion__spawnAgent {"agentType":"scout","message":"look"}',
      'use companion__terminateChild {"agentId":"scout-1"}',
    );
    await after.type('use companion__listChildren');
    expect(after.said().at(-1)).toBe('Tools said: [{"children":[]}]');
    await after.close();
  });
});

test('marks every call of the toolset as repeatable unless the call may start a new run', () => {
  const tools = leadTools({
    ...createParentSubagentToolset(),
    ...companions([{ agent: { name: 'scout', ...worker } }]),
  });
  expect(tools.filter(({ idempotent }) => idempotent !== true).map(({ name }) => name)).toEqual([
    'companion__sendMessage',
  ]);
});
