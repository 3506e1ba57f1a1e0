// The turns of runs that an engine keeps (ports/run-flow.ts): each plays the run with the runtime of every other run, from
// the journal that the engine has, until the run has ended or waits for people.
//
// Owns:     the configurations by name.
// Does not: keep anything between two turns, or do a step: model and tool calls are jobs of an engine.
//
// Invariants
//   RUN-WORKER-1. A turn that is done again asks for the same jobs under the same keys: the ids of subagents follow from
//       the run and from the calls that spawned them, and every step that must not be repeated is a job.
//   RUN-WORKER-2. A turn ends when the run has ended, or when nothing goes on without people or time.
//   RUN-WORKER-3. An answer reaches the run in the turn that got it, or its question is open no more.

import { z } from 'zod';
import {
  aFunction,
  anObject,
  check,
  checkEnvironment,
  type ChecksOf,
} from '../../values/checks.ts';
import { ConfigurationError, isA, OffstageError } from '../../values/errors.ts';
import { createRuntime } from '../admission/runtime.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import { THE_LEAD } from '../contracts/service-types.ts';
import { subAgentOf } from '../model/tool-flags.ts';
import type { Environment } from '../ports/environment.ts';
import { JobError, type Jobs } from '../ports/jobs.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';
import type { RunHands, RunTurn, RunTurnEnd, RunWait } from '../ports/run-engine.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import { toolsOf } from '../subagent/instance.ts';
import { lostBy } from './refusal.ts';
import { reporter } from '../../values/reporter.ts';
import type { ProgramAnswer, ProgramRequest } from './program-ports.ts';
import { ownedService, type OwnedSubagentTree } from './subagent-service.ts';

export interface RunWorkerOptions {
  /** Time and chance: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The configurations of the runs, found by their `name`. Each has `runs: 'jobs'`, and so have those of its tools. */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /** The engine that does the steps, and keeps their ends: `restateJobs(…)`, `temporalJobs(…)`. */
  readonly jobs: Jobs;
  /** The limit of the text of a run's journal, in characters; a larger one ends the run. @defaultValue 1500000 */
  readonly maxChars?: number;
  /** Receives errors that end no run: an engine that is asked again, an answer that answers nothing. */
  readonly onError?: (error: unknown, where: string) => void;
}

const MAX_CHARS = 1_500_000;

