// An in-memory engine that stores runs and whose workers a test can kill. It is for programs that execute their runs on
// an engine.
//
// Owns:     the runs and their records.
// Does not: execute turns. The handler does.

import { z } from 'zod';
import { anObject, check, checkEnvironment, type ChecksOf } from '../../values/checks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import { JobError, type JobEnd } from '../../actors/ports/jobs.ts';
import {
  MAX_UNREAD_MESSAGES,
  runUnderWay,
  type RunChild,
  type RunEngine,
  type RunHandler,
  type RunNews,
  type RunOrder,
  type RunStep,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
  type TakenMessage,
} from '../../actors/ports/run-engine.ts';
import { playRun, type RunDriver, type RunStepEnd } from '../../actors/ports/run-flow.ts';
import { raceAbort } from '../../values/race-abort.ts';

/** The options of `simulatedRuns`. */
export interface SimulatedRunsOptions {
  /** Its clock measures how long runs wait. */
  readonly environment: Environment;
  /** Executes the turns. Pass the handler of `runWorker({ … })`. */
  readonly handler: RunHandler;
  /** Whether a turn executes one step itself, which the engine then records, or no step. @defaultValue 'one' */
  readonly steps?: 'one' | 'none';
}

/** A test engine for runs that runs in this process. The test can kill its workers. */
export interface SimulatedRuns extends RunEngine {
  /** The number of recorded turns across all runs. */
  readonly recorded: number;
  /** Kills all workers at the same time. Other workers repeat the running turns. */
  killWorkers(): void;
}

interface Held {
  view: RunView;
  /** Resolves when `view` changes. */
  changed: PromiseWithResolvers<void>;
  /** The answers that the run has not received yet, and the ids of all answered requests. */
  readonly news: RunNews[];
  readonly answered: Set<string>;
  /** The ids of its child runs. */
  readonly children: Set<string>;
  /** The messages that the run has not received, the ids of those that it has not read, and the last message's number. */
  mail: TakenMessage[];
  unread: ReadonlyMap<string, number>;
  last: number;
  cancelled: string | null;
  /** The running turn. */
  worker: AbortController | null;
  /** The running steps by key, and the steps that have ended. */
  readonly steps: Map<string, AbortController>;
  readonly ends: RunStepEnd[];
  /** The mark of the last turn, if its worker is alive and has not yet started the turn's non-repeatable step. */
  mayBegin: string | null;
  /** Called when the run has news to handle. */
  wake: (() => void) | null;
}

/** After this many attempts at a turn or step, there is a pause before each further attempt. */
const MAX_AT_ONCE = 20;
/** The pause before each later attempt, in milliseconds. */
const AGAIN_MS = 1_000;

const optionsSchema = z.strictObject({
  environment: z.unknown(),
  handler: anObject('a handler such as that of runWorker({ … })', 'turn', 'step'),
  steps: z.enum(['one', 'none']).optional(),
} satisfies ChecksOf<SimulatedRunsOptions>);

