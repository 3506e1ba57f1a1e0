// Claims about Bodhi in `docs/coming-from.md` that no other test covers.

import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../src/testing/index.ts';
import { say } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

describe('a background call', () => {
  test(
    'acknowledges, records, delegates, runs and delivers in this order',
    { tags: ['B3', 'B11', 'B12'] },
    async () => {
      const outputs: unknown[] = [];
      const systems: string[] = [];
      const { start, type, events, session } = textTalk({
        subagents: { report: { script: () => say('It is done.') } },
        onModelCall: (_, { system }) => systems.push(system),
        hooks: { onToolResult: ({ output, status }) => outputs.push({ output, status }) },
      });
      const story: string[] = [];
      session.parts.subscribe((part) => {
        if (part.type === 'text.done')
          story.push(part.deliveryId === null ? 'says so' : 'tells it');
      });
      session.events.subscribe((event) => {
        const { type: kind } = event;
        if (kind === 'tool.called' || kind === 'tool.answered') story.push(kind);
        if (kind === 'subagent.changed' && ['spawning', 'completed'].includes(event.subagent.state))
          story.push(event.subagent.state);
      });
      await start();
      await type('use report');
      expect(story.filter((line, index) => line !== story[index - 1])).toEqual([
        'tool.called',
        'spawning',
        'tool.answered',
        'completed',
        'says so',
        'tells it',
      ]);
      expect(outputs).toEqual([
        {
          status: 'pending',
          // The instructions explain the status once, so that the results do not need to.
          output: { status: 'still_in_progress', message: 'On it.' },
        },
      ]);
      expect(systems[0]).toMatch(/`still_in_progress` is NOT complete.*do not guess it/s);
      expect(events.filter(({ type: kind }) => kind === 'tool.answered')).toHaveLength(1);
    },
  );

  test(
    "finds its subagent by the tool's name, and runs the subagent on its own model",
    { tags: ['B4', 'B25'] },
    async () => {
      const { start, type, state, said } = textTalk({
        subagents: {
          report: {
            script: () => say('by the model of the session'),
            config: {
              name: 'report_generator',
              model: scriptedModel([{ text: 'by its own model' }]),
            },
          },
        },
      });
      await start();
      await type('use report');
      expect(state().subagents[0]).toMatchObject({ name: 'report_generator', toolName: 'report' });
      expect(said().at(-1)).toContain('"result":"by its own model"');
    },
  );
});