const optionsSchema = z.strictObject({
  environment: z.unknown(),
  configs: z.record(z.string(), z.unknown()),
  jobs: anObject('jobs such as those of restateJobs({ … })', 'run', 'cancel'),
  maxChars: z.number().int().min(1).optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<RunWorkerOptions>);

/**
 * Returns the hands that do turns of runs: for `restateRunWorkflow`, `temporalRunActivities`.
 * @throws {ConfigurationError} for options that are unknown or wrong: jobs that keep no ends, and configurations whose
 * steps would be done again when a turn is (RUN-WORKER-1).
 */
export function runWorker(options: RunWorkerOptions): RunHands {
  check('runWorker(options)', optionsSchema, options);
  checkEnvironment('runWorker(options): environment', options.environment);
  const { jobs, configs } = options;
  if (!jobs.keepsResults)
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

class RunWorker implements RunHands {
  readonly #options: RunWorkerOptions;
  readonly #known: ReadonlyMap<string, SubagentConfig>;

  constructor(options: RunWorkerOptions, known: ReadonlyMap<string, SubagentConfig>) {
    this.#options = options;
    this.#known = known;
  }

  async turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd> {
    signal.throwIfAborted();
    const { environment, jobs, maxChars = MAX_CHARS } = this.#options;
    const { order } = turn;
    const ended = (outcome: Outcome): RunTurnEnd => ({
      at: environment.clock.now(),
      journal: [],
      waiting: [],
      wakeAt: null,
      outcome,
    });
    const config = this.#known.get(order.config);
    if (!config)
      return ended(
        lostBy(
          new OffstageError(
            'NOT_RECOVERABLE',
            `This worker has no configuration "${order.config}": expected one of ${[...this.#known.keys()].map((name) => `"${name}"`).join(', ')}`,
          ),
        ),
      );
    const report = reporter(this.#options.onError);
    const play = new TurnPlay(turn, config, environment, jobs, report);
    const rest = await play.untilRest(signal);
    if ('outcome' in rest) return ended(rest.outcome);
    const { journal } = play;
    if (JSON.stringify(journal).length > maxChars)
      return ended(
        lostBy(
          new OffstageError(
            'RUN_TOO_LARGE',
            `${order.id}: expected a journal of at most ${maxChars} characters. Give the subagents shorter outputs or a smaller \`maxSteps\``,
          ),
        ),
      );
    return { at: environment.clock.now(), journal, ...rest, outcome: null };
  }
}

/** The end of a turn: the run has ended, or waits. */
type Rest = { readonly outcome: Outcome } | Pick<RunTurnEnd, 'waiting' | 'wakeAt'>;

/** One turn, from its news to its rest. */
class TurnPlay {
  readonly #turn: RunTurn;
  readonly #config: SubagentConfig;
  readonly #environment: Environment;
  readonly #entries: TurnJournal;
  readonly #service: OwnedSubagentTree;
  readonly #waiting = new Map<string, RunWait>();
  /** Requests that were answered in this turn, and do not know it yet (RUN-WORKER-3). */
  readonly #answered = new Set<string>();
  #underWay = 0;
  #look: (() => void) | null = null;

  constructor(
    turn: RunTurn,
    config: SubagentConfig,
    environment: Environment,
    jobs: Jobs,
    report: (error: unknown, where: string) => void,
  ) {
    this.#turn = turn;
    this.#config = config;
    this.#environment = environment;
    const { order, waiting } = turn;
    this.#entries = new TurnJournal(turn.journal);
    const askedAt = new Map(waiting.map((wait) => [wait.requestId, wait.askedAt]));
    const runtime = createRuntime({
      environment: withNamedIds(environment, order.id),
      journal: this.#entries,
      jobs: this.#watched(jobs),
      snapshots: { trim: true },
    });
    this.#service = ownedService(
      {
        runtime,
        id: order.id,
        configs: { [config.name]: config },
        onQuestion: (question, signal) => this.#question(question, signal),
        onInput: (request) => this.#input(request),
        onError: report,
      },
      { askedAt: (requestId) => askedAt.get(requestId) },
    );
    this.#service.events.subscribe((chunk) => {
      if (chunk.type === 'input.settled') {
        this.#waiting.delete(chunk.requestId);
        this.#answered.delete(chunk.requestId);
      }
      this.#look?.();
    });
  }

  get journal(): readonly JournalEntry[] {
    return this.#entries.read();
  }

  /** When it goes on by itself, in milliseconds since 1970; null: never. */
  get #wakeAt(): number | null {
    const due = [...this.#waiting.values()].map(({ kind, asked, askedAt }) =>
      kind === 'question' ? askedAt + (asked as AskedQuestion).timeoutMs : Infinity,
    );
    const next = Math.min(this.#service.nextDueAt, ...due);
    return next === Infinity ? null : next;
  }

  /** Plays on until the run has ended or waits; leaves it to the journal. */
  async untilRest(signal: AbortSignal): Promise<Rest> {
    const { order, news } = this.#turn;
    const service = this.#service;
    try {
      await service.recover();
      const receipt = service.spawn({
        config: this.#config,
        task: order.task,
        caller: THE_LEAD,
        idempotencyKey: order.id,
        ...(order.by === undefined ? {} : { by: order.by }),
      });
      if (receipt.status === 'rejected')
        throw new OffstageError(receipt.error.code, receipt.error.message);
      if (news.type === 'cancelled') this.#cancel(news.reason);
      return await this.#rest(receipt.subagentId, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return { outcome: lostBy(error) };
    } finally {
      await service.suspend();
    }
  }

  #cancel(reason: string): void {
    for (const { id, parentId } of this.#service.list(THE_LEAD))
      if (parentId === null) this.#service.cancel(id, THE_LEAD, reason);
  }

  #rest(subagentId: string, signal: AbortSignal): Promise<Rest> {
    const { scheduler, clock } = this.#environment;
    return new Promise((resolve, reject) => {
      let isLooking = false;
      let isOver = false;
      const settle = (done: () => void): void => {
        isOver = true;
        this.#look = null;
        signal.removeEventListener('abort', abort);
        done();
      };
      const look = (): void => {
        isLooking = false;
        if (isOver) return;
        const checked = this.#service.check(subagentId, THE_LEAD);
        const outcome = checked.ok ? checked.report.outcome : null;
        if (outcome) return settle(() => this.#service.whenEnded(() => resolve({ outcome })));
        const wakeAt = this.#wakeAt;
        const hasEnd = wakeAt === null ? this.#waiting.size > 0 : wakeAt > clock.now();
        const waiting = [...this.#waiting.values()];
        if (this.#isAtRest && hasEnd) settle(() => resolve({ waiting, wakeAt }));
        // Entries on their way are written without a sign.
        else if (this.#service.isBusy) again();
      };
      const again = (): void => {
        if (isLooking || isOver) return;
        isLooking = true;
        scheduler.yieldThen(look);
      };
      const abort = (): void => {
        const { reason } = signal;
        if (isA(reason, JobError) && reason.code === 'CANCELLED') this.#cancel(reason.message);
        else settle(() => reject(reason as Error));
      };
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      this.#look = again;
      again();
    });
  }

  /** RUN-WORKER-2. A parent that waits for a subagent waits for whatever that waits for. */
  get #isAtRest(): boolean {
    if (this.#underWay > 0 || this.#answered.size > 0) return false;
    return this.#service.live.every(
      ({ state, isSettled }) =>
        isSettled && (state === 'waiting_for_input' || state === 'waiting_for_children'),
    );
  }

  #question(question: AskedQuestion, signal: AbortSignal): Promise<ProgramAnswer | null> {
    const { requestId } = question;
    signal.addEventListener('abort', () => {
      this.#waiting.delete(requestId);
      this.#answered.delete(requestId);
      this.#look?.();
    });
    const answer = this.#answerTo(requestId);
    if (answer) return Promise.resolve(answer.given ?? null);
    return this.#wait({ requestId, kind: 'question', asked: question });
  }

  #input(request: ProgramRequest): Promise<string | null> {
    const { requestId } = request;
    const answer = this.#answerTo(requestId);
    if (answer) return Promise.resolve(answer.content ?? null);
    return this.#wait({ requestId, kind: 'input', asked: request });
  }

  #answerTo(requestId: string) {
    const { news } = this.#turn;
    if (news.type !== 'answered' || news.answer.requestId !== requestId) return null;
    this.#answered.add(requestId);
    return news.answer;
  }

  /** It waits for another turn. */
  #wait(asked: Omit<RunWait, 'askedAt'>): Promise<never> {
    const { requestId } = asked;
    const known = this.#turn.waiting.find((wait) => wait.requestId === requestId);
    const askedAt = known?.askedAt ?? this.#environment.clock.now();
    this.#waiting.set(requestId, { ...asked, askedAt });
    this.#look?.();
    return new Promise(() => {});
  }

  /** The same engine; steps under way keep the turn from its rest. */
  #watched(jobs: Jobs): Jobs {
    return {
      ...jobs,
      run: async (job, options) => {
        this.#underWay += 1;
        try {
          return await jobs.run(job, options);
        } finally {
          this.#underWay -= 1;
          this.#look?.();
        }
      },
    };
  }
}

