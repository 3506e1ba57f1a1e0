// Executes the turns of runs that an engine stores (ports/run-flow.ts). In each turn, the ordinary runtime executes the
// run from the engine's journal (run-play.ts).
//
// A step is an entry in the engine's history of the run, so a turn ends before the next step that the engine must
// record. With `jobs`, the step is requested from another engine. That engine stores the result, so the request may be
// repeated.
//
// Owns:     the configurations by name; the runs that this process keeps in memory for their next turn.
// Does not: execute a run, or store data that other processes need.
//
// Invariants
//   RUN-WORKER-1. A repeated turn requests the same steps with the same keys, because subagents' ids are derived from
//       the run and from the calls that spawned them. A step that must not be repeated starts only in a turn in which
//       the engine is known to have recorded it. The exception is a job whose result is stored by another engine.
//   RUN-WORKER-2. A turn ends when the run has ended, or when the run cannot continue without a person, time or the
//       engine's steps.
//   RUN-WORKER-3. An answer reaches the run in the turn that contains it, unless its question is over.
//   RUN-WORKER-4. A subagent that is a child run has the same outcome as the child run, even if that is a failure. The
//       child run is requested with the same id in every turn until its call is over.
//   RUN-WORKER-5. A child run never has more authority than the subagent would have had in this run: the same calls are
//       denied, the same identities may answer, and the depth is the same. A subagent with a budget, or with granted or
//       denied tools, stays part of this run (P8).
//   RUN-WORKER-6. A turn is left to other workers if this worker cannot execute it: another version wrote its journal
//       or started it, or the worker does not have a configuration, tool or subagent that the run needs. A step is left
//       to other workers for the same reasons. Therefore, no run is lost while old and new workers run side by side.
//       After `offerMs`, the worker assumes that no worker has what is missing, and the run continues without it.
//   RUN-WORKER-8. The steps of subagents that the run spawns are run like its own steps, whatever their configuration
//       says.
//   RUN-WORKER-9. A run is continued from memory only by the process whose turn the engine has recorded (identified by
//       its marker). Every other process executes the run from the journal.
//   RUN-WORKER-10. A program's message reaches the run at the start of the first turn that contains it, and again if
//       another process continues the run. The message's id ensures that the run reads it only once. A turn reports
//       which of its messages have been read.

