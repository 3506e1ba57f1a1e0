// restateJobs and restateRuns on a real Restate server: the conformance suites, and programs, workers and servers that are
// killed.

import { exampleOnAnEngine } from './support/example-on-an-engine.ts';
import { helixOnAnEngine } from './support/helix-on-an-engine.ts';
import { jobsOnAnEngine } from './support/jobs-on-an-engine.ts';
import { openRestate } from './support/restate.ts';
import { privacyOnAnEngine } from './support/privacy-on-an-engine.ts';
import { runsOnAnEngine } from './support/runs-on-an-engine.ts';

jobsOnAnEngine('restate', openRestate);
runsOnAnEngine('restate', openRestate);
exampleOnAnEngine('restate', openRestate);
privacyOnAnEngine('restate', openRestate);
helixOnAnEngine('restate', openRestate);
