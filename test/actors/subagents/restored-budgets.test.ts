// TREE-SNAPSHOT-2: a crash does not increase any limit. The usage of deleted subagents is charged to the agent that
// they worked for.

import { expect, test } from 'vitest';
import { SubagentTree } from '../../../src/actors/subagents/subagent-tree.ts';
import { createRuntime } from '../../../src/index.ts';
import { createSubagentService } from '../../../src/entries/subagents.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { spawnedOf } from '../../support/lone-subagent.ts';
import { say } from '../../support/subagent-runs.ts';

test.each([
  [1, 'completed'],
  [3, 'failed'],
])(
  'TREE-SNAPSHOT-2: restores a subagent whose deleted children used %i of its 3 steps, and ends as %s',
  async (steps, status) => {
    const environment = simulatedEnvironment();
    const runtime = createRuntime({ environment });
    const model = scriptedModel({ scripts: [], otherwise: () => say('Done.') });
    const boss = { name: 'boss', instructions: 'You lead.', budget: { steps: 3 } };
    const service = createSubagentService({ runtime, model, configs: { boss } });
    if (!(service instanceof SubagentTree)) throw new Error('Expected a tree');
    const event = spawnedOf({
      name: 'boss',
      task: { toolName: 'boss', description: 'Leads', args: {} },
      worksFor: 'program',
      limits: { maxSteps: 5, timeoutMs: 60_000, maxInputRetries: 3 },
    });
    const at = environment.clock.now();
    const entry = {
      scope: service.id,
      unit: 'sub_1',
      seq: 1,
      at,
      actor: 'subagent',
      definitionVersion: 3,
      event,
    };
    const restored = service.restore(
      new Map([['sub_1', { bornAt: at, birth: event, rest: null, entries: [entry] }]]),
      [],
      { gone: [{ parentId: 'sub_1', agents: 1, tokens: 0, steps }], histories: {} },
    );
    expect(restored.lost).toEqual([]);
    service.resume(restored);
    await environment.advance(10_000);
    const found = service.check('sub_1', { sessionId: service.id, subagentId: null } as never);
    expect(found).toMatchObject({ ok: true, report: { outcome: { status } } });
  },
);
