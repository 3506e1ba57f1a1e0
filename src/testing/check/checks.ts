// Evaluates the properties of a system during its exploration and afterwards.
//
// Owns:     the violations (only the first one of each property) and the counts.
// Does not: explore or format.

import { ConfigurationError, messageOf } from '../../values/errors.ts';
import type { Edge, Graph, Watcher } from './explore.ts';
import { show } from './plain-data.ts';
import type { Move } from './pure-actor.ts';
import { stateAt, type AnySystem, type Happening, type SystemModel } from './system-model.ts';
import { headline, retrace, Trace } from './trace.ts';
import type { Step, Verdict } from './types.ts';
import { Violation, ViolationError, type ViolationKind } from './violation.ts';
import type { Choice, WorldNode } from './world-node.ts';

/** The number of messages that a receiver did not handle, over all transitions. */
export interface Untaken {
  /** The actor that received the message. */
  readonly actor: string;
  /** The event's type. */
  readonly event: string;
  /** The machine had no transition for the message, or had ended. */
  readonly outcome: 'unhandled' | 'ended';
  /** How often this happened. */
  readonly count: number;
}

/** A position in a path: the choices from the start, and the number of steps taken in the last choice. */
interface Place {
  readonly path: readonly Choice[];
  readonly length?: number;
}

export class Checks implements Watcher {
  readonly violations: Violation[] = [];
  /** The indexes of the worlds that count as ends. */
  readonly ends: number[] = [];
  readonly #system: AnySystem;
  readonly #model: SystemModel;
  readonly #graph: Graph;
  readonly #name: string;
  readonly #failed = new Set<string>();
  readonly #untaken = new Map<string, Untaken>();
  readonly #reached = new Set<string>();
  readonly #maxQueue: number;
  /** The indexes of the actors that must have ended for a world to be an end. Unused if `end` is defined. */
  readonly #mustEnd: readonly number[];

  constructor(system: AnySystem, model: SystemModel, graph: Graph, name: string) {
    this.#system = system;
    this.#model = model;
    this.#graph = graph;
    this.#name = name;
    this.#mustEnd = [...model.actors.keys()].filter((index) => model.actorAt(index).canEnd);
    this.#maxQueue = system.mode === 'sync' ? Infinity : (system.maxQueue ?? 16);
  }

