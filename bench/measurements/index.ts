// All measurements, by name.

import type { Measurement } from '../lib/measurement.ts';
import { answerLatency } from './answer-latency.ts';
import { fanOut } from './fan-out.ts';
import { parkedHeap } from './parked-heap.ts';
import { runCpu } from './run-cpu.ts';

export const measurements: Readonly<Record<string, Measurement>> = {
  run_cpu: runCpu,
  parked_heap: parkedHeap,
  answer_latency: answerLatency,
  fan_out: fanOut,
};
