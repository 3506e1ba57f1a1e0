// The model spawns two subagents in one response, and the process dies at one of the entries.

import { describe, expect, test } from 'vitest';
import { leadTools } from '../../../src/entries/subagents.ts';
import { createParentSubagentToolset } from '../../../src/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import { instantsOf, textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { instructionsOf, leadScript, type TalkOptions } from '../../support/text-talk.ts';

/** A lead model that repeats the interrupted calls. */
const lead: Script = (prompt) => {
  const made = JSON.stringify(prompt.prompt.filter(({ role }) => role === 'assistant'));
  if (!prompt.user.includes('You were cut off')) return leadScript(prompt);
  const missing = ['first', 'second'].filter((task) => !made.includes(task));
  if (missing.length === 0) return say('Both are begun.');
  return calls(
    ...missing.map((task): [string, object] => ['spawn_subagent', { task, contextMode: 'fresh' }]),
  );
};

function story(): TalkOptions {
  return {
    lead,
    subagents: { worker: { script: turns(calls(['complete_task', { result: 'Done.' }])) } },
    tools: leadTools(
      createParentSubagentToolset({ agent: { instructions: instructionsOf('worker') } }),
    ),
  };
}

const spawn = (task: string): string =>
  `spawn_subagent ${JSON.stringify({ task, contextMode: 'fresh' })}`;
const words = `use ${spawn('first')} and ${spawn('second')}`;

async function live(of: World) {
  let lives = 0;
  for (;;) {
    lives += 1;
    const talk = textLife(of, story());
    void talk.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 20 && talk.isAlive(); round += 1) {
      const heard = talk.state().transcript.some(({ text }) => text === words);
      if (!heard) void talk.session.sendText(words).catch(() => {});
      await of.environment.settle();
      await of.environment.advance(1000);
    }
    if (talk.isAlive()) return { talk, lives };
  }
}

describe('a process that dies at each entry', async () => {
  const of = world();
  const { talk } = await live(of);
  const { length } = of.entries;
  const tasks = (of: World) =>
    of.entries.flatMap(({ event }) =>
      event.type === 'subagent.spawned'
        ? [(event as unknown as { task: { description: string } }).task.description]
        : [],
    );
  test('completes the story and starts both subagents if nothing is killed', () => {
    expect(tasks(of).toSorted()).toEqual(['first', 'second']);
  });
  await talk.close();
  const instants = instantsOf(length);
  test.each(instants)('starts both after a kill %s entry %i', async (when, entry) => {
    const of = world();
    of.killAt(entry, when);
    const { talk, lives } = await live(of);
    expect(lives).toBe(2);
    // P6, P9: each subagent was spawned once.
    expect(tasks(of).toSorted()).toEqual(['first', 'second']);
    expect(talk.errors).toEqual([]);
    await talk.close();
  });
});
