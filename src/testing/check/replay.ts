// Repeats checked paths on the real system and compares the states after each step. The model uses the pure transition;
// the replay shows that the running system behaves in the same way.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { isA, messageOf } from '../../values/errors.ts';
import { interpreter } from './interpreter.ts';
import { canonical, show, showValue } from './plain-data.ts';
import { snapshotData } from './pure-actor.ts';
import { checkReport, type CheckReport, type Path } from './report.ts';
import type { AnySystem, Happening, SystemModel } from './system-model.ts';
import { headline, Trace } from './trace.ts';
import type { Machines, SnapshotLike, ReplayHarness, ReplayRun } from './types.ts';
import { Violation, ViolationError } from './violation.ts';

/** The options of `replay`. */
export interface ReplayOptions {
  /** The real system. @defaultValue `interpreter(report)`: the checked machines as XState actors */
  readonly harness?: ReplayHarness;
  /** The paths to replay. @defaultValue `report.paths()`: every transition at least once */
  readonly paths?: Iterable<Path>;
  /** Whether to `throw` a ViolationError at the first difference or `collect` all differences. @defaultValue 'throw' */
  readonly onViolation?: 'throw' | 'collect';
}

const optionsSchema = z.strictObject({
  harness: anObject('a harness with a method `start`', 'start').optional(),
  paths: z
    .custom<Iterable<Path>>((value) => isA(value, Object) && Symbol.iterator in value, {
      error: 'expected paths of a report',
    })
    .optional(),
  onViolation: z.enum(['throw', 'collect']).optional(),
} satisfies ChecksOf<ReplayOptions>);

/** The result of `replay`. */
export interface ReplayReport {
  /** The number of replayed paths. */
  readonly paths: number;
  /** The number of replayed steps. */
  readonly steps: number;
  /** The number of paths that were not fully replayed because a step was `impossible`. */
  readonly skipped: number;
  /** The differences between the real system and the model. Empty unless `onViolation: 'collect'`. */
  readonly violations: readonly Violation[];
}

/**
 * Replays the paths of a checked state space. After each step, each actor must have the same status and the same key
 * (by default: value, context and invoked actors) as in the model.
 * @throws {ViolationError} if the real system behaves differently (see `onViolation`).
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the report does not come from a check; `INVALID_OPTION`.
 */
export async function replay<M extends Machines, G>(
  report: CheckReport<M, G>,
  options: ReplayOptions = {},
): Promise<ReplayReport> {
  checkReport('replay(report)', report);
  check('replay(report, options)', optionsSchema, options);
  const { model, system } = report.checked;
  const { harness = interpreter(report), paths = report.paths(), onViolation = 'throw' } = options;
  const counted = { paths: 0, steps: 0, skipped: 0 };
  const violations: Violation[] = [];
  const comparer = new Comparer(system);
  for (const path of paths) {
    counted.paths++;
    const run = await harness.start();
    try {
      const outcome = await follow(path, run, model, comparer);
      counted.steps += outcome.steps;
      if (outcome.end === 'impossible') counted.skipped++;
      if (!(outcome.end instanceof Violation)) continue;
      violations.push(outcome.end);
      if (onViolation === 'throw') throw new ViolationError(report.name, outcome.end);
    } finally {
      await run.stop();
    }
  }
  return { ...counted, violations };
}

async function follow(
  path: Path,
  run: ReplayRun,
  model: SystemModel,
  comparer: Comparer,
): Promise<{ readonly steps: number; readonly end: 'agrees' | 'impossible' | Violation }> {
  let leg = model.start();
  const done: Happening[] = [...leg];
  let steps = 0;
  const differs = (reason: string, cause?: unknown): Violation =>
    new Violation('replay', 'the real thing agrees', reason, new Trace(done), cause);
  for (let taken = 0; ; taken++) {
    const world = leg.at(-1)?.after;
    if (world === undefined) return { steps, end: 'agrees' };
    for (const [id, snapshot] of Object.entries(world.actors)) {
      const difference = comparer.difference(id, snapshot, run.snapshot(id));
      if (difference !== undefined) return { steps, end: differs(difference) };
    }
    const choice = path.choices[taken];
    if (choice === undefined) return { steps, end: 'agrees' };
    leg = model.apply(world, choice);
    done.push(...leg);
    const [first] = leg;
    if (first === undefined) return { steps, end: 'agrees' };
    try {
      if ((await run.take(first.step)) === 'impossible') return { steps, end: 'impossible' };
    } catch (cause) {
      return { steps, end: differs(`${headline(first.step)}: ${messageOf(cause)}`, cause) };
    }
    steps++;
  }
}

/** Compares snapshots by status and key, and caches the text of each snapshot. */
class Comparer {
  readonly #system: AnySystem;
  readonly #texts = new WeakMap<object, string>();

  constructor(system: AnySystem) {
    this.#system = system;
  }

  /** Describes the difference, if any. */
  difference(id: string, expected: SnapshotLike, real: SnapshotLike): string | undefined {
    if (this.#text(id, expected) === this.#text(id, real)) return undefined;
    return `"${id}" is ${describe(real)}, the model says ${describe(expected)}.`;
  }

  #text(id: string, snapshot: SnapshotLike): string {
    let text = this.#texts.get(snapshot);
    if (text === undefined) {
      const key = this.#system.actors[id]?.key ?? snapshotData;
      const data = key(snapshot as Parameters<typeof snapshotData>[0]);
      text = `${snapshot.status} ${canonical(data, `the replay of "${id}"`)}`;
      this.#texts.set(snapshot, text);
    }
    return text;
  }
}

function describe({ status, value, context, children, error }: SnapshotLike): string {
  const invoked = Object.keys(children ?? {});
  const running = invoked.length === 0 ? '' : ` with ${invoked.join(', ')}`;
  const why = status === 'error' ? `: ${messageOf(error)}` : '';
  return `${showValue(value)} [${status}${why}] ${show(context)}${running}`;
}
