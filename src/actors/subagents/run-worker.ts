// The turns of runs that an engine keeps (ports/run-flow.ts): each plays the run with the runtime of every other run, from
// the journal that the engine has (run-play.ts).
//
// A step is an entry of the engine's own history of the run: a turn ends before the next step that the engine has to record.
// With `jobs`, whoever does a step asks another engine for it, which keeps its end: it may be asked for again.
//
// Owns:     the configurations by name; the runs that this process plays on in their next turn.
// Does not: play a run, or keep anything that another process would miss.
//
// Invariants
//   RUN-WORKER-1. A turn that is done again asks for the same steps under the same keys: the ids of subagents follow from
//       the run and from the calls that spawned them. A step that must not be repeated is begun in no turn that does not
//       know that the engine has recorded it, unless it is a job whose end another engine keeps.
//   RUN-WORKER-2. A turn ends when the run has ended, or when nothing goes on without people, time or the engine's steps.
//   RUN-WORKER-3. An answer reaches the run in the turn that got it, or its question is open no more.
//   RUN-WORKER-4. A subagent with a run of its own has that run's outcome, its failure included; it is asked for under the
//       same id in every turn, and no more once its call is over.
//   RUN-WORKER-5. A run of its own has no more authority than the subagent would have had in this run: denied calls, who
//       may answer, and the depth. One under a budget, or with granted or denied tools, is a part of this run (P8).
//   RUN-WORKER-6. A turn that this worker cannot do, because another version has written its journal or begun it, or because it
//       lacks a configuration, a tool or a subagent of the run, is left to other workers, and so is a step: while old and new ones
//       work side by side, no run is lost. After `offerMs` no worker has what is missing, and the run does without.
//   RUN-WORKER-8. Subagents that are spawned in the run do their steps as its own do, whatever their configuration says.
//   RUN-WORKER-9. A run is played on from memory only by the process that did the turn which the engine has recorded (its
//       mark); every other process plays it from the journal.
//   RUN-WORKER-10. A message of a program reaches the run at the beginning of the first turn that has it, and again wherever
//       another process plays on; the run reads it once, by its id. A turn tells which of its messages were read.

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
import { subAgentOf } from '../model/tool-flags.ts';
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
import { RunPlay, standInsOf, type StandIns } from './run-play.ts';

/** The options of `runWorker`. */
export interface RunWorkerOptions {
  /** Time and chance: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The configurations of the runs, found by their `name`. Each has `runs: 'jobs'`, and so have those of its tools. */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /**
   * Does the steps, where the engine wants them done: `jobWorker({ … })`. Each is an entry of the run's own workflow.
   * @defaultValue none: `jobs` is needed
   */
  readonly steps?: JobHandler;
  /**
   * The engine that does the steps elsewhere, and keeps their ends: `restateJobs(…)`, `temporalJobs(…)`. Each is an invocation of
   * its own, too. @defaultValue none: `steps` is needed
   */
  readonly jobs?: Jobs;
  /**
   * How long a turn or step that needs what this worker does not know is left to other workers, in milliseconds: longer than a
   * deploy takes. Then the run ends as lost (`NOT_RECOVERABLE`) if it is its configuration, and else does without.
   * @defaultValue 600000, ten minutes
   */
  readonly offerMs?: number;
  /** The limit of the text of a run's journal, in characters; a larger one ends the run. @defaultValue 1500000 */
  readonly maxChars?: number;
  /** Receives errors that end no run: an engine that is asked again, an answer that answers nothing. */
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
 * Returns the handler that does turns of runs: for `restateRunWorkflow`, `temporalRunActivities`.
 * @throws {ConfigurationError} for options that are unknown or wrong: jobs that keep no ends, and configurations whose
 * steps would be done again when a turn is (RUN-WORKER-1).
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
  return new RunWorker(options, known);
}

/** Checks a configuration, and those of the tools that run subagents. */
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
    const nested = subAgentOf(tool);
    if (nested) learn(known, `${path}.tools.${toolName}`, nested);
  }
}

const boundsSchema = z.strictObject({
  depth: z.number(),
  denied: z.array(z.string()),
  answerableBy: z.array(z.string()).exactOptional(),
}) satisfies z.ZodType<RunBounds>;
/** A worker of an earlier version does not know what a later one has added: without it, the turn would be another one. */
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
    // It decides nothing: one that cannot be read is none.
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

/** Runs that are kept while the engine does their steps. */
const MAX_KEPT = 1_000;
/**
 * Runs that are kept while people have their questions, for answers that come at once. Each takes some 30 KB, also where
 * another process got the answer.
 */
const MAX_KEPT_ASKING = 100;

/** Turns and steps that this process has refused, in all. */
const MAX_REFUSED = 10_000;

/** The turns and steps that are left to other workers. */
class Offers {
  readonly #environment: Environment;
  readonly #offerMs: number;
  /** When this process has refused it first, by its key. */
  readonly #since = new Map<string, number>();

  constructor(environment: Environment, offerMs: number) {
    this.#environment = environment;
    this.#offerMs = offerMs;
  }

  /** Other workers have had their time. */
  isOver(key: string): boolean {
    const since = this.#since.get(key);
    return since !== undefined && this.#environment.clock.now() - since >= this.#offerMs;
  }