/** The journal of one turn: the entries that the engine has, and those of the turn. */
class TurnJournal implements Journal {
  #entries: JournalEntry[];

  constructor(entries: readonly JournalEntry[]) {
    this.#entries = [...entries];
  }

  append(entry: JournalEntry): void {
    this.#entries.push(entry);
  }

  read(): readonly JournalEntry[] {
    return this.#entries;
  }

  trim({ unit, seq }: Pick<JournalEntry, 'unit' | 'seq'>): void {
    const at = this.#entries.findIndex((entry) => entry.unit === unit && entry.seq === seq);
    if (at > 0) this.#entries = this.#entries.slice(at);
  }
}

/** RUN-WORKER-1 */
function withNamedIds(environment: Environment, runId: string): Environment {
  const { clock, scheduler, ids, random } = environment;
  const named = {
    next: (prefix: string) => ids.next(prefix),
    of: (prefix: string, key: string) => `${prefix}_${hashed(`${runId}\n${key}`)}`,
  };
  return { clock, scheduler, ids: named, random };
}

/** Two FNV-1a of 32 bits, from either end: enough for the subagents of one run. */
function hashed(text: string): string {
  let one = 0x811c9dc5;
  let other = 0x811c9dc5 ^ text.length;
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    other = Math.imul(other ^ text.charCodeAt(text.length - 1 - at), 0x01000193);
  }
  return (one >>> 0).toString(36).padStart(7, '0') + (other >>> 0).toString(36).padStart(7, '0');
}
