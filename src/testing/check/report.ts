// The result of a check: the counts, the violations and the paths for a replay.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import type { CapacityError } from '../../values/errors.ts';
import { number, type Edge, type Graph } from './explore.ts';
import { retrace, type Trace } from './trace.ts';
import type { AnySystem, SystemModel } from './system-model.ts';
import type { Machines, World } from './types.ts';
import type { Checks, Untaken } from './checks.ts';
import type { Violation } from './violation.ts';
import type { Choice } from './world-node.ts';

/** A shortest path whose last step is a transition, and that transition. */
export interface Path {
  /** The choices on the path, in order. */
  readonly choices: readonly Choice[];
}

/** The result of `checkMachine` and `checkSystem`. `M` and `G` are those of the check. */
export class CheckReport<M extends Machines = Machines, G = unknown> {
  /** The check's name. */
  readonly name: string;
  /** True if every property holds. */
  readonly ok: boolean;
  /** The number of different reachable states. */
  readonly states: number;
  /** The number of transitions. Some of them lead back to the state where they start. */
  readonly transitions: number;
  /** The number of steps to the state that is furthest from the start. */
  readonly depth: number;
  /** The number of states that count as ends. */
  readonly ends: number;
  /** The number of different states per actor. */
  readonly statesOf: Readonly<Record<keyof M & string, number>>;
  /** Messages that were delivered to an actor that did not handle them. */
  readonly untaken: readonly Untaken[];
  /** The first violation of each property. Empty unless `onViolation: 'collect'`. */
  readonly violations: readonly Violation[];
  /** The limit that stopped the check before it had visited every state, or null if it visited all of them. */
  readonly limitReached: CapacityError | null;
  /** The checked system, for `replay`. @internal */
  readonly checked: { readonly system: AnySystem; readonly model: SystemModel };
  readonly #graph: Graph;

  constructor(
    name: string,
    system: AnySystem,
    model: SystemModel,
    graph: Graph,
    checks: Checks,
    limitReached: CapacityError | null,
  ) {
    this.name = name;
    this.states = graph.worlds.length;
    this.transitions = graph.edges.length;
    this.depth = graph.depth;
    this.ends = checks.ends.length;
    this.statesOf = Object.fromEntries(
      model.ids.map((id, index) => [
        id,
        new Set(graph.worlds.map((world) => world.states[index])).size,
      ]),
    ) as Record<keyof M & string, number>;
    this.untaken = checks.untaken;
    this.violations = checks.violations;
    this.ok = checks.violations.length === 0;
    this.limitReached = limitReached;
    this.checked = { system, model };
    this.#graph = graph;
  }

  /** The types that are specific to this system and do not occur in the worlds of the graph. */
  get #worlds(): readonly World<M, G>[] {
    return this.#graph.worlds as unknown as readonly World<M, G>[];
  }

  /** Every reachable state, those nearest to the start first. */
  *worlds(): IterableIterator<World<M, G>> {
    yield* this.#worlds;
  }

  /** Returns a shortest trace to a state that `wanted` accepts, if there is such a state. */
  traceTo(wanted: (world: World<M, G>) => boolean): Trace | undefined {
    const index = this.#worlds.findIndex((world) => wanted(world));
    return index < 0 ? undefined : retrace(this.checked.model, this.#graph.pathTo(index));
  }

  /**
   * Returns shortest paths that together cover every transition at least once. There is one path for each transition
   * that no other path contains.
   */
  *paths(): IterableIterator<Path> {
    const withSuccessor = new Set(this.#graph.edges.map((edge) => edge.from));
    const path = (edge: Edge): Path => ({
      choices: [...this.#graph.pathTo(edge.from), edge.choice],
    });
    for (const edge of this.#graph.edges) {
      if (!this.#graph.isFirst(edge) || !withSuccessor.has(edge.to)) yield path(edge);
    }
  }

  /** Returns the report as text. */
  toString(): string {
    const { system } = this.checked;
    const verdict = this.ok
      ? 'every property holds'
      : `${this.violations.length === 1 ? '1 property does' : `${this.violations.length} properties do`} not hold`;
    const lines = [
      `${this.name}: ${number(this.states)} states, ${number(this.transitions)} transitions, depth ${this.depth}: ${verdict}`,
    ];
    const named = Object.entries({
      invariants: system.invariants,
      steps: system.steps,
      waits: system.waits,
      reachable: system.reachable,
    });
    for (const [kind, properties = {}] of named) {
      const names = Object.keys(properties);
      if (names.length > 0) lines.push(`  ${kind}: ${names.join('; ')}`);
    }
    if (system.end !== false) lines.push(`  ends: ${number(this.ends)} states`);
    for (const { actor, event, outcome, count } of this.untaken) {
      lines.push(`  not taken: ${actor} ← ${event} (${outcome}), ${number(count)} times`);
    }
    if (this.limitReached) lines.push(`  not all states: ${this.limitReached.message}`);
    for (const violation of this.violations) lines.push(`✗ ${violation.toString()}`);
    return lines.join('\n');
  }
}

/** @throws {ConfigurationError} `INVALID_ARGUMENT` if the value is not a report of `checkMachine` or `checkSystem` */
export function checkReport(where: string, report: unknown): void {
  check(where, reportSchema, report, 'INVALID_ARGUMENT');
}

const reportSchema = z.custom<CheckReport>(
  (value) => value instanceof CheckReport,
  'expected a report of checkMachine or checkSystem',
);
