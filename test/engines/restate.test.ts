// restateJobs and restateRuns on a real Restate server: the conformance suites, with programs, workers and servers that
// are killed.

import { describe, expect, onTestFinished, test } from 'vitest';
import { gate } from '../suites/jobs/bench.ts';
import { exampleOnAnEngine } from './support/example-on-an-engine.ts';
import { helixOnAnEngine } from './support/helix-on-an-engine.ts';
import { jobsOnAnEngine } from './support/jobs-on-an-engine.ts';
import { openRestate } from './support/restate.ts';
import { privacyOnAnEngine } from './support/privacy-on-an-engine.ts';
import { runsOnAnEngine } from './support/runs-on-an-engine.ts';

jobsOnAnEngine('restate', openRestate);
describe('restate: jobs', () => {
  test('RESTATE-JOBS-2: keeps the result of a non-repeatable job when the server dies during the job', async () => {
    const engine = await openRestate('bridge');
    onTestFinished(() => engine.close());
    const [begun, ends] = [gate(), gate()];
    let times = 0;
    engine.bridge.handler = {
      async do() {
        times += 1;
        begun.open();
        await ends.passed;
        return { done: `time ${times}` };
      },
    };
    const { signal } = new AbortController();
    const job = { key: 'ses/sub:1', name: 'charge', once: true, body: '{}' };
    const asked = engine.jobs().run(job, { signal });
    const answered = asked.catch((error: unknown) => error);
    await begun.passed;
    const back = engine.killEngine();
    ends.open();
    await back;
    expect(await answered).toMatchObject({ code: 'JOBS_UNREACHABLE' });
    expect(await engine.jobs().run(job, { signal })).toEqual({ done: 'time 1' });
    expect(times).toBe(1);
  });
});
runsOnAnEngine('restate', openRestate);
exampleOnAnEngine('restate', openRestate);
privacyOnAnEngine('restate', openRestate);
helixOnAnEngine('restate', openRestate);
