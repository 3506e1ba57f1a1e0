// restateJobs on a real Restate server: the conformance suite, and programs, workers and servers that are killed.

import { jobsOnAnEngine } from './support/jobs-on-an-engine.ts';
import { openRestate } from './support/restate.ts';

jobsOnAnEngine('restate', openRestate);
