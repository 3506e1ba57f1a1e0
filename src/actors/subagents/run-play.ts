// How a worker executes a run that an engine stores. In each turn, the ordinary runtime executes the run from the
// engine's journal, with the turn's news, until the run waits. If the engine records the run's steps, the next turn may
// continue the run from memory.
//
// A subagent that a tool runs (`createSubAgentTool`) is a separate run, called a child run. In this run, a stand-in
// takes the subagent's place. The stand-in has no limits, and its single step is the whole child run. The run can
// therefore wait, be cancelled and recover in the same way as with any other subagent.
//
// Owns:     the runtime of the run, the steps that the run waits for, and the step that it executes itself.
// Does not: decide which process executes a turn (run-worker.ts, which defines the invariants), or store anything.

import { withoutUndefined } from '../../values/without-undefined.ts';
import { z } from 'zod';
import { codeOf, isA, OffstageError } from '../../values/errors.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { shortHashOf } from '../../values/storable.ts';
import { defaultSessionLimits } from '../admission/limits.ts';
import { createRuntime } from '../admission/runtime.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import { readOutcome, type Outcome, type StoredOutcome } from '../contracts/outcome.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import { THE_LEAD } from '../contracts/service-types.ts';
import { runOfItsOwn, subagentOf, type OnParentClose } from '../model/tool-flags.ts';
import type { Environment } from '../ports/environment.ts';
import {
  cancelledEnd,
  doStep,
  endWithin,
  JobError,
  type Job,
  type JobEnd,
  type JobHandler,
  type Jobs,
} from '../ports/jobs.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';
import type {
  RunAnswer,
  RunChild,
  RunOrder,
  RunStep,
  RunTurn,
  RunTurnEnd,
  RunWait,
} from '../ports/run-engine.ts';
import { readTraceContext, type TraceContext } from '../../values/traceparent.ts';
import { isModelCall } from '../subagent/step-jobs.ts';
import type { Subagent } from '../subagent/subagent.ts';
import type { ProgramAnswer, ProgramRequest } from './program-ports.ts';
import { stepJobs } from '../subagent/step-jobs.ts';
import { lostBy } from './refusal.ts';
import { ownedService, type OwnedSubagentTree } from './subagent-service.ts';

const MAX_CHILD_ID_CHARS = 200;
/** A call that waits for subagents counts as started after this many turns of the event loop without activity. */
const MAX_BEGINNINGS = 20;
/** The engine's name in the journals of runs whose steps the engine records. */
const ENGINE_OF_STEPS = 'run';

/** A subagent that is a child run, from the perspective of its parent run. */
interface StandIn {
  readonly config: SubagentConfig;
  readonly onParentClose: OnParentClose;
}

/** The stand-ins, each stored under the configuration of the tool that runs it. */
export type StandIns = ReadonlyMap<SubagentConfig, StandIn>;

/** The time limit of a stand-in: none, because the child run has its own. */
const NO_TIMEOUT_MS = Number.MAX_SAFE_INTEGER;

export function standInsOf(known: ReadonlyMap<string, SubagentConfig>): StandIns {
  const standIns = new Map<SubagentConfig, StandIn>();
  for (const { tools = {} } of known.values())
    for (const tool of Object.values(tools)) {
      const onParentClose = runOfItsOwn(tool);
      const nested = subagentOf(tool);
      if (!nested || !onParentClose) continue;
      const { name, title, inputSchema } = nested;
      const config: SubagentConfig = {
        name,
        instructions: '',
        runs: 'jobs',
        ...(title ? { title } : {}),
        inputSchema,
        // Not checked again, because the child run has already checked its result.
        outputSchema: z.unknown(),
        structured: 'off',
        timeout: NO_TIMEOUT_MS,
        retry: { maxAttempts: 1 },
      };
      standIns.set(nested, { config, onParentClose });
    }
  return standIns;
}

/** Returns the result of a stand-in's only step. */
function endOf(stored: StoredOutcome | null): JobEnd {
  const outcome = stored && readOutcome(stored);
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
    code: 'JOB_LOST',
    message: 'The engine lost the subagent',
  };
  return { failed: { code, message, retryable: false } };
}

/** The end of a turn: either the run has ended, or it waits. */
type TurnEnd =
  | { readonly outcome: Outcome }
  | (Pick<RunTurnEnd, 'waiting' | 'wakeAt' | 'children'> & { readonly steps: readonly RunStep[] });