  get untaken(): readonly Untaken[] {
    return [...this.#untaken.values()];
  }

  discovered(index: number, world: WorldNode): void {
    const place = (): Place => ({ path: this.#graph.pathTo(index) });
    for (const [name, holds] of Object.entries(this.#system.invariants ?? {})) {
      this.#ask('invariant', name, () => holds(world), place);
    }
    for (const [name, wanted] of Object.entries(this.#system.reachable ?? {})) {
      if (!this.#reached.has(name) && wanted(world)) this.#reached.add(name);
    }
    if (this.#isEnd(world)) this.ends.push(index);
    if (world.inFlight.length > this.#maxQueue) this.#checkQueues(world, place);
  }

  happened(path: () => readonly Choice[], happenings: readonly Happening[]): void {
    let length = 0;
    for (const { step, before, after, cause } of happenings) {
      length++;
      const here = length;
      const place = (): Place => ({ path: path(), length: here });
      if (step.outcome === 'threw') {
        this.#report('error', 'no actor fails', failure(step, cause), place, cause);
      } else if (step.kind !== 'environment' && isUntaken(step.outcome)) {
        this.#count(step, step.outcome);
      }
      if (isUntaken(step.outcome)) this.#askUntaken(step, before, place);
      for (const [name, holds] of Object.entries(this.#system.steps ?? {})) {
        this.#ask('step', name, () => holds(before, step, after), place);
      }
    }
  }

  missed(index: number, world: WorldNode, choice: Choice, move: Move): void {
    if (!isUntaken(move.outcome) || this.#system.unhandled === undefined) return;
    const step = this.#model.missedStep(choice, move);
    this.#askUntaken(step, world, () => ({ path: [...this.#graph.pathTo(index), choice] }));
  }

  expanded(index: number, world: WorldNode, edges: readonly Edge[]): void {
    const place = (): Place => ({ path: this.#graph.pathTo(index) });
    const moves = edges.filter(({ to }) => to !== index);
    if (moves.length === 0 && !this.#isEnd(world) && (this.#system.deadlock ?? true)) {
      const tried = edges.length === 0 ? 'Nothing can happen' : 'Nothing that happens changes it';
      this.#report('deadlock', 'no deadlock', `${tried}, and it is no end.`, place);
    }
    if (this.#system.waits !== undefined && this.#model.environmentMayAct(world)) {
      this.#checkWaits(world, edges, place);
    }
  }

  /** Evaluates the properties that need the whole state space. */
  finish(): void {
    if (this.#system.finality ?? true) this.#checkFinality();
    for (const name of Object.keys(this.#system.reachable ?? {})) {
      if (this.#reached.has(name)) continue;
      this.#fail('reachable', name, 'No state that can be reached satisfies it.', new Trace([]));
    }
    if (this.#system.end !== false) this.#checkEnds();
  }

  #isEnd(world: WorldNode): boolean {
    const { end } = this.#system;
    if (typeof end === 'function') return end(world);
    return (
      world.inFlight.length === 0 &&
      this.#mustEnd.length > 0 &&
      this.#mustEnd.every((actor) => stateAt(world, actor).snapshot.status !== 'active')
    );
  }

  #checkEnds(): void {
    const stuck = this.#graph.cannotReach(this.ends);
    const [first] = stuck;
    if (first === undefined) return;
    const reason =
      this.ends.length === 0
        ? 'No state is an end. A machine that never finishes says where it may rest with `end`, or `end: false`.'
        : `From here no end can be reached, whatever happens; nor from ${stuck.length - 1} other states.`;
    this.#report('end', 'an end can always be reached', reason, () => ({
      path: this.#graph.pathTo(first),
    }));
  }

  #checkFinality(): void {
    for (const [actor, pure] of this.#model.actors.entries()) {
      for (const { state, event } of pure.wouldLeave()) {
        const index = this.#graph.worlds.findIndex((world) => world.states[actor] === state);
        if (index < 0) continue;
        const reason =
          `"${pure.id}" has ended and would still take ${show(event)}. A live actor does not ` +
          'listen any more, the pure transition does. Name the event in the states that live, not above them.';
        this.#report('finality', 'nothing leaves a final state', reason, () => ({
          path: this.#graph.pathTo(index),
        }));
      }
    }
  }

  #checkWaits(world: WorldNode, edges: readonly Edge[], place: () => Place): void {
    for (const [name, rule] of Object.entries(this.#system.waits ?? {})) {
      for (const [actor, id] of this.#model.ids.entries()) {
        if (rule.actors !== undefined && !rule.actors.includes(id)) continue;
        const state = stateAt(world, actor);
        const { snapshot } = state;
        if (snapshot.status !== 'active') continue;
        const { when, exits } = rule;
        const waits = typeof when === 'string' ? snapshot.hasTag(when) : when(snapshot);
        if (!waits) continue;
        const leaves = edges.some(
          ({ choice, to }) =>
            (exits === undefined ||
              (choice.actor === actor && matches(choice.event.type, exits))) &&
            stateAt(this.#graph.world(to), actor) !== state,
        );
        if (leaves) continue;
        const missing = exits === undefined ? 'No event' : `None of ${exits.join(', ')}`;
        this.#report('wait', name, `${missing} leads "${id}" out of here.`, place);
      }
    }
  }

  #checkQueues(world: WorldNode, place: () => Place): void {
    const sizes = new Map<string, number>();
    for (const { from, to } of world.inFlight) {
      const channel = `"${from}" to "${to}"`;
      const size = (sizes.get(channel) ?? 0) + 1;
      sizes.set(channel, size);
      if (size <= this.#maxQueue) continue;
      const reason = `${size} messages from ${channel} are in flight, more than ${this.#maxQueue} (\`maxQueue\`).`;
      this.#report('queue', 'queues are bounded', reason, place);
    }
  }

  #askUntaken(step: Step, world: WorldNode, place: () => Place): void {
    const { unhandled } = this.#system;
    if (unhandled === undefined) return;
    this.#ask('unhandled', 'every event is taken', () => unhandled(step, world), place);
  }

  #ask(kind: ViolationKind, name: string, ask: () => Verdict, place: () => Place): void {
    if (this.#failed.has(`${kind} ${name}`)) return;
    let verdict: Verdict;
    try {
      verdict = ask();
    } catch (cause) {
      this.#report(kind, name, messageOf(cause), place, cause);
      return;
    }
    if (verdict === true) return;
    if (verdict !== false && typeof verdict !== 'string') {
      throw new ConfigurationError(
        'INVALID_VERDICT',
        `Expected the property "${name}" to answer true, false or a reason, got ${show(verdict)}`,
      );
    }
    const fallback = kind === 'unhandled' ? 'It was not.' : 'It does not hold.';
    this.#report(kind, name, verdict === false ? fallback : verdict, place);
  }

  #report(
    kind: ViolationKind,
    name: string,
    reason: string,
    place: () => Place,
    cause?: unknown,
  ): void {
    if (this.#failed.has(`${kind} ${name}`)) return;
    const { path, length } = place();
    this.#fail(kind, name, reason, retrace(this.#model, path, length), cause);
  }

  #fail(kind: ViolationKind, name: string, reason: string, trace: Trace, cause?: unknown): void {
    this.#failed.add(`${kind} ${name}`);
    const violation = new Violation(kind, name, reason, trace, cause);
    this.violations.push(violation);
    if (this.#system.onViolation !== 'collect') throw new ViolationError(this.#name, violation);
  }

  #count(step: Step, outcome: 'unhandled' | 'ended'): void {
    const { actor } = step;
    const event = step.event.type;
    const name = `${actor} ${event} ${outcome}`;
    const count = (this.#untaken.get(name)?.count ?? 0) + 1;
    this.#untaken.set(name, { actor, event, outcome, count });
  }
}

function isUntaken(outcome: Step['outcome']): outcome is 'unhandled' | 'ended' {
  return outcome === 'unhandled' || outcome === 'ended';
}

/** Returns whether a descriptor (a type, or a prefix and `*`) matches the type. */
function matches(type: string, descriptors: readonly string[]): boolean {
  return descriptors.some((descriptor) =>
    descriptor.endsWith('*') ? type.startsWith(descriptor.slice(0, -1)) : type === descriptor,
  );
}

function failure(step: Step, cause: unknown): string {
  const lacksOutput = step.event.type.startsWith('xstate.done.') && !('output' in step.event);
  const hint = lacksOutput ? ' The event has no `output`; the real one has.' : '';
  const unhandled = step.event.type.startsWith('xstate.error.') && step.event.error === cause;
  return unhandled
    ? `"${step.actor}" has no transition for the failure of an invoked actor, so it fails: ${messageOf(cause)}`
    : `${headline(step)}: ${messageOf(cause)}${hint}`;
}
