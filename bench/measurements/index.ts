// All measurements, by name.

import type { Measurement } from '../lib/measurement.ts';
import { answerLatency } from './answer-latency.ts';
import { bargeIn } from './barge-in.ts';
import { clients } from './clients.ts';
import { fanOut, fanOutChildren } from './fan-out.ts';
import {
  frameLateness,
  frameLatenessPaced,
  frameLatenessPacedSmall,
  frameLatenessSmall,
} from './frame-lateness.ts';
import { desk } from './desk.ts';
import { hibernation } from './hibernation.ts';
import { inspected } from './inspected.ts';
import { inspectorPage } from './inspector-page.ts';
import { journalFull, journalNormal } from './journal.ts';
import { modelInputOfChat } from './model-input.ts';
import { parkedHeap } from './parked-heap.ts';
import { recovery } from './recovery.ts';
import { runCpu } from './run-cpu.ts';
import { runsOnSqliteFull, runsOnSqliteNormal } from './runs-on-journal.ts';
import { timeTravel } from './time-travel.ts';
import { voice, voiceSmall } from './voice.ts';

export const measurements: Readonly<Record<string, Measurement>> = {
  run_cpu: runCpu,
  parked_heap: parkedHeap,
  answer_latency: answerLatency,
  fan_out: fanOut,
  fan_out_children: fanOutChildren,
  frame_lateness: frameLateness,
  frame_lateness_paced: frameLatenessPaced,
  frame_lateness_small_young: frameLatenessSmall,
  frame_lateness_paced_small_young: frameLatenessPacedSmall,
  barge_in: bargeIn,
  journal_full: journalFull,
  journal_normal: journalNormal,
  run_on_sqlite_full: runsOnSqliteFull,
  run_on_sqlite_normal: runsOnSqliteNormal,
  recovery,
  hibernation,
  desk,
  time_travel: timeTravel,
  inspected,
  inspector_page: inspectorPage,
  clients,
  model_input: modelInputOfChat,
  voice,
  voice_small_young: voiceSmall,
};
