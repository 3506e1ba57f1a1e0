// The packing that the tests use, the same in every process.

import { packedEngine, type Jobs, type RunEngine } from '../../../src/entries/jobs.ts';
import { testCodec } from '../../support/job-packing.ts';

export const PACKING = { codec: testCodec('the key of the tests') };

export const jobsPackedIf = (isPacked: boolean, jobs: Jobs): Jobs =>
  isPacked ? packedEngine(jobs, PACKING) : jobs;

export const runsPackedIf = (isPacked: boolean, runs: RunEngine): RunEngine =>
  isPacked ? packedEngine(runs, PACKING) : runs;
