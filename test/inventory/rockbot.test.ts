// Claims about RockBot in `docs/coming-from.md` that no other test covers.

import { expect, test } from 'vitest';
import { rockbotToolset, topic, type SubagentResultMessage } from '../../src/compat/index.ts';
import { leadTools } from '../../src/entries/subagents.ts';
import { calls, never, say, simpleTool } from '../support/subagent-runs.ts';
import { instructionsOf, textTalk } from '../support/text-talk.ts';

test(
  'returns exactly one result, however a subagent ends',
  { tags: ['R17', 'R24', 'RW2'] },
  async () => {
    const hanging = {
      script: () => calls(['hang']),
      config: { timeout: 1000, tools: { hang: simpleTool(never) } },
    };
    const { start, type, session, environment } = textTalk({
      subagents: {
        good: { script: () => say('Here it is.') },
        unmade: {
          script: () => say('never'),
          config: {
            createInstance() {
              throw new Error('no place to work');
            },
          },
        },
        slow: hanging,
        unwanted: hanging,
      },
    });
    const results: SubagentResultMessage[] = [];
    topic(session, 'subagent.result').subscribe((result) => results.push(result));
    await start();
    await type('use good and unmade and slow and unwanted');
    const unwanted = session.subagents.list().find(({ toolName }) => toolName === 'unwanted');
    session.subagents.cancel(unwanted?.id ?? '', 'not any more');
    await environment.advance(60_000);
    const byTool = new Map(results.map((result) => [nameOf(result.taskId), result]));
    function nameOf(id: string): string {
      return session.subagents.get(id)?.toolName ?? '';
    }
    expect(results).toHaveLength(4);
    expect(byTool.get('good')).toMatchObject({
      isSuccess: true,
      output: 'Here it is.',
      error: null,
    });
    expect(byTool.get('unmade')).toMatchObject({
      isSuccess: false,
      status: 'failed',
      error: expect.stringContaining('no place to work'),
    });
    expect(byTool.get('slow')).toMatchObject({ isSuccess: false, status: 'timed_out' });
    expect(byTool.get('unwanted')).toMatchObject({ isSuccess: false, status: 'cancelled' });
  },
);

test('gives a subagent its role, context and task but no history', { tags: ['R21'] }, async () => {
  const prompts: string[] = [];
  const { start, type } = textTalk({
    tools: leadTools(rockbotToolset({ agent: { instructions: instructionsOf('researcher') } })),
    subagents: {
      researcher: {
        script({ prompt }) {
          prompts.push(JSON.stringify(prompt));
          return say('Nothing.');
        },
      },
    },
  });
  await start();
  await type('a secret of the user');
  await type('use spawn_subagent {"description":"Research X","context":"On Mars"}');
  expect(prompts).toHaveLength(1);
  expect(prompts[0]).toContain(String.raw`\"context\":\"On Mars\"`);
  expect(prompts[0]).toContain('Research X');
  expect(prompts[0]).not.toContain('secret');
});

test(
  'delivers the result of a tool-spawned subagent in the common format',
  { tags: ['R32'] },
  async () => {
    const { start, type, said } = textTalk({
      tools: leadTools(rockbotToolset({ agent: { instructions: instructionsOf('researcher') } })),
      subagents: { researcher: { script: () => say('Mars is red.') } },
      promptStyle: 'turn',
    });
    await start();
    await type('use spawn_subagent {"description":"Research Mars"}');
    expect(said().at(-1)).toMatch(
      /^Told: \[Subagent task sub_\w+ completed\]: "Mars is red\." \[data \S+\]$/,
    );
  },
);