import { z } from 'zod';
import type { TraceContext } from '../../values/traceparent.ts';
import {
  aFunction,
  anObject,
  check,
  checkEnvironment,
  type ChecksOf,
} from '../../values/checks.ts';
import { ConfigurationError, isA, OffstageError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { reporter } from '../../values/reporter.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { subagentOf } from '../model/tool-flags.ts';
import type { Environment } from '../ports/environment.ts';
import {
  JobError,
  jobUnreadable,
  OFFER_MS,
  refusedEnd,
  type Job,
  type JobEnd,
  type JobHandler,
  type Jobs,
} from '../ports/jobs.ts';
import type {
  RunBounds,
  RunHandler,
  RunOrder,
  RunTurn,
  RunTurnEnd,
  TakenMessage,
} from '../ports/run-engine.ts';
import { unreadable } from '../runtime/packing.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import { toolsOf } from '../subagent/instance.ts';
import { lostBy } from './refusal.ts';
import { RunPlay, standInsOf } from './run-play.ts';

/** The options of `runWorker`. */
export interface RunWorkerOptions {
  /** The source of time and random values: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /**
   * The configurations of the runs, identified by their `name`. Each needs `runs: 'jobs'`, and so do the configurations
   * that their tools run.
   */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /**
   * Runs the steps in the process that the engine calls: `jobWorker({ … })`. Each step is an entry in the run's
   * workflow.
   * @defaultValue none: `jobs` is required
   */
  readonly steps?: JobHandler;
  /**
   * The engine that runs the steps in other processes and stores their results: `restateJobs(…)`, `temporalJobs(…)`.
   * Each step is also a separate invocation. @defaultValue none: `steps` is required
   */
  readonly jobs?: Jobs;
  /**
   * How long a turn or step is left to other workers if this worker lacks something that it needs, in milliseconds.
   * Choose a time that is longer than a deployment takes. After that, a run whose configuration is missing ends as lost
   * (`NOT_RECOVERABLE`), and any other run continues without what is missing.
   * @defaultValue 600000, ten minutes
   */
  readonly offerMs?: number;
  /**
   * The maximum length of a run's journal, in characters. If the journal becomes longer, the run ends. @defaultValue
   * 1500000
   */
  readonly maxChars?: number;
  /**
   * Receives errors that do not end a run, such as an engine call that is retried or an answer that belongs to no
   * question.
   */
  readonly onError?: (error: unknown, where: string) => void;
}

const MAX_CHARS = 1_500_000;

const optionsSchema = z.strictObject({
  environment: z.unknown(),
  configs: z.record(z.string(), z.unknown()),
  steps: anObject('a handler such as that of jobWorker({ … })', 'do').optional(),
  jobs: anObject('jobs such as those of restateJobs({ … })', 'run', 'cancel').optional(),
  offerMs: z.number().int().min(0).optional(),
  maxChars: z.number().int().min(1).optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<RunWorkerOptions>);

/**
 * Creates the handler that executes the turns of runs: for `restateRunWorkflow`, `temporalRunActivities`.
 * @throws {ConfigurationError} if an option is unknown or invalid, for example if the jobs store no results, or if a
 *   repeated turn would repeat the steps of a configuration (RUN-WORKER-1).
 */
export function runWorker(options: RunWorkerOptions): RunHandler {
  check('runWorker(options)', optionsSchema, options);
  checkEnvironment('runWorker(options): environment', options.environment);
  const { jobs, steps, configs } = options;
  if ((jobs === undefined) === (steps === undefined))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `runWorker(options): expected \`steps\`, such as jobWorker({ … }), or \`jobs\`, got ${jobs ? 'both' : 'neither'}`,
    );
  if (jobs && !jobs.keepsResults)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `runWorker(options).jobs: expected an engine that keeps the ends of its jobs, got "${jobs.name}"`,
    );
  const known = new Map<string, SubagentConfig>();
  for (const [name, config] of Object.entries(configs))
    learn(known, `runWorker(options).configs.${name}`, config);
  return runHandler(options, known);
}

/** Validates a configuration and those that its tools run as subagents, and adds them all to `known`. */
function learn(known: Map<string, SubagentConfig>, path: string, config: SubagentConfig): void {
  const definition = checkSubagentConfig(config, path);
  const { name, runs } = definition;
  if (known.get(name) === config) return;
  const refuse = (what: string): ConfigurationError =>
    new ConfigurationError('INVALID_OPTION', `${path}: ${what}`);
  if (known.has(name)) throw refuse(`expected one configuration named "${name}", got two`);
  if (runs !== 'jobs')
    throw refuse("expected `runs: 'jobs'`: a run on an engine does its steps as jobs");
  known.set(name, config);
  for (const [toolName, entry] of toolsOf(definition).execution)
    if (entry.runs === 'here' && !entry.delegates && !entry.idempotent)
      throw refuse(
        `expected the tool ${toolName} to be \`idempotent\`, or not to have \`runs: 'here'\`: a turn of the run may be done again`,
      );
  for (const [toolName, tool] of Object.entries(definition.tools)) {
    const nested = subagentOf(tool);
    if (nested) learn(known, `${path}.tools.${toolName}`, nested);
  }
}

const boundsSchema = z.strictObject({
  depth: z.number(),
  denied: z.array(z.string()),
  answerableBy: z.array(z.string()).exactOptional(),
}) satisfies z.ZodType<RunBounds>;
/** Unknown fields are refused, because ignoring what a later version added could change the turn. */
const turnSchema = z.strictObject({
  order: z.strictObject({
    id: z.string(),
    config: z.string(),
    task: z.strictObject({
      description: z.string(),
      toolName: z.string(),
      args: z.record(z.string(), z.unknown()),
    }),
    digest: z.string().exactOptional(),
    by: z.string().exactOptional(),
    above: boundsSchema.exactOptional(),
    packed: z.string().exactOptional(),
    // Used only for tracing, so an invalid context is ignored.
    trace: z.custom<TraceContext>().exactOptional(),
  } satisfies ChecksOf<RunOrder>),
  number: z.number(),
  journal: z.unknown(),
  since: z.unknown().optional(),
  waiting: z.unknown(),
  news: z.looseObject({
    type: z.enum(['begun', 'next', 'ended', 'answered', 'due', 'child', 'messages', 'cancelled']),
  }),
  messages: z
    .array(
      z.strictObject({
        nth: z.number(),
        id: z.string(),
        content: z.string(),
        mode: z.enum(['queue', 'steer', 'interrupt']),
        by: z.string().exactOptional(),
        packed: z.string().exactOptional(),
      } satisfies ChecksOf<TakenMessage>),
    )
    .exactOptional(),
  steps: z.enum(['one', 'none']),
  underWay: z.unknown().optional(),
  mark: z.string().exactOptional(),
} satisfies ChecksOf<RunTurn>);