export interface RunPlaySetup {
  readonly standIns: StandIns;
  readonly environment: Environment;
  /** Runs the steps that a turn may execute itself. The engine runs all other steps. */
  readonly steps: JobHandler;
  /** An engine that stores the results of steps, so that steps with `once` may be requested again. Null: none. */
  readonly kept: Jobs | null;
  /** The maximum size of a step's result, in bytes. */
  readonly maxEndBytes: number;
  readonly report: (error: unknown, where: string) => void;
}

/** A step that the run waits for and does not execute itself. */
interface Wanted {
  readonly job: Job;
  readonly subagentId: string;
  settle(end: JobEnd | Promise<JobEnd>): void;
}

/** A question or request that a person must answer. */
interface Asked {
  readonly wait: RunWait;
  answer(answer: RunAnswer): void;
}

interface AwaitedChild {
  readonly child: RunChild;
  settle(end: JobEnd): void;
}

export class RunPlay {
  /** The marker of the last completed turn, or null before the first turn has ended. */
  mark: string | null = null;
  #turn: RunTurn;
  readonly #config: SubagentConfig;
  readonly #setup: RunPlaySetup;
  readonly #journal: PlayJournal;
  readonly #service: OwnedSubagentTree;
  readonly #standIns: ReadonlyMap<SubagentConfig, StandIn>;
  readonly #asked = new Map<string, Asked>();
  /** The child runs that this run waits for, each with the subagent that represents it. */
  readonly #children = new Map<string, AwaitedChild>();
  /** The requested steps by their keys. */
  readonly #wanted = new Map<string, Wanted>();
  /**
   * The messages that this process has passed to the run, by number; the value is true once a model call has read the
   * message.
   */
  readonly #sent = new Map<number, boolean>();
  /** Steps that this process is running. */
  readonly #own = new Map<string, AbortController>();
  #underWay = 0;
  /** Whether this turn's step has started. */
  #hasBegunOne = false;
  #hasBegun = false;
  #fail: ((error: unknown) => void) | null = null;
  /** Whether the turn must be attempted again. */
  #isFailed = false;
  /** A resource that the run needs but this worker lacks (RUN-WORKER-6). */
  #lacking: JobError | null = null;
  /** Whether the run continues without the resources that are missing. */
  #doesWithout = false;
  #look: (() => void) | null = null;
  #leaving: Promise<void> | null = null;

