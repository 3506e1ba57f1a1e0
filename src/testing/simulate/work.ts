// Counts the work that a run has done. A run in which nothing happened proves nothing.

import { eventsOf, type RunRecord } from './log/log.ts';

/** The kinds of work that are counted. */
export interface Work {
  /** Subagents that have started, and subagents that have completed. */
  readonly subagents: number;
  /** The number of completed subagents. */
  readonly completed: number;
  /** Subagents of subagents. */
  readonly children: number;
  /** The number of model calls. */
  readonly modelCalls: number;
  /** Tool runs. */
  readonly effects: number;
  /** The number of questions that were asked. */
  readonly questions: number;
  /** The number of questions that were answered. */
  readonly answers: number;
  /** The number of external events that services accepted. */
  readonly events: number;
  /** The number of results and notices that were heard or shown. */
  readonly heard: number;
  /** The number of crashes. */
  readonly crashes: number;
  /** How many times an idle session left memory. */
  readonly sleeps: number;
  /** The number of connections that were lost or refused. */
  readonly drops: number;
  /** The number of connections whose voice model continued from an earlier one. */
  readonly resumed: number;
  /** How many times the user interrupted the lead agent. */
  readonly bargeIns: number;
  /** Faults that fired. */
  readonly strikes: number;
}

export function workIn({ log, effects, script }: RunRecord): Work {
  const changed = eventsOf(log, 'subagent.changed').map(({ event }) => event.subagent);
  const asked = eventsOf(log, 'question.changed').map(({ event }) => event.question);
  const told = eventsOf(log, 'delivery.changed').map(({ event }) => event.delivery);
  const struck = (point: string): number =>
    script.strikes.filter((strike) => strike.point === point).length;
  const count = (kind: string): number => log.filter((entry) => entry.kind === kind).length;
  const lines = log.flatMap((entry) => (entry.kind === 'line' ? [entry.what] : []));
  return {
    subagents: distinct(changed.map(({ id }) => id)),
    children: distinct(changed.flatMap(({ id, depth }) => (depth > 1 ? [id] : []))),
    completed: distinct(changed.flatMap(({ id, state }) => (state === 'completed' ? [id] : []))),
    modelCalls: count('model'),
    effects: effects.length,
    questions: distinct(asked.map(({ requestId }) => requestId)),
    answers: distinct(
      asked.flatMap(({ requestId, state }) => (state === 'answered' ? [requestId] : [])),
    ),
    events: log.filter(
      (entry) => entry.kind === 'kept' && entry.entry.event.type === 'event.arrived',
    ).length,
    heard: distinct(
      told.flatMap(({ deliveryId, state, kind }) =>
        state === 'delivered' && kind !== 'question' ? [deliveryId] : [],
      ),
    ),
    crashes: count('crashed'),
    sleeps: count('slept'),
    drops: lines.filter((what) => what === 'lost' || what === 'refused').length,
    resumed: lines.filter((what) => what === 'resumed').length,
    bargeIns: struck('user.bargesIn'),
    strikes: script.strikes.length,
  };
}

function distinct(ids: readonly string[]): number {
  return new Set(ids).size;
}

/** The work in many runs and, for each kind of work, the number of runs that contain it. */
export class WorkDone {
  readonly #total = new Map<string, number>();
  readonly #inRuns = new Map<string, number>();
  runs = 0;

  add(work: Work): void {
    this.runs += 1;
    for (const [kind, count] of Object.entries(work) as [string, number][]) {
      this.#total.set(kind, (this.#total.get(kind) ?? 0) + count);
      if (count > 0) this.#inRuns.set(kind, (this.#inRuns.get(kind) ?? 0) + 1);
    }
  }

  get total(): Work {
    return Object.fromEntries(this.#total) as Record<keyof Work, number>;
  }

  /** Returns the number of runs that contain any work of this kind. */
  runsWith(kind: keyof Work): number {
    return this.#inRuns.get(kind) ?? 0;
  }
}
