// The turns of runs that an engine keeps (ports/run-flow.ts): each plays the run with the runtime of every other run, from
// the journal that the engine has, until the run has ended or waits for people.
//
// A subagent of the run that a tool runs (`createSubAgentTool`) is a run of its own, beside this one. In the turns of the run
// a stand-in has its place: it has the limits of none, and its one step is the whole work of the other run. So the run waits,
// is cancelled and goes on after a crash as with any subagent.
//
// Owns:     the configurations by name, and those that stand in for subagents with runs of their own.
// Does not: keep anything between two turns, or do a step: model and tool calls are jobs of an engine.
//
// Invariants
//   RUN-WORKER-1. A turn that is done again asks for the same jobs under the same keys: the ids of subagents follow from
//       the run and from the calls that spawned them, and every step that must not be repeated is a job.
//   RUN-WORKER-2. A turn ends when the run has ended, or when nothing goes on without people or time.
//   RUN-WORKER-3. An answer reaches the run in the turn that got it, or its question is open no more.
//   RUN-WORKER-4. A subagent with a run of its own has that run's outcome, its failure included; it is asked for under the
//       same id in every turn, and no more once its call is over.
//   RUN-WORKER-5. A run of its own has no more authority than the subagent would have had in this run: denied calls, who
//       may answer, and the depth. One under a budget, or with granted or denied tools, is a part of this run (P8).
//   RUN-WORKER-6. A turn whose journal another version has written, which this one does not read, is left to other workers: while
//       old and new ones work side by side, no run is lost.
//   RUN-WORKER-7. A step that an earlier attempt at the turn broke off, for a message to its subagent, is under way again until this
//       attempt does the same, or nothing else goes on.
//   RUN-WORKER-8. Subagents that are spawned in the run do their steps as jobs, whatever their configuration says.

import { z } from 'zod';
import {
  aFunction,
  anObject,
  check,
  checkEnvironment,
  type ChecksOf,
} from '../../values/checks.ts';
import { codeOf, ConfigurationError, isA, OffstageError } from '../../values/errors.ts';
import { defaultSessionLimits } from '../admission/limits.ts';
import { createRuntime } from '../admission/runtime.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import { THE_LEAD } from '../contracts/service-types.ts';
import { runOfItsOwn, subAgentOf, type OnParentClose } from '../model/tool-flags.ts';
import type { Environment } from '../ports/environment.ts';
import { JobError, unlessAborted, type Job, type JobEnd, type Jobs } from '../ports/jobs.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';
import type {
  RunChild,
  RunHandler,
  RunOrder,
  RunTurn,
  RunTurnEnd,
  RunWait,
} from '../ports/run-engine.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import { toolsOf } from '../subagent/instance.ts';
import type { Subagent } from '../subagent/subagent.ts';
import { lostBy } from './refusal.ts';
import { reporter } from '../../values/reporter.ts';
import { unreadable } from '../runtime/packing.ts';
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
/** Turns of the event loop without a sign, after which a call that waits for subagents has begun. */
const MAX_BEGINNINGS = 20;
const MAX_CHILD_ID_CHARS = 200;

