// Simulates complete conversations of an app in simulated time. Each conversation comes from one seed and can contain
// all faults. The logs are checked against the promises of a session.
//
// Owns:     which runs to play, and what happens when a run fails.
// Does not: play a run (player) or judge it (promises).

import type { SnapshotPolicy } from '../../actors/runtime/scope-journal.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { ConformanceSetup } from '../conformance/stage.ts';
import { chanceOf } from '../doubles/chance.ts';
import { simulatedEnvironment } from '../doubles/simulated-environment.ts';
import type { Script as ModelScript } from '../doubles/scripted-model.ts';
import { defaultApp } from './default-app.ts';
import { generateSteps, type GenerateOptions } from './generate-script.ts';
import type { SimulatedApp, SimulatedAppLike } from './log/app.ts';
import { defaultFaults, type FaultPlan, type Strike } from './log/fault-points.ts';
import type { RunRecord } from './log/log.ts';
import type { Script, Step } from './log/script.ts';
import { play } from './player.ts';
import type { Broken, PromiseCheck } from './promises/broken.ts';
import { brokenPromises } from './promises/check.ts';
import { SimulationError } from './simulation-error.ts';
import { simulatedVoice } from './voice-stage.ts';
import { WorkDone, workIn, type Work } from './work.ts';

/** The simulated app, and the conditions under which it runs. */
export interface SimulationOptions {
  /** Agents, tools, subagents and policies. @defaultValue the simulation's default app */
  readonly app?: SimulatedAppLike;
  /** The kind of session to simulate. `both`: each seed determines one of the two kinds. @defaultValue 'both' */
  readonly session?: 'text' | 'voice' | 'both';
  /** The models' scripts, by the name of the subagent's configuration. @defaultValue generated from the seed */
  readonly models?: Readonly<Record<string, ModelScript>>;
  /** The voice model and its transport. @defaultValue `simulatedVoice()`, with `resumes` for some seeds */
  readonly voice?: ConformanceSetup;
  /** The active fault points, and when they fire. @defaultValue `defaultFaults` */
  readonly faults?: FaultPlan;
  /** The steps in the script. @defaultValue generated from the seed */
  readonly steps?: readonly Step[];
  /** The options for generated scripts. */
  readonly generate?: Partial<GenerateOptions>;
  /** The app's own promises, which are checked in addition to the session's promises. */
  readonly checks?: readonly PromiseCheck[];
  /** The minimum work of a run; a run with less work fails. @defaultValue `{ subagents: 1 }` for generated scripts */
  readonly atLeast?: Partial<Work>;
  /** The maximum time from the last fault to the end of all work, in milliseconds. @defaultValue 1_800_000 */
  readonly quietWithinMs?: number;
  /**
   * Whether the process may be released between any two messages, so that another one continues from the journal.
   * @defaultValue false
   */
  readonly alwaysRehydrates?: boolean;
  /** When the session writes a snapshot. @defaultValue after 1 to 60 entries, depending on the seed */
  readonly snapshots?: SnapshotPolicy;
  /** The maximum number of runs that are used to shrink a failing script. @defaultValue 300 */
  readonly maxShrinks?: number;
}

/** The options of `simulate`. */
export interface SimulateOptions extends SimulationOptions {
  /** The seed of a single run. */
  readonly seed?: number;
  /** The number of runs, whose seeds start at 1, or a range of seeds. */
  readonly seeds?: number | { readonly from: number; readonly count: number };
  /** These kinds of work must occur in more than half of the runs. @defaultValue none */
  readonly inMostRuns?: readonly (keyof Work)[];
  /** Called after each run. */
  readonly onRun?: (run: { readonly seed: number; readonly work: Work }) => void;
}

/** The work of all runs. No run broke a promise. */
export interface SimulationReport {
  /** The number of runs. */
  readonly runs: number;
  /** The work of all runs. */
  readonly work: Work;
}

/**
 * Simulates an app in simulated time. Each seed produces one random conversation with random faults. It replaces the
 * app's models and uses the app's own tools.
 * @throws {SimulationError} if a seed breaks a promise; the error has the smallest script found that breaks it.
 * {ConfigurationError} if options contradict each other
 */
