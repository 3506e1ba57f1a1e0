// Explores every reachable world in breadth-first order. The first path that leads to a world is therefore a shortest
// one.
//
// Owns:     the graph: the worlds, the edges between them, and the first path to each world.
// Does not: judge. It reports each finding once to a watcher.

import { CapacityError, ConfigurationError } from '../../values/errors.ts';
import type { Move } from './pure-actor.ts';
import type { Happening, SystemModel } from './system-model.ts';
import type { Choice, WorldNode } from './world-node.ts';

/** A transition between two worlds, which are given by their indexes. */
export interface Edge {
  readonly from: number;
  readonly choice: Choice;
  readonly to: number;
}

/** Receives the findings of an exploration. A world is expanded before any deeper world. */
export interface Watcher {
  /** The exploration has reached a world for the first time. */
  discovered(index: number, world: WorldNode): void;
  /** Reports the events at the end of a path, in order. `path` returns that path. */
  happened(path: () => readonly Choice[], happenings: readonly Happening[]): void;
  /** An environment event that its actor does not handle. */
  missed(index: number, world: WorldNode, choice: Choice, move: Move): void;
  /** Every choice in this world has been tried. */
  expanded(index: number, world: WorldNode, edges: readonly Edge[]): void;
}

export class Graph {
  readonly worlds: WorldNode[] = [];
  readonly edges: Edge[] = [];
  /** The number of steps to the world that is furthest from the start. */
  depth = 0;
  /** The edge through which each world was first found, or none for the initial world. */
  readonly #found: (Edge | undefined)[] = [];

  add(world: WorldNode, found: Edge | undefined): void {
    this.worlds.push(world);
    this.#found.push(found);
  }

  world(index: number): WorldNode {
    const world = this.worlds[index];
    if (world === undefined) throw new RangeError(`No world ${index}`);
    return world;
  }

  /** Returns a shortest path from the start to a world. */
  pathTo(index: number): readonly Choice[] {
    const path: Choice[] = [];
    let edge = this.#found[index];
    while (edge !== undefined) {
      path.push(edge.choice);
      edge = this.#found[edge.from];
    }
    return path.toReversed();
  }

  /** Returns whether this edge is the first one through which its target was found. */
  isFirst(edge: Edge): boolean {
    return this.#found[edge.to] === edge;
  }

  /** Returns the indexes of the worlds from which no world of `goals` is reachable, nearest to the start first. */
  cannotReach(goals: readonly number[]): readonly number[] {
    const sources: number[][] = this.worlds.map(() => []);
    for (const { from, to } of this.edges) sources[to]?.push(from);
    const reaches = new Uint8Array(this.worlds.length);
    const todo = [...goals];
    for (const goal of goals) reaches[goal] = 1;
    for (let index = todo.pop(); index !== undefined; index = todo.pop()) {
      for (const source of sources[index] ?? []) {
        if (reaches[source] === 1) continue;
        reaches[source] = 1;
        todo.push(source);
      }
    }
    return [...this.worlds.keys()].filter((index) => reaches[index] === 0);
  }
}

/**
 * Explores the system and adds what it finds to an empty graph.
 * @throws {CapacityError} STATE_LIMIT if there are more worlds than `limit`
 */
export function explore(
  model: SystemModel,
  graph: Graph,
  watcher: Watcher,
  options: { readonly limit: number; readonly name: string },
): void {
  const { limit, name } = options;
  const indexes = new Map<string, number>();
  const begun = model.start();
  watcher.happened(() => [], begun);
  const first = begun.at(-1);
  if (first === undefined) throw new ConfigurationError('NO_ACTORS', `"${name}" has no actors`);
  if (first.cause !== undefined) return;
  indexes.set(model.keyOf(first.after), 0);
  graph.add(first.after, undefined);
  watcher.discovered(0, first.after);
  let levelEnd = 1;
  for (let index = 0; index < graph.worlds.length; index++) {
    if (index === levelEnd) {
      graph.depth++;
      levelEnd = graph.worlds.length;
    }
    const world = graph.world(index);
    const edges: Edge[] = [];
    const choices = model.choices(world, (choice, move) =>
      watcher.missed(index, world, choice, move),
    );
    for (const choice of choices) {
      const happenings = model.apply(world, choice);
      watcher.happened(() => [...graph.pathTo(index), choice], happenings);
      const last = happenings.at(-1);
      if (last === undefined || last.cause !== undefined) continue;
      const key = model.keyOf(last.after);
      const known = indexes.get(key);
      const edge = { from: index, choice, to: known ?? graph.worlds.length };
      edges.push(edge);
      graph.edges.push(edge);
      if (known !== undefined) continue;
      if (graph.worlds.length >= limit) throw tooMany(model, graph, limit, name);
      indexes.set(key, edge.to);
      graph.add(last.after, edge);
      watcher.discovered(edge.to, last.after);
    }
    watcher.expanded(index, world, edges);
    world.release();
  }
}

function tooMany(model: SystemModel, graph: Graph, limit: number, name: string): CapacityError {
  const counts = model.actors.map(({ id, stateCount }) => `${id}: ${number(stateCount)}`);
  return new CapacityError(
    'STATE_LIMIT',
    `Expected at most ${number(limit)} states in "${name}" (\`limit\`), got more at depth ` +
      `${graph.depth} after ${number(graph.edges.length)} transitions. Different states of each ` +
      `actor: ${counts.join(', ')}. Bound what grows, leave out with a \`key\` what does not ` +
      'matter, offer fewer events, or raise `limit`.',
  );
}

export function number(count: number): string {
  return count.toLocaleString('en-US');
}
