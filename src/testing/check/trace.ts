// The steps from the start to a state, as data and as a page to read.

import { show, showValue } from './plain-data.ts';
import type { Happening, SystemModel } from './system-model.ts';
import type { Machines, Step, World } from './types.ts';
import type { Choice, WorldNode } from './world-node.ts';

/** A step of a trace and the world after it. */
export interface TraceStep {
  readonly step: Step;
  readonly world: World<Machines, unknown>;
}

/** What led to a state: in a `sync` system deliveries are steps of their own. */
export class Trace {
  readonly steps: readonly TraceStep[];
  readonly #happenings: readonly Happening[];

  constructor(happenings: readonly Happening[]) {
    this.#happenings = happenings;
    this.steps = happenings.map(({ step, after }) => ({ step, world: after }));
  }

  /** How many events were taken, the start not counted. */
  get length(): number {
    return this.steps.filter(({ step }) => step.kind !== 'start').length;
  }

  /** The world at its end. */
  get end(): World<Machines, unknown> | undefined {
    return this.steps.at(-1)?.world;
  }

  toString(): string {
    const lines: string[] = [];
    let count = 0;
    for (const { step, before, after } of this.#happenings) {
      const isStart = step.kind === 'start';
      lines.push(
        isStart ? `      ${step.actor} starts` : `${`${++count}`.padStart(4)}  ${headline(step)}`,
      );
      const changed = isStart ? [step.actor] : changedActors(before, after);
      for (const id of changed) lines.push(`        ${id}: ${describe(after, id)}`);
      for (const { to, event } of step.sent)
        lines.push(`        ${step.actor} → ${to}: ${eventText(event)}`);
      const unsent = step.effects.filter(({ type }) => !type.startsWith('xstate.'));
      if (step.sent.length === 0 && unsent.length > 0) {
        lines.push(
          `        effects: ${unsent.map(({ type, params }) => eventText({ type, ...asObject(params) })).join(', ')}`,
        );
      }
    }
    return lines.join('\n');
  }
}

/**
 * Goes a path again from the start.
 * @param length keeps only the first `length` happenings of the last choice.
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

/** `door ← open {by: 'Ann'}`, and who sent it. */
export function headline({ actor, event, kind, from, outcome }: Step): string {
  const origin = { environment: '', timer: ' (timer)', message: ` from ${from ?? ''}`, start: '' };
  const source = kind === 'repeat' ? ` from ${from ?? ''} (a first time)` : origin[kind];
  return `${actor} ← ${eventText(event)}${source}${outcome === 'taken' ? '' : ` — ${outcome}`}`;
}

function eventText({ type, ...payload }: { readonly type: string }): string {
  return Object.keys(payload).length === 0 ? type : `${type} ${show(payload)}`;
}

function asObject(params: unknown): object {
  return typeof params === 'object' && params !== null ? params : { params };
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
