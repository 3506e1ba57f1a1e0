// The Temporal example from "Sub-Agent Execution" (Helix Agents) as a runnable program: sub-agents are child workflows
// that continue when their parent closes, the results come in the order of the calls, and a failure is `{ error }`.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { createRuntime, type SubagentConfig } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { CountedCalls } from '../../suites/counting-bench.ts';
import { parent } from './helix.ts';
import type { LiveEngine, WorkersDo } from './live-engine.ts';
import { moment } from './processes.ts';

/** Returns the close policy of each child workflow that the engine has started for a run. */
type PoliciesOf = (runId: string) => Promise<readonly string[]>;

export function helixOnAnEngine<Live extends LiveEngine>(
  name: string,
  open: (handler: WorkersDo) => Promise<Live>,
  policiesOf?: (live: Live) => PoliciesOf,
): void {
  describe(`${name}: the example of the Helix document`, () => {
    let engine: Live | undefined;
    beforeAll(async () => {
      engine = await open('helix');
    });
    afterAll(() => engine?.close());

    /** Counts the model calls that have started, and can make them wait. */
    const world = () => {
      const live = engine as Live;
      const calls = new CountedCalls();
      live.bridge.handler = {
        async do({ key }) {
          await calls.tell(key);
          return { done: '' };
        },
      };
      const start = (id: string, config: SubagentConfig = parent) =>
        runSubagent(config, 'Summarize both, and analyze the sales.', {
          runtime: createRuntime({ environment: nodeEnvironment() }),
          engine: live.runs(),
          id,
        });
      return { live, calls, start };
    };
    const until = async (isSo: () => boolean): Promise<void> => {
      while (!isSo()) await moment();
    };

    test(
      'returns results in call order, and a failure as { error }',
      { tags: ['H7'] },
      async () => {
        const { live, calls, start } = world();
        const release = calls.hold('summarizer-one');
        const run = start('helix-1');
        await until(() => calls.told.includes('summarizer-two') && calls.told.includes('analyzer'));
        release();
        const { status, text } = await run.result;
        expect(status).toBe('completed');
        // The parent's model repeats what it has read.
        expect(JSON.parse(text)).toEqual([
          { summary: 'about one', keyPoints: ['one'] },
          { summary: 'about two', keyPoints: ['two'] },
          expect.objectContaining({ error: expect.stringContaining('Max steps exceeded') }),
        ]);
        // Each sub-agent is a separate run and starts once.
        expect(calls.told.toSorted()).toEqual([
          'analyzer',
          'parent',
          'parent',
          'summarizer-one',
          'summarizer-two',
        ]);
        if (policiesOf)
          expect(await policiesOf(live)('helix-1')).toEqual(['ABANDON', 'ABANDON', 'ABANDON']);
      },
    );

    test(
      'continues a sub-agent whose parent is closed, and finds the sub-agent by its id',
      { tags: ['H7'] },
      async () => {
        const { live, calls, start } = world();
        const begun = ['summarizer-one', 'summarizer-two', 'analyzer'];
        // None of them ends while the parent is closing, because Temporal's test server hangs when a cancellation
        // coincides with the end of an activity.
        const releases = begun.map((name) => calls.hold(name));
        const run = start('helix-2');
        await until(() => begun.every((name) => calls.told.includes(name)));
        const { signal } = new AbortController();
        let children: readonly string[] = [];
        while (children.length === 0) {
          children = (await live.runs().view('helix-2', 0, signal)).children ?? [];
          await moment();
        }
        run.cancel('the user has left');
        expect((await run.result).status).toBe('cancelled');
        for (const release of releases) release();
        const outcomes = await Promise.all(
          children.map((id) => start(id, { ...parent, name: 'summarizer', tools: {} }).result),
        );
        expect(outcomes.map(({ output }) => output)).toContainEqual({
          summary: 'about one',
          keyPoints: ['one'],
        });
      },
    );
  });
}