  constructor(turn: RunTurn, config: SubagentConfig, setup: RunPlaySetup) {
    this.#turn = turn;
    this.#config = config;
    this.#setup = setup;
    const { environment, standIns, report } = setup;
    this.#standIns = new Map([...standIns.values()].map((standIn) => [standIn.config, standIn]));
    const { order, waiting, journal, since = [] } = turn;
    const { depth = 0, denied = [] } = order.above ?? {};
    const entries = [journal, ...since].flatMap((part) => (typeof part === 'string' ? [] : part));
    // Each change to the run appends an entry.
    this.#journal = new PlayJournal(entries, readTraceContext(order.trace) ?? null, () =>
      this.#look?.(),
    );
    const askedAt = new Map(waiting.map((wait) => [wait.requestId, wait.askedAt]));
    const runtime = createRuntime({
      environment: withNamedIds(environment, order.id),
      journal: this.#journal,
      jobs: this.#recorded(),
      snapshots: { trim: true },
      // The engine limits the number of concurrent steps.
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
        // The parent run does not answer the requests of a child run.
        onInput: (request) => (order.above ? null : this.#input(request)),
        onError: report,
      },
      {
        askedAt: (requestId) => askedAt.get(requestId),
        terms: {
          standIn: (wanted) => standIns.get(wanted)?.config ?? wanted,
          stepsAreJobs: true,
          denied: new Set(denied),
        },
        onNews: (news) => {
          if (news.type === 'lacks') this.#lacks(news.what);
        },
      },
    );
    this.#service.events.subscribe((chunk) => {
      if (chunk.type === 'input.settled') this.#asked.delete(chunk.requestId);
      this.#look?.();
    });
  }

  /** Whether the step that the turn executes itself has started. */
  get hasBegunStep(): boolean {
    return this.#hasBegunOne;
  }

  get journal(): PlayJournal {
    return this.#journal;
  }

  /** Whether the turn was skipped because the worker lacks a resource that the run needs. */
  get isLacking(): boolean {
    return this.#lacking !== null;
  }

  /**
   * Drops the run from memory, so that it continues from its journal. `isTaken`: whether a final snapshot is written
   * first.
   */
  leave(isTaken = false): Promise<void> {
    const { report } = this.#setup;
    const leave = isTaken ? this.#service.suspend() : this.#service.leave();
    return (this.#leaving ??= leave.catch((error: unknown) =>
      report(error, `run ${this.#turn.order.id}`),
    ));
  }

  /** When the run continues even without news, in milliseconds since 1970, or null if it waits for news. */
  get #wakeAt(): number | null {
    const due = [...this.#asked.values()].map(({ wait: { kind, asked, askedAt } }) =>
      kind === 'question' ? askedAt + (asked as AskedQuestion).timeoutMs : Infinity,
    );
    const next = Math.min(this.#service.nextDueAt, ...due);
    // A stand-in has no deadline of its own.
    return next >= NO_TIMEOUT_MS ? null : next;
  }

  /**
   * Executes the run until it ends or waits. `doesWithout`: the run continues without missing resources, because no
   * other worker has them either.
   */
  async untilIdle(turn: RunTurn, signal: AbortSignal, doesWithout: boolean): Promise<TurnEnd> {
    this.#turn = turn;
    this.#doesWithout = doesWithout;
    this.#hasBegunOne = false;
    const { order, news } = turn;
    const service = this.#service;
    try {
      if (this.#hasBegun) this.#hear();
      else {
        this.#hasBegun = true;
        const { lost } = await service.recover();
        for (const { reason } of lost) this.#lacks(reason);
      }
      if (this.#lacking) throw this.#lacking;
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
      return await this.#untilIdle(receipt.subagentId, signal);
    } catch (error) {
      // RUN-WORKER-6
      if (signal.aborted || this.#isFailed || this.#lacking || codeOf(error) === 'JOURNAL_VERSION')
        throw error;
      return { outcome: lostBy(error) };
    }
  }

  #lacks(what: string): void {
    if (this.#doesWithout) return;
    const message = `${this.#turn.order.id} needs another worker: ${what}`;
    this.#lacking = new JobError('NOT_RECOVERABLE', message, { retryable: true });
    this.#fail?.(this.#lacking);
  }

  /** Passes the turn's news on to the parts of the run that are waiting for it. */
  #hear(): void {
    const { news } = this.#turn;
    if (news.type === 'ended')
      for (const { key, end } of news.ends) this.#wanted.get(key)?.settle(end);
    if (news.type === 'child')
      for (const { child, settle } of this.#children.values())
        if (child.order.id === news.id) settle(endOf(news.outcome as StoredOutcome | null));
    if (news.type === 'answered') this.#asked.get(news.answer.requestId)?.answer(news.answer);
  }

  /** RUN-WORKER-10. Passes the turn's messages on to the run. Returns false if there are none. */
  #sends(subagentId: string): boolean {
    const { messages = [], news } = this.#turn;
    for (const nth of this.#sent.keys())
      if (!messages.some((message) => message.nth === nth)) this.#sent.delete(nth);
    const unsent =
      news.type === 'cancelled' ? [] : messages.filter(({ nth }) => !this.#sent.has(nth));
    const isWaiting = this.#isBeforeModelCall(subagentId);
    const last = unsent.findLast(({ mode }) => mode === 'steer');
    for (const message of unsent) {
      const { nth, id, content, by } = message;
      // The next model call must read all messages, so a prepared call that has not started is interrupted.
      const mode = isWaiting && message === last ? 'interrupt' : message.mode;
      this.#sent.set(nth, false);
      const sent = this.#service.send(
        subagentId,
        { content, mode, idempotencyKey: id },
        THE_LEAD,
        by === undefined ? {} : { by },
      );
      if (sent.ok) void sent.receipt.then(({ applied }) => this.#sent.set(nth, applied));
    }
    return unsent.length > 0;
  }

  /** Returns whether the subagent's next model call has been prepared but not started. */
  #isBeforeModelCall(subagentId: string): boolean {
    const { underWay = [] } = this.#turn;
    const own = [...this.#wanted.values()].filter((wanted) => wanted.subagentId === subagentId);
    return (
      own.length > 0 && own.every(({ job }) => isModelCall(job) && !underWay.includes(job.key))
    );
  }

  /** The messages from this turn that a model call has read. */
  get read(): readonly number[] {
    const { messages = [] } = this.#turn;
    return messages.flatMap(({ nth }) => (this.#sent.get(nth) ? [nth] : []));
  }

  #cancel(reason: string): void {
    for (const { id, parentId } of this.#service.list(THE_LEAD))
      if (parentId === null) this.#service.cancel(id, THE_LEAD, reason);
  }

  #untilIdle(subagentId: string, signal: AbortSignal): Promise<TurnEnd> {
    const { scheduler, clock } = this.#setup.environment;
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
      const fail = (error: unknown): void => {
        this.#isFailed = true;
        for (const own of this.#own.values()) own.abort(error);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason of the signal, or the step's own
        if (!isOver) settle(() => reject(error));
      };
      const look = (): void => {
        isLooking = false;
        if (isOver) return;
        const checked = this.#service.check(subagentId, THE_LEAD);
        const outcome = checked.ok ? checked.report.outcome : null;
        if (outcome) return settle(() => this.#service.whenEnded(() => resolve({ outcome })));
        const wakeAt = this.#wakeAt;
        const isAwaiting = this.#asked.size + this.#children.size + this.#wanted.size > 0;
        const hasEnd = wakeAt === null ? isAwaiting : wakeAt > clock.now();
        // A call that spawns a subagent or waits for one does not report that it has started.
        if (this.#isIdle && this.#isBeginningToWait && beginnings < MAX_BEGINNINGS) {
          beginnings += 1;
          again();
        } else if (this.#isIdle && hasEnd) {
          if (this.#sends(subagentId)) return sign();
          const own = this.#stepOfThisTurn;
          if (own) return this.#begin(own);
          const waiting = [...this.#asked.values()].map(({ wait }) => wait);
          const children = [...this.#children.values()].map(({ child }) => child);
          settle(() => resolve({ waiting, wakeAt, children, steps: this.#left }));
        }
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
        else fail(reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      this.#look = sign;
      this.#fail = fail;
      sign();
    });
  }

  /**
   * Whether the run can do nothing more in this turn (RUN-WORKER-2). The turn's journal is written synchronously, so an
   * answer has already reached its subagent when this is checked (RUN-WORKER-3). A parent that waits for a subagent
   * also waits for everything that the subagent waits for.
   */
  get #isIdle(): boolean {
    if (this.#underWay > 0) return false;
    const wanted = new Map<string, number>();
    for (const { subagentId } of this.#wanted.values())
      wanted.set(subagentId, (wanted.get(subagentId) ?? 0) + 1);
    return this.#service.live.every(
      ({ id, state, owes }) =>
        state === 'waiting_for_input' ||
        state === 'waiting_for_children' ||
        state === 'sleeping' ||
        this.#children.has(id) ||
        (owes > 0 && wanted.get(id) === owes),
    );
  }

  get #isBeginningToWait(): boolean {
    return this.#service.live.some(
      ({ id, state }) => state === 'waiting_for_children' && !this.#service.waits.isWaiting(id),
    );
  }

  /** The step that the run waits for, or null if it waits for anything else or the engine runs another step. */
  get #lone(): Wanted | null {
    const { steps, underWay = [] } = this.#turn;
    const others = this.#asked.size + this.#children.size + underWay.length;
    if (steps !== 'one' || others > 0 || this.#wanted.size !== 1) return null;
    const [lone = null] = this.#wanted.values();
    return lone;
  }

  /** RUN-WORKER-1. The step that this turn executes itself. */
  get #stepOfThisTurn(): Wanted | null {
    const { news } = this.#turn;
    const lone = this.#lone;
    if (!lone || this.#hasBegunOne) return null;
    const isRecorded = news.type === 'next' && news.step.key === lone.job.key;
    return this.#isOnce(lone.job) && !isRecorded ? null : lone;
  }

  /** The steps that this turn leaves to the next one or to the engine. */
  get #left(): readonly RunStep[] {
    const { underWay = [] } = this.#turn;
    const lone = this.#lone;
    return [...this.#wanted.values()].map(({ job: { body, ...given } }) => {
      const once = this.#isOnce(given);
      const job = { ...given, once, ...(once !== given.once && { isKept: true }) };
      return lone || underWay.includes(job.key) ? job : { ...job, body };
    });
  }

  /** Returns whether the step must not be started or requested a second time. */
  #isOnce({ once }: Pick<Job, 'once'>): boolean {
    return once && !this.#setup.kept;
  }

  #begin(wanted: Wanted): void {
    this.#hasBegunOne = true;
    const controller = new AbortController();
    const { key } = wanted.job;
    this.#own.set(key, controller);
    wanted.settle(
      this.#under(async () => {
        try {
          return await this.#done(wanted.job, controller.signal);
        } finally {
          this.#own.delete(key);
        }
      }),
    );
  }

  async #done(job: Job, signal: AbortSignal): Promise<JobEnd> {
    try {
      const { steps, maxEndBytes } = this.#setup;
      return endWithin(job, await doStep(steps, job, signal), maxEndBytes);
    } catch (error) {
      if (signal.aborted) return cancelledEnd();
      if (this.#isOnce(job)) return { lost: true };
      // Another attempt at the turn repeats the step.
      this.#fail?.(error);
      throw error;
    }
  }

  /** Runs work in this process. The turn does not end before the work is done. */
  async #under<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      this.#look?.();
    }
  }

  #question(question: AskedQuestion, signal: AbortSignal): Promise<ProgramAnswer | null> {
    const { requestId } = question;
    signal.addEventListener('abort', () => {
      this.#asked.delete(requestId);
      this.#look?.();
    });
    const answered = this.#ask({ requestId, kind: 'question', asked: question });
    return answered.then(({ given }) => given ?? null);
  }

  #input(request: ProgramRequest): Promise<string | null> {
    const { requestId } = request;
    const answered = this.#ask({ requestId, kind: 'input', asked: request });
    return answered.then(({ content }) => content ?? null);
  }

  /** Resolves in the turn that receives the answer. */
  #ask(asked: Omit<RunWait, 'askedAt'>): Promise<RunAnswer> {
    const { requestId } = asked;
    const { news, waiting } = this.#turn;
    if (news.type === 'answered' && news.answer.requestId === requestId)
      return Promise.resolve(news.answer);
    const known = waiting.find((wait) => wait.requestId === requestId);
    const askedAt = known?.askedAt ?? this.#setup.environment.clock.now();
    return new Promise((answer) => {
      this.#asked.set(requestId, { wait: { ...asked, askedAt }, answer });
      this.#look?.();
    });
  }

  /** RUN-WORKER-4. Resolves in the turn that receives the outcome. */
  async #ended(
    subagent: Subagent,
    { onParentClose }: StandIn,
    signal: AbortSignal,
  ): Promise<JobEnd> {
    const { order, news } = this.#turn;
    const { id: subagentId, definition, task } = subagent;
    const id = childIdOf(order.id, subagentId);
    if (news.type === 'child' && news.id === id) return endOf(news.outcome as StoredOutcome | null);
    // RUN-WORKER-5
    const bounds = this.#service.boundsOf(subagentId);
    if (!bounds) throw new OffstageError('INTERNAL', `there is no subagent ${subagentId}`);
    const above = { ...bounds, depth: bounds.depth + (order.above?.depth ?? 0) };
    const { by, trace } = order;
    const own: RunOrder = withoutUndefined({ id, config: definition.name, task, by, trace, above });
    return this.#endIn(this.#children, subagentId, signal, (settle) => ({
      child: { order: own, onParentClose },
      settle,
    }));
  }

  /** Adds an item to `waiting` until the item settles or the signal aborts. */
  #endIn<Waiting>(
    waiting: Map<string, Waiting>,
    key: string,
    signal: AbortSignal,
    made: (settle: (end: JobEnd | Promise<JobEnd>) => void) => Waiting,
  ): Promise<JobEnd> {
    const { promise, resolve } = Promise.withResolvers<JobEnd>();
    if (signal.aborted) return raceAbort(promise, signal);
    const over = (): void => {
      signal.removeEventListener('abort', over);
      // A later wait may have the same key as this one.
      if (waiting.get(key) === wait) waiting.delete(key);
    };
    const wait = made((end) => {
      over();
      resolve(end);
    });
    waiting.set(key, wait);
    this.#look?.();
    signal.addEventListener('abort', over, { once: true });
    return raceAbort(promise, signal);
  }

  /** Returns the id of the subagent that a job belongs to. */
  #subagentOf(key: string): string {
    const prefix = `${this.#turn.order.id}/`;
    const [id = ''] = key.startsWith(prefix) ? key.slice(prefix.length).split(':', 1) : [];
    return id;
  }

  /** Returns the stand-in that a job belongs to, or null if the job belongs to an ordinary subagent. */
  #standInOf(job: Job): [Subagent, StandIn] | null {
    const subagent = this.#service.get(this.#subagentOf(job.key));
    const standIn = subagent && this.#standIns.get(subagent.definition.source);
    return standIn ? [subagent, standIn] : null;
  }

  /** Returns the engine that records each step as part of the run's history. */
  #recorded(): Jobs {
    return {
      name: ENGINE_OF_STEPS,
      steps: stepJobs,
      keepsResults: true,
      maxBytes: this.#setup.kept?.maxBytes ?? Infinity,
      cancel: (key) => {
        const own = this.#own.get(key);
        own?.abort(new JobError('CANCELLED', 'The step was cancelled', { retryable: false }));
        // The engine stops the steps that it started itself. This step was left behind by a turn that did not finish.
        if (!own && !this.#turn.underWay?.includes(key)) this.#setup.kept?.cancel(key);
      },
      run: async (job, { signal }) => {
        const found = this.#standInOf(job);
        if (found) return this.#ended(...found, signal);
        const { news } = this.#turn;
        const known =
          news.type === 'ended' ? news.ends.find(({ key }) => key === job.key) : undefined;
        return known ? known.end : this.#wait(job, signal);
      },
    };
  }

  /** Resolves in the turn that executes the step or receives its result. */
  #wait(job: Job, signal: AbortSignal): Promise<JobEnd> {
    const { key } = job;
    const subagentId = this.#subagentOf(key);
    return this.#endIn(this.#wanted, key, signal, (settle) => ({ job, subagentId, settle }));
  }
}

