// The table for a run of dialogues, with one row per stage.

import type { Dialogue } from './dialogue.ts';
import type { Fault, Verdict } from './judge.ts';

export interface Run {
  readonly dialogue: Dialogue;
  readonly stage: string;
  readonly verdict: Verdict;
  /** Whether the faults match `known.json`; on a stage with real speech, also true if the recogniser misheard. */
  readonly isKnown: boolean;
}

export function reportRow({ dialogue, stage, verdict, isKnown }: Run): string {
  const { faults, isHeardRight } = verdict;
  const whose = isHeardRight ? 'wrong' : 'misheard';
  const lines = faults.map(({ fault, why }) => `\n    ${fault}: ${why}`).join('');
  const news = isKnown ? '' : ' (not as in known.json)';
  return `${faults.length === 0 ? 'right' : whose}  ${stage}: ${dialogue.name}${news}${lines}`;
}

export function tableOf(runs: readonly Run[]): string {
  const stages = [...new Set(runs.map(({ stage }) => stage))];
  const columns = [
    'stage',
    'runs',
    'heard right',
    'task right',
    'first sound p50 / p95',
    'yields p50 / p95',
    'stops p50 / p95',
    'hole p50 / p95',
    'stuck',
    'told twice',
    'lost',
  ];
  const head = `\n| ${columns.join(' | ')} |\n|${' --- |'.repeat(columns.length)}`;
  return [head, ...stages.map((stage) => rowOf(stage, runs))].join('\n');
}

/** A run whose transcript was wrong does not count as a fault of the session. */
function rowOf(stage: string, all: readonly Run[]): string {
  const runs = all.filter((run) => run.stage === stage);
  const ours = runs.filter(({ verdict }) => verdict.isHeardRight);
  const withFault = (fault: Fault): number =>
    ours.filter(({ verdict }) => verdict.faults.some((each) => each.fault === fault)).length;
  const right = ours.filter(({ verdict }) => verdict.faults.length === 0).length;
  const seconds = (pick: (verdict: Verdict) => readonly number[]): string => {
    const sorted = ours.flatMap(({ verdict }) => pick(verdict)).toSorted((a, b) => a - b);
    return `${secondsAt(sorted, 0.5)} / ${secondsAt(sorted, 0.95)}`;
  };
  return `| ${[
    stage,
    runs.length,
    ours.length,
    `${right} (${Math.round((100 * right) / Math.max(1, ours.length))} %)`,
    seconds(({ waitsMs }) => waitsMs),
    seconds(({ yieldsMs }) => yieldsMs),
    seconds(({ stopsMs }) => stopsMs),
    seconds(({ holesMs }) => holesMs),
    withFault('stuck'),
    withFault('told twice'),
    withFault('lost'),
  ].join(' | ')} |`;
}

function secondsAt(sorted: readonly number[], part: number): string {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  return value === undefined ? '–' : `${(value / 1000).toFixed(2)} s`;
}
