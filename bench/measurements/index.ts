// All measurements, by name.

import type { Measurement } from '../lib/measurement.ts';
import { runCpu } from './run-cpu.ts';

export const measurements: Readonly<Record<string, Measurement>> = {
  run_cpu: runCpu,
};