/**
 * Returns the id of a child run, which is the same in every turn. It is computed without a crypto digest, because an
 * engine's workflow sandbox may not provide one.
 */
function childIdOf(runId: string, subagentId: string): string {
  const id = `${runId}/${subagentId}`;
  if (encodeURIComponent(id).length <= MAX_CHILD_ID_CHARS) return id;
  return `${shortHashOf(runId)}${shortHashOf(`above ${runId}`)}/${subagentId}`;
}

/** A run's journal at a worker: the entries from the engine and those added later. */
class PlayJournal implements Journal {
  #entries: JournalEntry[];
  /** The number of entries that the engine has. */
  #known: number;
  /** Whether the engine's journal already contains entries. */
  #isTrimmed = false;
  /** The size of the entries, in characters of JSON. */
  #chars = 0;

  readonly #trace: TraceContext | null;
  readonly #appended: () => void;

  constructor(entries: readonly JournalEntry[], trace: TraceContext | null, appended: () => void) {
    this.#trace = trace;
    this.#appended = appended;
    this.#entries = [...entries];
    this.#known = entries.length;
    for (const entry of entries) this.#chars += JSON.stringify(entry).length;
  }

  get chars(): number {
    return this.#chars;
  }

  append(entry: JournalEntry): void {
    this.#entries.push(entry);
    this.#chars += JSON.stringify(entry).length;
    this.#appended();
  }