/** The maximum number of runs in memory while the engine runs their steps. */
const MAX_KEPT = 1_000;
/**
 * The maximum number of runs that stay in memory while they wait for a person, so that answers are processed quickly.
 * Each run takes some 30 KB, even if another process receives the answer.
 */
const MAX_KEPT_ASKING = 100;

/** The maximum number of refused turns and steps that this process remembers. */
const MAX_REFUSED = 10_000;

/** The turns and steps that this process leaves to other workers. */
class Offers {
  readonly #environment: Environment;
  readonly #offerMs: number;
  /** The time at which this process first refused each turn or step, by key. */
  readonly #since = new Map<string, number>();

  constructor(environment: Environment, offerMs: number) {
    this.#environment = environment;
    this.#offerMs = offerMs;
  }

  /** Returns whether this turn or step has been left to other workers for long enough. */
  isOver(key: string): boolean {
    const since = this.#since.get(key);
    return since !== undefined && this.#environment.clock.now() - since >= this.#offerMs;
  }

  refused(key: string): void {
    if (!this.#since.has(key)) this.#since.set(key, this.#environment.clock.now());
    forgetOldest(this.#since, MAX_REFUSED);
  }
}

/** Returns whether the engine attempts the turn only once. */
function isOnly({ news }: RunTurn): boolean {
  return news.type === 'next' && news.step.once;
}

function runHandler(
  options: RunWorkerOptions,
  known: ReadonlyMap<string, SubagentConfig>,
): RunHandler {
  /** RUN-WORKER-9 */
  const plays = new KeptPlays(MAX_KEPT);
  const asking = new KeptPlays(MAX_KEPT_ASKING);
  const standIns = standInsOf(known);
  const { jobs, environment, offerMs = OFFER_MS, maxChars = MAX_CHARS } = options;
  const offers = new Offers(environment, offerMs);
  const does: RunHandler['step'] = async ({ isKept = false, ...step }, signal) => {
    if (jobs) return askedOf(jobs, { ...step, once: step.once || isKept }, signal);
    const end = (await options.steps?.do(step, signal)) ?? { lost: true };
    if (!('refused' in end)) return end;
    if (offers.isOver(step.key)) return refusedEnd(end);
    offers.refused(step.key);
    return end;
  };

  function holds({ order, mark }: RunTurn): boolean {
    const kept = plays.get(order.id) ?? asking.get(order.id);
    return mark !== undefined && kept?.mark === mark;
  }

  function ended(outcome: Outcome | null): RunTurnEnd {
    const at = environment.clock.now();
    return { at, journal: [], waiting: [], wakeAt: null, outcome };
  }

  /** Returns the turn's run, from this process's memory or created now, or the error that prevents the turn. */
  function playOf(turn: RunTurn): RunPlay | OffstageError {
    const read = turnSchema.safeParse(turn);
    if (!read.success)
      return jobUnreadable(
        `This worker does not know this form of a turn: ${z.prettifyError(read.error)}`,
      );
    const { order, journal, since = [] } = turn;
    if (order.packed !== undefined || [journal, ...since].some((part) => typeof part === 'string'))
      return unreadable('expected packedHandler(…) around runWorker(…)');
    const config = known.get(order.config);
    if (!config)
      return new OffstageError(
        'NOT_RECOVERABLE',
        `This worker has no configuration "${order.config}": expected one of ${[...known.keys()].map((name) => `"${name}"`).join(', ')}`,
      );
    const isHeld = holds(turn);
    const kept = plays.take(order.id) ?? asking.take(order.id);
    if (kept && isHeld) return kept;
    // Another process has executed turns of the run since then.
    void kept?.leave();
    const { answerableBy = order.above?.answerableBy } = config;
    const bound = answerableBy === config.answerableBy ? config : { ...config, answerableBy };
    return new RunPlay(turn, bound, {
      standIns,
      environment,
      steps: { do: does },
      kept: jobs ?? null,
      maxEndBytes: maxChars,
      report: reporter(options.onError),
    });
  }

  return {
    step: does,
    holds,
    async turn(turn, signal) {
      signal.throwIfAborted();
      const { id } = turn.order;
      const key = `${turn.number}/${id}`;
      const isOver = offers.isOver(key);
      const play = playOf(turn);
      if (!(play instanceof RunPlay)) {
        const { code, message } = play;
        if (isOver) return ended(lostBy(play));
        offers.refused(key);
        const refused = new JobError(code, message, { retryable: true });
        reporter(options.onError)(refused, `turn ${turn.number} of ${id}`);
        if (turn.steps === 'one') return { ...ended(null), missing: 'another worker' };
        throw refused;
      }
      let isKept = false;
      try {
        const rest = await play.untilIdle(turn, signal, isOver);
        const { read } = play;
        const told = read.length > 0 ? { read } : {};
        if ('outcome' in rest) return { ...ended(rest.outcome), ...told };
        // The journal has become too long, but a snapshot may be shorter.
        const isLong = play.journal.chars > maxChars;
        if (isLong) await play.leave(true);
        if (isLong && play.journal.chars > maxChars)
          return ended(
            lostBy(
              new OffstageError(
                'RUN_TOO_LARGE',
                `${id}: expected a journal of at most ${maxChars} characters. Give the subagents shorter outputs or a smaller \`maxSteps\``,
              ),
            ),
          );
        const { waiting, children, wakeAt, steps } = rest;
        const at = environment.clock.now();
        const end = { at, waiting, ...told, wakeAt, children, outcome: null };
        const mark = environment.ids.next('turn');
        // If this process receives the next turn, it continues the run.
        isKept = steps.length + waiting.length > 0 && !isLong;
        play.mark = mark;
        if (isKept) (steps.length > 0 ? plays : asking).keep(id, play);
        return { ...end, ...play.journal.taken(), steps, mark };
      } catch (error) {
        if (play.isLacking) {
          offers.refused(key);
          reporter(options.onError)(error, `turn ${turn.number} of ${id}`);
        }
        const isLeft = isOnly(turn) || (play.isLacking && turn.steps === 'one');
        if (!isLeft || signal.aborted || play.hasBegunStep) throw error;
        return { ...ended(null), missing: 'another worker' };
      } finally {
        if (!isKept) void play.leave();
      }
    },
  };
}

/**
 * Requests a step's result from another engine. If the run no longer waits for the step, the engine is asked to stop
 * it.
 * @throws {JobError} if the step may be requested again.
 */
async function askedOf(jobs: Jobs, job: Job, signal: AbortSignal): Promise<JobEnd> {
  const stop = (): void => {
    const { reason } = signal;
    if (isA(reason, JobError) && reason.code === 'CANCELLED') jobs.cancel(job.key);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await jobs.run(job, { signal });
  } catch (error) {
    if (signal.aborted || !isA(error, JobError) || error.retryable) throw error;
    const { code, message, retryable } = error;
    return { failed: { code, message, retryable } };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** The runs in memory by id. The run whose last turn is the longest ago comes first and is dropped first. */
class KeptPlays {
  readonly #plays = new Map<string, RunPlay>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(id: string): RunPlay | undefined {
    return this.#plays.get(id);
  }

  take(id: string): RunPlay | undefined {
    const play = this.#plays.get(id);
    this.#plays.delete(id);
    return play;
  }

  keep(id: string, play: RunPlay): void {
    this.#plays.set(id, play);
    if (this.#plays.size <= this.#max) return;
    const [oldest = id] = this.#plays.keys();
    void this.take(oldest)?.leave();
  }
}
