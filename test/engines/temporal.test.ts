// temporalJobs on Temporal: its workflow in Temporal's bundler and sandbox in any case, and the conformance suite on a
// live server if Java and Maven are installed.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { exampleOnAnEngine } from './support/example-on-an-engine.ts';
import { helixOnAnEngine } from './support/helix-on-an-engine.ts';
import { jobsOnAnEngine } from './support/jobs-on-an-engine.ts';
import { privacyOnAnEngine } from './support/privacy-on-an-engine.ts';
import { runsOnAnEngine } from './support/runs-on-an-engine.ts';
import { bundle, policiesIn, replay } from './support/temporal-client.js';
import { missingServer, openTemporal, temporalAbilities } from './support/temporal.ts';

const histories = fileURLToPath(new URL('histories', import.meta.url));

describe('the workflow in the sandbox, without a server', () => {
  test('bundles without a warning and contains only the workflow', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'bundle-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const { warnings, code } = await bundle(join(directory, 'workflows.js'));
    expect(warnings).toEqual([]);
    expect(code).toContain('offstageDoJob');
    expect(code).toContain('offstageTurn');
    expect(code).toContain('offstageStep');
    for (const other of ['zod', 'xstate', 'node_modules/ai/', 'node:'])
      expect(code.includes(`${other}/`)).toBe(false);
  });

  test.each([
    'done',
    'once-lost',
    'cancelled',
    'done-by-the-second-worker',
    'steps-beside',
    'steps-answered',
    'steps-stopped',
    'steps-guided',
    'steps-guide-stopped',
    'steps-told',
  ])('TEMPORAL-WORKFLOW-2: replays the history `%s` that a live server recorded', async (name) => {
    const text = await readFile(join(histories, `${name}.json`), 'utf8');
    await replay(JSON.parse(text));
  });

  test('refuses a history that comes from another workflow', async () => {
    const [name = ''] = await readdir(histories);
    const text = await readFile(join(histories, name), 'utf8');
    const other = fileURLToPath(new URL('support/other-workflows.js', import.meta.url));
    await expect(replay(JSON.parse(text), other)).rejects.toThrow(/determinism/i);
  });
});

const missing = missingServer();
if (missing === null) {
  jobsOnAnEngine('temporal', openTemporal, temporalAbilities);
  runsOnAnEngine('temporal', openTemporal, temporalAbilities);
  exampleOnAnEngine('temporal', openTemporal);
  helixOnAnEngine(
    'temporal',
    openTemporal,
    ({ client }) =>
      (runId) =>
        policiesIn(client, `run/${runId}`),
  );
  if (temporalAbilities.deletes) privacyOnAnEngine('temporal', openTemporal);
  else
    console.warn('What a Temporal server keeps is not looked at: TEMPORAL_DEV_SERVER names none.');
} else console.warn(`The tests on a live Temporal server are left out: ${missing}.`);
