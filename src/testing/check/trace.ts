// The steps from the start to a state, as data and as text.

import { show, showValue } from './plain-data.ts';
import type { Happening, SystemModel } from './system-model.ts';
import type { Effect, Machines, Message, Step, World } from './types.ts';
import type { Choice, WorldNode } from './world-node.ts';

/** One step of a trace, and the world after the step. */
export interface TraceStep {
  /** The step. */
  readonly step: Step;
  /** The world after the step. */
  readonly world: World<Machines, unknown>;
}

/** The steps that lead to a state. In a `sync` system, each delivery is a separate step. */
export class Trace {
  /** The steps, in order. */
  readonly steps: readonly TraceStep[];
  readonly #happenings: readonly Happening[];

  constructor(happenings: readonly Happening[]) {
    this.#happenings = happenings;
    this.steps = happenings.map(({ step, after }) => ({ step, world: after }));
  }

  /** The number of handled events, not counting the start. */
  get length(): number {
    return this.steps.filter(({ step }) => step.kind !== 'start').length;
  }

  /** The world at the end of the trace. */
  get end(): World<Machines, unknown> | undefined {
    return this.steps.at(-1)?.world;
  }

  /** Returns the trace as text. */
  toString(): string {
    let count = 0;
    return this.#happenings
      .flatMap((happening) => linesOf(happening, happening.step.kind === 'start' ? 0 : ++count))
      .join('\n');
  }
}

function linesOf({ step, before, after }: Happening, count: number): readonly string[] {
  const { actor, sent, effects } = step;
  const isStart = count === 0;
  const head = isStart ? `      ${actor} starts` : `${`${count}`.padStart(4)}  ${headline(step)}`;
  const changed = isStart ? [actor] : changedActors(before, after);
  const asked = effects.flatMap((effect) => effectText(effect, sent.length > 0));
  const details = [
    ...changed.map((id) => `${id}: ${describe(after, id)}`),
    ...sent.map(({ to, event }) => `${actor} → ${to}: ${eventText(event)}`),
    ...(asked.length > 0 ? [`effects: ${asked.join(', ')}`] : []),
  ];
  return [head, ...details.map((detail) => `        ${detail}`)];
}

/**
 * Repeats a path from the start.
 * @param length If set, only the first `length` events of the last choice are kept.
 */
export function retrace(model: SystemModel, path: readonly Choice[], length?: number): Trace {
  const started = model.start();
  const legs = [started];
  let world = started.at(-1)?.after;
  for (const choice of path) {
    if (world === undefined) break;
    const leg = model.apply(world, choice);
    legs.push(leg);
    world = leg.at(-1)?.after;
  }
  const last = legs.pop() ?? [];
  return new Trace([...legs.flat(), ...last.slice(0, length)]);
}

/** Returns a text such as `door ← open {by: 'Ann'}`, which includes the sender. */
export function headline({ actor, event, kind, from, outcome }: Step): string {
  const origin = { environment: '', timer: ' (timer)', message: ` from ${from ?? ''}`, start: '' };
  const source = kind === 'repeat' ? ` from ${from ?? ''} (a first time)` : origin[kind];
  return `${actor} ← ${eventText(event)}${source}${outcome === 'taken' ? '' : ` — ${outcome}`}`;
}

function eventText({ type, ...payload }: { readonly type: string }): string {
  return Object.keys(payload).length === 0 ? type : `${type} ${show(payload)}`;
}

/** Formats an effect for a trace. Returns nothing for a timer, or for an effect that has become a message. */
function effectText({ type, params }: Effect, becameMessages: boolean): readonly string[] {
  const { id, event } = (params ?? {}) as {
    readonly id?: string;
    readonly event?: Message['event'];
  };
  if (type === 'xstate.spawnChild') return [`start ${id ?? ''}`];
  if (type === 'xstate.stopChild') return [`stop ${id ?? ''}`];
  if (type === 'xstate.emit' && event !== undefined) return [`emit ${eventText(event)}`];
  if (type.startsWith('xstate.') || becameMessages) return [];
  return [params === undefined ? type : `${type} ${show(params)}`];
}

function changedActors(before: WorldNode, after: WorldNode): readonly string[] {
  return Object.keys(after.actors).filter((id) => before.actors[id] !== after.actors[id]);
}

function describe(world: WorldNode, id: string): string {
  const snapshot = world.actors[id];
  if (snapshot === undefined) return '?';
  const context = show(snapshot.context);
  const status = snapshot.status === 'active' ? '' : ` [${snapshot.status}]`;
  return `${showValue(snapshot.value)}${status}${context === '{}' ? '' : ` ${context}`}`;
}
