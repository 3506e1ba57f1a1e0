// One case in the suite of jobs: what its workers must do, and the jobs that they have started.

import type { Job, JobEnd, JobHandler, JobRefusal, Jobs } from '../../../src/actors/ports/jobs.ts';
import { isA, messageOf } from '../../../src/values/errors.ts';
import { JobError } from '../../../src/actors/ports/jobs.ts';
import { raceAbort } from '../../../src/values/race-abort.ts';
import { ConformanceError } from '../../../src/testing/conformance/conformance-error.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import type { JobsConformanceSetup, JobsFault, JobsStage } from './stage.ts';

export interface JobsScene {
  readonly name: string;
  readonly needs?: readonly (JobsFault | 'keepsResults' | 'forgets')[];
  readonly play: (bench: JobsBench) => Promise<void>;
}

type Asked = Partial<Job> & { readonly signal?: AbortSignal; readonly jobs?: Jobs };

/** One execution of a job by a worker. */
export interface Execution {
  readonly job: Job;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}

type Ends = JobEnd | JobRefusal;

/** The work that a job does. `nth`: the number of this execution of the job, counted from 1. */
export type Act = (execution: Execution, nth: number) => Ends | Promise<Ends>;

const PATIENCE = 20_000;
const neverAborted = new AbortController().signal;

/** The helpers for all cases. */
export class JobsBench implements JobHandler {
  readonly #setup: JobsConformanceSetup;
  readonly #environment = simulatedEnvironment();
  readonly #acts = new Map<string, Act>();
  /** The jobs that ignore an abort. */
  readonly #deaf = new Set<string>();
  readonly #begun: Execution[] = [];
  #stage: JobsStage | null = null;

  constructor(setup: JobsConformanceSetup) {
    this.#setup = setup;
  }

  async open(): Promise<void> {
    this.#stage = await this.#setup.open(this);
  }

  get stage(): JobsStage {
    if (this.#stage) return this.#stage;
    throw new ConformanceError(`${this.#setup.name}: the stage is not open`);
  }

  async do(job: Job, signal: AbortSignal, said?: (text: string) => void): Promise<Ends> {
    const execution = { job, signal, say: said ?? ((): void => {}) };
    this.#begun.push(execution);
    const act = this.#acts.get(job.key) ?? (() => ({ done: job.body }));
    const nth = this.executions(job.key).length;
    const work = (async () => act(execution, nth))();
    return this.#deaf.has(job.key) ? work : raceAbort(work, signal);
  }

  /** Sets what the workers do with the job of this key. By default, a job ends with its body. */
  act(key: string, act: Act): void {
    this.#acts.set(key, act);
  }

  /** Makes the job of this key ignore an abort. */
  deafen(key: string): void {
    this.#deaf.add(key);
  }

  /** The engine with a short time limit for jobs. */
  hasty(): Jobs {
    const { hasty } = this.stage;
    if (hasty) return hasty();
    throw new ConformanceError(`${this.#setup.name}: expected hasty() of the stage`);
  }

  executions(key: string): readonly Execution[] {
    return this.#begun.filter(({ job }) => job.key === key);
  }

  /** The keys of all jobs that were started, in order. */
  get keysBegun(): readonly string[] {
    return this.#begun.map(({ job }) => job.key);
  }

  /** Requests a job as a session does: repeats the request while the engine's error is retryable. */
  ask(key: string, more: Asked = {}, said?: (text: string) => void): Promise<JobEnd> {
    const asked = this.#inTime(`an end of ${key}`, this.#ask(key, more, said));
    // Prevents an unhandled rejection if a case fails before it awaits this promise.
    asked.catch(() => {});
    return asked;
  }

  async #ask(key: string, more: Asked, said?: (text: string) => void): Promise<JobEnd> {
    const { signal = neverAborted, jobs = this.stage.jobs(), ...fields } = more;
    const job: Job = { key, name: 'step of a test', once: false, body: '{}', ...fields };
    const { patience = PATIENCE } = this.#setup;
    for (let look = 0; ; look += 1) {
      try {
        return await jobs.run(job, { signal, said });
      } catch (error) {
        const mayAgain = isA(error, JobError) && error.retryable && look < patience;
        if (signal.aborted || !mayAgain) throw error;
        await this.moment();
      }
    }
  }

  /** Deletes jobs as an app does: repeats the request while the engine's error is retryable. */
  async forget(prefix: string): Promise<void> {
    const jobs = this.stage.jobs();
    const { patience = PATIENCE } = this.#setup;
    for (let look = 0; ; look += 1) {
      try {
        return await jobs.forget?.(prefix);
      } catch (error) {
        if (!isA(error, JobError) || !error.retryable || look >= patience) throw error;
        await this.moment();
      }
    }
  }

  /** Waits until a worker has started the job this many times. */
  async begun(key: string, times = 1): Promise<Execution> {
    await this.until(`${key} to be begun ${times} times`, () =>
      this.executions(key).length >= times ? true : undefined,
    );
    return this.executions(key)[times - 1] as Execution;
  }

  /** Fails the case if the engine never responds. */
  async #inTime<T>(what: string, work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = (): void => {
      isSettled = true;
    };
    work.then(settled, settled);
    await this.until(what, () => isSettled || undefined);
    return work;
  }

  async until<T>(what: string, seen: () => T | undefined): Promise<T> {
    const { patience = PATIENCE } = this.#setup;
    for (let look = 0; look < patience; look += 1) {
      const found = seen();
      if (found !== undefined) return found;
      await this.moment();
    }
    throw new ConformanceError(`${this.#setup.name}: expected ${what}; ${this.#story()}`);
  }

  moment(): Promise<void> {
    return this.#setup.moment?.() ?? this.#environment.settle();
  }

  /** Waits for events that may still happen. */
  async quiet(): Promise<void> {
    for (let look = 0; look < 20; look += 1) await this.moment();
  }

  expect(isSo: boolean, what: string): void {
    if (!isSo)
      throw new ConformanceError(`${this.#setup.name}: expected ${what}; ${this.#story()}`);
  }

  expectEnd(end: JobEnd, expected: JobEnd, what: string): void {
    const isSame = JSON.stringify(end) === JSON.stringify(expected);
    this.expect(isSame, `${what}: ${clipped(expected)}, got ${clipped(end)}`);
  }

  async killWorkers(): Promise<void> {
    await this.stage.killWorkers?.();
  }

  async killEngine(): Promise<void> {
    await this.stage.killEngine?.();
  }

  async rejection(asked: Promise<unknown>): Promise<unknown> {
    try {
      await asked;
    } catch (error) {
      return error;
    }
    throw new ConformanceError(`${this.#setup.name}: expected a rejection; ${this.#story()}`);
  }

  #story(): string {
    const begun = this.#begun.slice(-20).map(({ job }) => job.key.slice(0, 80));
    return `begun: ${JSON.stringify(begun)}`;
  }
}

function clipped(end: JobEnd): string {
  return JSON.stringify(end).slice(0, 300);
}

/** A gate at which a job waits until the case opens it. */
export function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  const { promise: passed, resolve: open } = Promise.withResolvers<void>();
  return { passed, open };
}

/** Returns the code of a `JobError` for messages. */
export function codeIn(error: unknown): string {
  return isA(error, JobError) ? error.code : messageOf(error);
}