const optionsSchema = z.strictObject({
  environment: z.unknown(),
  configs: z.record(z.string(), z.unknown()),
  jobs: anObject('jobs such as those of restateJobs({ … })', 'run', 'cancel'),
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

/** A subagent with a run of its own, as the run that it works for has it. */
interface StandIn {
  readonly config: SubagentConfig;
  readonly onParentClose: OnParentClose;
}

/** By the configurations of the tools that run them. */
type StandIns = ReadonlyMap<SubagentConfig, StandIn>;

/** In the run of its own it has its own limit. */
const NO_TIMEOUT_MS = Number.MAX_SAFE_INTEGER;

function standInsOf(known: ReadonlyMap<string, SubagentConfig>): StandIns {
  const standIns = new Map<SubagentConfig, StandIn>();
  for (const { tools = {} } of known.values())
    for (const tool of Object.values(tools)) {
      const onParentClose = runOfItsOwn(tool);
      const nested = subAgentOf(tool);
      if (!nested || !onParentClose) continue;
      const { name, title, inputSchema } = nested;
      const config: SubagentConfig = {
        name,
        instructions: '',
        runs: 'jobs',
        ...(title ? { title } : {}),
        inputSchema,
        // The run of its own has checked it.
        outputSchema: z.unknown(),
        structured: 'off',
        timeout: NO_TIMEOUT_MS,
        retry: { maxAttempts: 1 },
      };
      standIns.set(nested, { config, onParentClose });
    }
  return standIns;
}

/** The answer of the one step of a stand-in. */
function endOf(outcome: Outcome | null): JobEnd {
  if (outcome?.status === 'completed') {
    const text = JSON.stringify(outcome.output);
    const message = { role: 'assistant', content: text };
    const { usage } = outcome;
    return {
      done: JSON.stringify({
        text,
        assistantMessages: [message],
        calls: [],
        finish: 'stop',
        usage,
      }),
    };
  }
  const { code, message } = outcome?.error ?? {
    code: outcome ? 'CANCELLED' : 'JOB_LOST',
    message: outcome ? `The subagent was ${outcome.status}` : 'The engine lost the subagent',
  };
  return { failed: { code, message, retryable: false } };
}

class RunWorker implements RunHandler {
  readonly #options: RunWorkerOptions;
  readonly #known: ReadonlyMap<string, SubagentConfig>;
  readonly #standIns: StandIns;

  constructor(options: RunWorkerOptions, known: ReadonlyMap<string, SubagentConfig>) {
    this.#options = options;
    this.#known = known;
    this.#standIns = standInsOf(known);
  }

  async turn(turn: RunTurn, signal: AbortSignal): Promise<RunTurnEnd> {
    signal.throwIfAborted();
    const { environment, jobs, maxChars = MAX_CHARS } = this.#options;
    const { order, journal: entries } = turn;
    const ended = (outcome: Outcome): RunTurnEnd => ({
      at: environment.clock.now(),
      journal: [],
      waiting: [],
      wakeAt: null,
      outcome,
    });
    if (order.packed !== undefined || typeof entries === 'string')
      return ended(lostBy(unreadable('expected packedRunHandler(…) around runWorker(…)')));
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
    const { answerableBy = order.above?.answerableBy } = config;
    const bound = answerableBy === config.answerableBy ? config : { ...config, answerableBy };
    const play = new TurnPlay(turn, entries, bound, this.#standIns, environment, jobs, report);
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
type Rest = { readonly outcome: Outcome } | Pick<RunTurnEnd, 'waiting' | 'wakeAt' | 'children'>;

/** One turn, from its news to its rest. */
class TurnPlay {
  readonly #turn: RunTurn;
  readonly #config: SubagentConfig;
  readonly #environment: Environment;
  readonly #entries: TurnJournal;
  readonly #service: OwnedSubagentTree;
  readonly #standIns: ReadonlyMap<SubagentConfig, StandIn>;
  readonly #waiting = new Map<string, RunWait>();
  /** The runs that are waited for, by the subagents of this run that they are. */
  readonly #children = new Map<string, RunChild>();
  /** Requests that were answered in this turn, and do not know it yet (RUN-WORKER-3). */
  readonly #answered = new Set<string>();
  #underWay = 0;
  /** RUN-WORKER-7. By the keys of the jobs: gives a subagent the end that the engine has. */
  readonly #brokenOff = new Map<string, () => void>();
  #look: (() => void) | null = null;

  constructor(
    turn: RunTurn,
    entries: readonly JournalEntry[],
    config: SubagentConfig,
    standIns: StandIns,
    environment: Environment,
    jobs: Jobs,
    report: (error: unknown, where: string) => void,
  ) {
    this.#turn = turn;
    this.#config = config;
    this.#environment = environment;
    this.#standIns = new Map([...standIns.values()].map((standIn) => [standIn.config, standIn]));
    const { order, waiting } = turn;
    const { depth = 0, denied = [] } = order.above ?? {};
    this.#entries = new TurnJournal(entries);
    const askedAt = new Map(waiting.map((wait) => [wait.requestId, wait.askedAt]));
    const runtime = createRuntime({
      environment: withNamedIds(environment, order.id),
      journal: this.#entries,
      jobs: this.#watched(jobs),
      snapshots: { trim: true },
      // Every step is a job: the engine limits how many are done at once.
      maxTotalActive: Number.MAX_SAFE_INTEGER,
    });
    this.#service = ownedService(
      {
        runtime,
        id: order.id,
        configs: { [config.name]: config },
        constraints: {
          maxConcurrentPerSession: Number.MAX_SAFE_INTEGER,
          maxDepth: Math.max(1, defaultSessionLimits.maxDepth - depth),
        },
        onQuestion: (question, signal) => this.#question(question, signal),
        // The run that waits for a child does not answer it.
        onInput: (request) => (order.above ? null : this.#input(request)),
        onError: report,
      },
      {
        askedAt: (requestId) => askedAt.get(requestId),
        standIn: (wanted) => standIns.get(wanted)?.config ?? wanted,
        stepsAreJobs: true,
        denied: new Set(denied),
      },
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
    // A stand-in has no time of its own.
    return next >= NO_TIMEOUT_MS ? null : next;
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
      // RUN-WORKER-6
      if (signal.aborted || codeOf(error) === 'JOURNAL_VERSION') throw error;
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
      let beginnings = 0;
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
        const isAwaiting = this.#waiting.size + this.#children.size > 0;
        const hasEnd = wakeAt === null ? isAwaiting : wakeAt > clock.now();
        const waiting = [...this.#waiting.values()];
        const children = [...this.#children.values()];
        // A call that spawns a subagent, or waits for one, gives no sign of its beginning.
        if (this.#isAtRest && this.#isBeginningToWait && beginnings < MAX_BEGINNINGS) {
          beginnings += 1;
          again();
        } else if (this.#isAtRest && this.#brokenOff.size > 0) this.#giveUpBrokenOff();
        else if (this.#isAtRest && hasEnd) settle(() => resolve({ waiting, wakeAt, children }));
        // Entries on their way are written without a sign.
        else if (this.#service.isBusy) again();
      };
      const sign = (): void => {
        beginnings = 0;
        again();
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
      this.#look = sign;
      sign();
    });
  }

  /** RUN-WORKER-2. A parent that waits for a subagent waits for whatever that waits for. */
  get #isAtRest(): boolean {
    if (this.#underWay > this.#brokenOff.size || this.#answered.size > 0) return false;
    const brokenOff = new Set([...this.#brokenOff.keys()].map((key) => this.#subagentOf(key)));
    return this.#service.live.every(
      ({ id, state, isSettled }) =>
        isSettled &&
        (state === 'waiting_for_input' ||
          state === 'waiting_for_children' ||
          this.#children.has(id) ||
          brokenOff.has(id)),
    );
  }

  get #isBeginningToWait(): boolean {
    return this.#service.live.some(
      ({ id, state }) => state === 'waiting_for_children' && !this.#service.waits.isWaiting(id),
    );
  }

  #giveUpBrokenOff(): void {
    for (const end of this.#brokenOff.values()) end();
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

  /** RUN-WORKER-4. Resolves in the turn that has the outcome. */
  async #ended(
    subagent: Subagent,
    { onParentClose }: StandIn,
    signal: AbortSignal,
  ): Promise<JobEnd> {
    const { order, news } = this.#turn;
    const { id: subagentId, definition, task } = subagent;
    const id = childIdOf(order.id, subagentId);
    if (news.type === 'child' && news.id === id) return endOf(news.outcome as Outcome | null);
    // RUN-WORKER-5
    const bounds = this.#service.boundsOf(subagentId);
    if (!bounds) throw new OffstageError('INTERNAL', `there is no subagent ${subagentId}`);
    const above = { ...bounds, depth: bounds.depth + (order.above?.depth ?? 0) };
    const { by } = order;
    const own: RunOrder = {
      id,
      config: definition.name,
      task,
      ...(by === undefined ? {} : { by }),
      above,
    };
    this.#children.set(subagentId, { order: own, onParentClose });
    this.#look?.();
    const over = (): boolean => this.#children.delete(subagentId);
    signal.addEventListener('abort', over, { once: true });
    return unlessAborted(new Promise<never>(() => {}), signal);
  }

  /** Returns the id of the subagent whose step a job is. */
  #subagentOf(key: string): string {
    const prefix = `${this.#turn.order.id}/`;
    const [id = ''] = key.startsWith(prefix) ? key.slice(prefix.length).split(':', 1) : [];
    return id;
  }

  /** Returns the stand-in whose step a job is. */
  #standInOf({ key }: Job): [Subagent, StandIn] | null {
    const subagent = this.#service.get(this.#subagentOf(key));
    const standIn = subagent && this.#standIns.get(subagent.definition.source);
    return standIn ? [subagent, standIn] : null;
  }

  /**
   * The same engine; steps under way keep the turn from its rest. The step of a stand-in is another run. Until the turn is
   * recorded, it may be done again and ask for the ends of all its jobs: none is given up.
   */
  #watched(jobs: Jobs): Jobs {
    return {
      name: jobs.name,
      keepsResults: jobs.keepsResults,
      maxBytes: jobs.maxBytes,
      cancel: (key) => jobs.cancel(key),
      run: async (job, options) => {
        const found = this.#standInOf(job);
        if (found) return this.#ended(...found, options.signal);
        this.#underWay += 1;
        try {
          const end = await jobs.run(job, options);
          if (isCancelled(end)) await this.#untilBrokenOff(job, options.signal);
          return end;
        } finally {
          this.#underWay -= 1;
          this.#look?.();
        }
      },
    };
  }

  /** RUN-WORKER-7 */
  async #untilBrokenOff({ key }: Job, signal: AbortSignal): Promise<void> {
    try {
      const givenUp = new Promise<void>((resolve) => this.#brokenOff.set(key, resolve));
      this.#look?.();
      await unlessAborted(givenUp, signal);
    } finally {
      this.#brokenOff.delete(key);
    }
  }
}

function isCancelled(end: JobEnd): boolean {
  return 'failed' in end && end.failed.code === 'CANCELLED';
}

/**
 * Returns the id of the run that a subagent is, the same in every turn. An engine's workflow can write it without a digest,
 * which its sandbox may lack.
 */
function childIdOf(runId: string, subagentId: string): string {
  const id = `${runId}/${subagentId}`;
  if (encodeURIComponent(id).length <= MAX_CHILD_ID_CHARS) return id;
  return `${hashed(runId)}${hashed(`above ${runId}`)}/${subagentId}`;
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
