// The packing of the tests: the same in every process.

import { packedJobs, packedRuns, type Jobs, type RunEngine } from '../../../src/entries/jobs.ts';
import { testCodec } from '../../support/job-packing.ts';

export const PACKING = { codec: testCodec('the key of the tests') };

export const jobsPackedIf = (isPacked: boolean, jobs: Jobs): Jobs =>
  isPacked ? packedJobs(jobs, PACKING) : jobs;

export const runsPackedIf = (isPacked: boolean, runs: RunEngine): RunEngine =>
  isPacked ? packedRuns(runs, PACKING) : runs;