export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const done = new WorkDone();
  for (const seed of seedsOf(options)) {
    const work = await simulateSeed(seed, options);
    done.add(work);
    options.onRun?.({ seed, work });
  }
  for (const kind of options.inMostRuns ?? [])
    if (2 * done.runsWith(kind) <= done.runs)
      throw new ConfigurationError(
        'TOO_LITTLE_WORK',
        `Expected ${kind} in most of ${done.runs} runs, found some in ${done.runsWith(kind)}`,
      );
  return { runs: done.runs, work: done.total };
}

const RESUMING = 0.35;

/** Plays the run of one seed and returns its record, so that you can inspect it. */
export async function simulateOnce(
  seed: number,
  options: SimulationOptions = {},
): Promise<{ readonly record: RunRecord; readonly broken: readonly Broken[] }> {
  const { steps, faults = defaultFaults } = options;
  const session = sessionOf(seed, options);
  return judged(options, seed, session, steps ?? stepsOf(seed, session, options), faults);
}

/** Replays a script, such as one that a failure has printed. */
export function replayScript(
  { seed, session, steps, strikes }: Script,
  options: SimulationOptions = {},
): Promise<{ readonly record: RunRecord; readonly broken: readonly Broken[] }> {
  return judged(options, seed, session, steps, strikes);
}

async function simulateSeed(seed: number, options: SimulationOptions): Promise<Work> {
  const { record, broken } = await simulateOnce(seed, options);
  const [first] = broken;
  if (first) throw new SimulationError(await smallest(record, broken, first, options));
  return workIn(record);
}

async function judged(
  options: SimulationOptions,
  seed: number,
  kind: 'text' | 'voice',
  steps: readonly Step[],
  faults: FaultPlan | readonly Strike[],
) {
  const record = await play({
    seed,
    kind,
    steps,
    faults,
    app: options.app ?? defaultApp,
    models: options.models ?? {},
    voice: options.voice ?? lineOf(seed),
    quietWithinMs: options.quietWithinMs ?? 1_800_000,
    alwaysRehydrates: options.alwaysRehydrates ?? false,
    snapshots: options.snapshots ?? null,
  });
  const broken = brokenPromises(record, options.checks);
  return { record, broken: [...broken, ...tooLittle(record, options)] };
}

/** A run in which nothing happens proves nothing. */
function tooLittle(record: RunRecord, { atLeast, steps }: SimulationOptions): readonly Broken[] {
  const least: Partial<Work> = atLeast ?? (steps ? {} : { subagents: 1 });
  const work = workIn(record);
  return (Object.entries(least) as [keyof Work, number][]).flatMap(([kind, count]) =>
    work[kind] < count
      ? [{ promise: 'WORK', what: `${work[kind]} ${kind}, expected ${count} at least` }]
      : [],
  );
}

/** The options of `crashEverywhere`. */
export interface CrashEverywhereOptions extends SimulationOptions {
  /** @defaultValue 1 */
  readonly seed?: number;
  /** Faults to use in addition to the crash. @defaultValue nothing */
  readonly faults?: FaultPlan;
}

/**
 * Crashes one conversation at every possible place. Use it for short scenarios. First plays the scenario once to count
 * the appends. Then plays it twice for each append: with a crash just before the entry is stored, and with a crash just
 * after.
 * @throws {SimulationError} at the first such place where a promise is broken
 */
export async function crashEverywhere({
  seed = 1,
  faults = {},
  ...options
}: CrashEverywhereOptions): Promise<SimulationReport & { readonly appends: number }> {
  const scenario = { ...options, generate: { disasters: false, ...options.generate } };
  const { record } = await simulateOnce(seed, { ...scenario, faults });
  let runs = 0;
  let report: SimulationReport | null = null;
  for (let nth = 1; nth <= record.appends; nth += 1)
    for (const point of ['crash.beforeAppend', 'crash.afterAppend'] as const) {
      const plan = { ...faults, [point]: { at: [nth] } };
      report = await simulate({ ...scenario, seed, faults: plan });
      runs += report.runs;
    }
  const { work } = report ?? (await simulate({ ...scenario, seed, faults }));
  return { runs, work, appends: record.appends };
}

type Part =
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'strike'; readonly strike: Strike };