/**
 * Creates an in-memory engine that stores runs.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function simulatedRuns(options: SimulatedRunsOptions): SimulatedRuns {
  check('simulatedRuns(options)', optionsSchema, options);
  checkEnvironment('simulatedRuns(options): environment', options.environment);
  const { handler, steps } = options;
  const { scheduler } = options.environment;
  const runs = new Map<string, Held>();
  let recorded = 0;

  const cancelled = (reason: string): JobError =>
    new JobError('CANCELLED', reason, { retryable: false });
  /** Waits before another attempt, so that a handler that always fails does not block the rest of its program. */
  const before = (attempt: number): Promise<void> =>
    new Promise((resolve) => {
      if (attempt > MAX_AT_ONCE) scheduler.schedule(resolve, AGAIN_MS);
      else scheduler.yieldThen(resolve);
    });
  const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
  const breaksOff = (held: Held): boolean => held.mail.some(({ mode }) => mode === 'interrupt');
  const turn = async (held: Held, given: RunTurn): Promise<RunTurnEnd | null> => {
    let attempt = 1;
    for (;;) {
      if (held.cancelled === null && breaksOff(held)) return null;
      const worker = new AbortController();
      held.worker = worker;
      if (held.cancelled !== null) worker.abort(cancelled(held.cancelled));
      try {
        const isCancelled = worker.signal.aborted;
        const what: RunTurn = isCancelled
          ? { ...given, news: { type: 'cancelled', reason: held.cancelled ?? '' } }
          : permitted(held, given);
        const signal = isCancelled ? new AbortController().signal : worker.signal;
        const end = await handler.turn(copied(what), signal);
        if (held.worker !== worker) continue;
        if (end.missing) {
          // No step was started.
          held.mayBegin = given.mark ?? null;
          await before((attempt += 1));
          continue;
        }
        recorded += 1;
        held.mayBegin = end.mark ?? null;
        return copied(end);
      } catch {
        // The worker died, so another one executes the turn.
        await before((attempt += 1));
      } finally {
        if (held.worker === worker) held.worker = null;
      }
    }
  };
  /** A non-repeatable step is started only by the worker whose turn was recorded, and only once. */
  const permitted = (held: Held, given: RunTurn): RunTurn => {
    const { news: what, mark } = given;
    const isPermitted = held.mayBegin === (mark ?? null);
    held.mayBegin = null;
    if (what.type !== 'next' || !what.step.once || isPermitted) return given;
    const { key } = what.step;
    return { ...given, news: { type: 'ended', ends: [{ key, end: { lost: true } }] } };
  };
  const step = async (held: Held, { refused, ...wanted }: RunStep): Promise<void> => {
    const { key, once } = wanted;
    const over = (end: JobEnd): void => {
      if (!held.steps.delete(key)) return;
      held.ends.push({ key, end: copied(end) });
      held.wake?.();
    };
    let attempt = 1;
    for (;;) {
      const worker = new AbortController();
      held.steps.set(key, worker);
      if (refused) return over({ failed: refused });
      try {
        const end = await handler.step(copied({ body: '', ...wanted }), worker.signal);
        if (!('refused' in end)) return over(end);
        await before((attempt += 1));
      } catch {
        if (held.steps.get(key) !== worker) return;
        if (once) return over({ lost: true });
        await before((attempt += 1));
      }
    }
  };
  const news = (
    held: Held,
    dueInMs: number | null,
    childIds: readonly string[],
  ): Promise<RunNews> =>
    new Promise((resolve) => {
      let stopClock: (() => void) | null = null;
      const settle = (what: RunNews): void => {
        held.wake = null;
        stopClock?.();
        resolve(what);
      };
      held.wake = () => {
        if (held.cancelled !== null) return settle({ type: 'cancelled', reason: held.cancelled });
        const first = held.news.shift();
        if (first) return settle(first);
        if (held.mail.length > 0) return settle({ type: 'messages' });
        if (held.ends.length > 0) return settle({ type: 'ended', ends: held.ends.splice(0) });
        const id = childIds.find((one) => runs.get(one)?.view.outcome);
        if (id !== undefined)
          settle({ type: 'child', id, outcome: copied(runs.get(id)?.view.outcome ?? null) });
      };
      if (dueInMs !== null) stopClock = scheduler.schedule(() => settle({ type: 'due' }), dueInMs);
      held.wake();
    });
  const begin = (order: RunOrder, parent: Held | null): void => {
    if (runs.has(order.id)) return;
    const held: Held = {
      view: { turn: 0, waiting: [], outcome: null },
      changed: Promise.withResolvers(),
      news: [],
      answered: new Set(),
      children: new Set(),
      cancelled: null,
      mail: [],
      unread: new Map(),
      last: 0,
      worker: null,
      wake: null,
      steps: new Map(),
      ends: [],
      mayBegin: null,
    };
    runs.set(order.id, held);
    const driver: RunDriver = {
      ...(steps ? { steps } : {}),
      turn: (what: RunTurn) => turn(held, what),
      messages: () => held.mail.splice(0),
      show(view: RunView) {
        held.view = view;
        const { unread = [] } = view.messages ?? {};
        const isUnread = ([, nth]: readonly [string, number]): boolean =>
          unread.includes(nth) || held.mail.some((one) => one.nth === nth);
        held.unread = new Map([...held.unread].filter(isUnread));
        held.changed.resolve();
        held.changed = Promise.withResolvers();
        if (view.outcome !== null) parent?.wake?.();
      },
      news: (_: readonly string[], dueInMs: number | null, childIds: readonly string[]) =>
        news(held, dueInMs, childIds),
      begin(child: RunChild) {
        held.children.add(child.order.id);
        begin(copied(child.order), held);
      },
      stop: (childId: string, reason: string) => stop(known(childId), reason),
      beginStep: (wanted) => void step(held, wanted),
      stopStep(key) {
        const worker = held.steps.get(key);
        held.steps.delete(key);
        worker?.abort(cancelled('the run no longer waits for it'));
      },
    };
    void playRun(copied(order), driver);
  };
  const stop = (held: Held, reason: string): void => {
    held.cancelled ??= reason;
    held.worker?.abort(cancelled(reason));
    held.wake?.();
  };
  const known = (id: string): Held => {
    const held = runs.get(id);
    if (held) return held;
    throw new JobError('JOBS_UNREACHABLE', `There is no run ${id}`, { retryable: true });
  };

  return {
    name: 'simulated',
    get recorded() {
      return recorded;
    },
    start(order) {
      begin(order, null);
      return Promise.resolve();
    },
    async view(id, after, signal) {
      signal.throwIfAborted();
      const held = known(id);
      while (held.view.turn <= after) await raceAbort(held.changed.promise, signal);
      return copied(held.view);
    },
    async answer(id, answer) {
      const held = known(id);
      const { requestId } = answer;
      const isOpen = held.view.waiting.some((wait) => wait.requestId === requestId);
      if (!isOpen || held.answered.has(requestId)) return false;
      held.answered.add(requestId);
      held.news.push({ type: 'answered', answer: copied(answer) });
      held.wake?.();
      return true;
    },
    async message(id, message) {
      const held = known(id);
      if (held.view.outcome !== null) return { refused: 'over' };
      const sent = held.unread.get(message.id);
      if (sent !== undefined) return { nth: sent };
      if (held.unread.size >= MAX_UNREAD_MESSAGES) return { refused: 'full' };
      const nth = (held.last += 1);
      held.unread = new Map([...held.unread, [message.id, nth]]);
      held.mail.push({ ...copied(message), nth });
      const { worker } = held;
      if (worker && message.mode === 'interrupt') {
        held.worker = null;
        worker.abort(new Error('a message came'));
      }
      held.wake?.();
      return { nth };
    },
    async cancel(id, reason) {
      stop(known(id), reason);
    },
    async forget(id) {
      const ids: string[] = [];
      const find = (one: string): void => {
        const held = runs.get(one);
        if (!held) return;
        if (held.view.outcome === null) throw runUnderWay(one);
        for (const child of held.children) find(child);
        ids.push(one);
      };
      find(id);
      for (const one of ids) runs.delete(one);
      return ids;
    },
    killWorkers() {
      for (const held of runs.values()) {
        const { worker } = held;
        held.worker = null;
        held.mayBegin = null;
        worker?.abort(new Error('the worker died'));
        for (const own of held.steps.values()) own.abort(new Error('the worker died'));
      }
    },
  };
}