  read(): readonly JournalEntry[] {
    return [...this.#entries];
  }

  /** Returns the program's span, which is the parent of the steps' spans because a turn has no span of its own. */
  traceContextOf(): TraceContext | null {
    return this.#trace;
  }

  trim({ unit, seq }: Pick<JournalEntry, 'unit' | 'seq'>): void {
    const at = this.#entries.findIndex((entry) => entry.unit === unit && entry.seq === seq);
    if (at <= 0) return;
    for (const entry of this.#entries.splice(0, at)) this.#chars -= JSON.stringify(entry).length;
    this.#isTrimmed = true;
  }

  /** Returns the entries that the engine does not have yet, or all entries if they replace the engine's entries. */
  taken(): Pick<RunTurnEnd, 'journal' | 'isMore'> {
    const isMore = !this.#isTrimmed && this.#known > 0;
    const journal = isMore ? this.#entries.slice(this.#known) : [...this.#entries];
    this.#known = this.#entries.length;
    this.#isTrimmed = false;
    return isMore ? { journal, isMore } : { journal };
  }
}

/** RUN-WORKER-1 */
function withNamedIds(environment: Environment, runId: string): Environment {
  const { clock, scheduler, ids, random } = environment;
  const named = {
    next: (prefix: string) => ids.next(prefix),
    of: (prefix: string, key: string) => `${prefix}_${shortHashOf(`${runId}\n${key}`)}`,
  };
  return { clock, scheduler, ids: named, random };
}