async function smallest(
  { script, log }: RunRecord,
  broken: readonly Broken[],
  { promise }: Broken,
  options: SimulationOptions,
) {
  const { seed, session } = script;
  let best = { script, broken, log };
  // A smaller script may do too little work, but that counts only if it was the original failure.
  const lenient = promise === 'WORK' ? options : { ...options, atLeast: {} };
  const stillFails = async (parts: readonly Part[]): Promise<boolean> => {
    const steps = parts.flatMap((part) => (part.kind === 'step' ? [part.step] : []));
    const strikes = parts.flatMap((part) => (part.kind === 'strike' ? [part.strike] : []));
    const tried = { seed, session, steps, strikes };
    const found = await replayScript(tried, lenient);
    const isSame = found.broken.some((one) => one.promise === promise);
    if (isSame) best = { script: tried, broken: found.broken, log: found.record.log };
    return isSame;
  };
  const parts: readonly Part[] = [
    ...script.strikes.map((strike): Part => ({ kind: 'strike', strike })),
    ...script.steps.map((step): Part => ({ kind: 'step', step })),
  ];
  if (promise !== 'WORK') await shrink(parts, stillFails, options.maxShrinks ?? 300);
  return {
    seed,
    broken,
    script,
    shrunk: best.script,
    shrunkBroken: best.broken.toSorted(
      (a, b) => Number(b.promise === promise) - Number(a.promise === promise),
    ),
    log: best.log,
  };
}

/**
 * Shrinks a failing case by removing more and more parts as long as it still fails in the same way (delta debugging:
 * Zeller and Hildebrandt, 2002). Returns the smallest failing part of `items` that it finds within `maxTries` tries.
 * With enough tries, no single item in the result can be removed.
 */
export async function shrink<T>(
  items: readonly T[],
  stillFails: (items: readonly T[]) => Promise<boolean>,
  maxTries: number,
): Promise<readonly T[]> {
  let left = items;
  let tries = 0;
  if (items.length > 0) {
    tries += 1;
    if (await stillFails([])) return [];
  }
  for (let size = Math.ceil(left.length / 2); size >= 1;) {
    let hasShrunk = false;
    for (let at = 0; at < left.length && tries < maxTries;) {
      const rest = [...left.slice(0, at), ...left.slice(at + size)];
      tries += 1;
      if (rest.length < left.length && (await stillFails(rest))) {
        left = rest;
        hasShrunk = true;
      } else at += size;
    }
    if (tries >= maxTries) break;
    // An item that was needed before may have become unnecessary.
    if (size > 1) size = Math.ceil(size / 2);
    else if (!hasShrunk) break;
  }
  return left;
}

function* seedsOf({ seed, seeds }: SimulateOptions): Iterable<number> {
  if (seed !== undefined) yield seed;
  const { from, count } = typeof seeds === 'number' ? { from: 1, count: seeds } : (seeds ?? none);
  if (seed === undefined && count === 0)
    throw new ConfigurationError('NO_SEED', 'simulate: expected `seed`, or `seeds` above 0');
  for (let next = from; next < from + count; next += 1) yield next;
}

const none = { from: 1, count: 0 };

function sessionOf(seed: number, { session = 'both' }: SimulationOptions): 'text' | 'voice' {
  if (session !== 'both') return session;
  return seed % 2 === 0 ? 'voice' : 'text';
}

function stepsOf(
  seed: number,
  session: 'text' | 'voice',
  { app = defaultApp, generate, faults = defaultFaults }: SimulationOptions,
): readonly Step[] {
  const crashes = 'crash.beforeAppend' in faults || 'crash.afterAppend' in faults;
  return generateSteps(seed, session, plainApp(app, seed), { disasters: crashes, ...generate });
}

/** Returns a voice model. For some seeds, a lost connection can be resumed or an utterance can be ended. */
function lineOf(seed: number): ConformanceSetup {
  return simulatedVoice({
    resumes: chanceOf(seed, 'line', 'resumes').happens(RESUMING),
    endsUtterances: chanceOf(seed, 'line', 'endsUtterances').happens(0.5),
  });
}

/** Creates the app without a process, so that the names of its tools and agents can be read. */
function plainApp(app: SimulatedAppLike, seed: number): SimulatedApp {
  return typeof app === 'function'
    ? app({ environment: simulatedEnvironment({ seed }), seed, simulated: (config) => config })
    : app;
}