  refused(key: string): void {
    if (!this.#since.has(key)) this.#since.set(key, this.#environment.clock.now());
    forgetOldest(this.#since, MAX_REFUSED);
  }
}

/** Its engine makes no second attempt at such a turn. */
function isOnly({ news }: RunTurn): boolean {
  return news.type === 'next' && news.step.once;
}

class RunWorker implements RunHandler {
  readonly step: RunHandler['step'];
  readonly #options: RunWorkerOptions;
  readonly #known: ReadonlyMap<string, SubagentConfig>;
  readonly #standIns: StandIns;
  /** RUN-WORKER-9 */
  readonly #kept = new KeptPlays(MAX_KEPT);
  readonly #asking = new KeptPlays(MAX_KEPT_ASKING);
  readonly #offers: Offers;

  constructor(options: RunWorkerOptions, known: ReadonlyMap<string, SubagentConfig>) {
    this.#options = options;
    this.#known = known;
    this.#standIns = standInsOf(known);
    const { steps, jobs, environment, offerMs = OFFER_MS } = options;
    this.#offers = new Offers(environment, offerMs);
    this.step = async ({ isKept = false, ...step }, signal) => {
      if (jobs) return askedOf(jobs, { ...step, once: step.once || isKept }, signal);
      const end = (await steps?.do(step, signal)) ?? { lost: true };
      if (!('refused' in end)) return end;
      if (this.#offers.isOver(step.key)) return refusedEnd(end);
      this.#offers.refused(step.key);
      return end;
    };
  }

  holds({ order, mark }: RunTurn): boolean {
    const kept = this.#kept.get(order.id) ?? this.#asking.get(order.id);
    return mark !== undefined && kept?.mark === mark;
  }

  async turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd> {
    signal.throwIfAborted();
    const { environment, maxChars = MAX_CHARS } = this.#options;
    const { id } = turn.order;
    const key = `${turn.number}/${id}`;
    const isOver = this.#offers.isOver(key);
    const play = this.#playOf(turn);
    if (!(play instanceof RunPlay)) {
      const { code, message } = play;
      if (isOver) return this.#ended(lostBy(play));
      this.#offers.refused(key);
      const refused = new JobError(code, message, { retryable: true });
      reporter(this.#options.onError)(refused, `turn ${turn.number} of ${id}`);
      if (turn.steps === 'one') return { ...this.#ended(null), missing: 'another worker' };
      throw refused;
    }
    let isKept = false;
    try {
      const rest = await play.untilRest(turn, signal, isOver);
      const { read } = play;
      const told = read.length > 0 ? { read } : {};
      if ('outcome' in rest) return { ...this.#ended(rest.outcome), ...told };
      // A snapshot at its end is shorter than a long journal.
      const isLong = play.journal.chars > maxChars;
      if (isLong) await play.leave(true);
      if (isLong && play.journal.chars > maxChars)
        return this.#ended(
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
      // This process plays it on, if it is asked for the next turn.
      isKept = steps.length + waiting.length > 0 && !isLong;
      play.mark = mark;
      if (isKept) (steps.length > 0 ? this.#kept : this.#asking).keep(id, play);
      return { ...end, ...play.journal.taken(), steps, mark };
    } catch (error) {
      if (play.isLacking) {
        this.#offers.refused(key);
        reporter(this.#options.onError)(error, `turn ${turn.number} of ${id}`);
      }
      const isLeft = isOnly(turn) || (play.isLacking && turn.steps === 'one');
      if (!isLeft || signal.aborted || play.hasBegunStep) throw error;
      return { ...this.#ended(null), missing: 'another worker' };
    } finally {
      if (!isKept) void play.leave();
    }
  }

  #ended(outcome: Outcome | null): RunTurnEnd {
    const at = this.#options.environment.clock.now();
    return { at, journal: [], waiting: [], wakeAt: null, outcome };
  }

  /** Returns the play that this process has kept, or another one; or why there is none. */
  #playOf(turn: RunTurn): RunPlay | OffstageError {
    const read = turnSchema.safeParse(turn);
    if (!read.success)
      return jobUnreadable(
        `This worker does not know this form of a turn: ${z.prettifyError(read.error)}`,
      );
    const { environment, jobs, maxChars = MAX_CHARS, onError } = this.#options;
    const { order, journal, since = [] } = turn;
    if (order.packed !== undefined || [journal, ...since].some((part) => typeof part === 'string'))
      return unreadable('expected packedHandler(…) around runWorker(…)');
    const config = this.#known.get(order.config);
    if (!config)
      return new OffstageError(
        'NOT_RECOVERABLE',
        `This worker has no configuration "${order.config}": expected one of ${[...this.#known.keys()].map((name) => `"${name}"`).join(', ')}`,
      );
    const isHeld = this.holds(turn);
    const kept = this.#kept.take(order.id) ?? this.#asking.take(order.id);
    if (kept && isHeld) return kept;
    // Another process has done turns since.
    void kept?.leave();
    const { answerableBy = order.above?.answerableBy } = config;
    const bound = answerableBy === config.answerableBy ? config : { ...config, answerableBy };
    return new RunPlay(turn, bound, {
      standIns: this.#standIns,
      environment,
      steps: { do: (job, signal) => this.step(job, signal) },
      kept: jobs ?? null,
      maxEndBytes: maxChars,
      report: reporter(onError),
    });
  }
}

/**
 * Asks another engine for a step. One that the run no longer waits for is told to stop.
 * @throws {JobError} where the step may be asked for again.
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

/** By the ids of the runs; the one that has had no turn for longest is the first, and goes first. */
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
