// `runSubagent` as the package exports it: without a `runtime` option, it uses the process's runtime.

import { expect, test } from 'vitest';
import { createRuntime } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';

const config = { name: 'researcher', instructions: 'You look things up.' };

test('needs only a model to run', async () => {
  const model = scriptedModel([{ text: 'Found it' }]);
  const outcome = await runSubagent(config, 'Look it up', { model }).result;
  expect(outcome).toMatchObject({ status: 'completed', text: 'Found it' });
});

test('uses the given runtime', async () => {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment });
  const model = scriptedModel([{ text: 'Found it' }]);
  const { result } = runSubagent(config, 'Look it up', { model, runtime });
  await environment.settle();
  expect(await result).toMatchObject({ status: 'completed' });
});
