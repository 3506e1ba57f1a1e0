// One case in the suite of runs: the programs that request a run, and the counted calls of its model and tools.

import {
  runSubagent,
  type RunSubagentOptions,
} from '../../../src/actors/subagents/run-subagent.ts';
import type {
  RunMessageOptions,
  RunMessageReceipt,
  SubagentRun,
} from '../../../src/actors/subagents/run-subagent.ts';
import type { ProgramAnswer } from '../../../src/actors/subagents/program-ports.ts';
import type { Outcome } from '../../../src/actors/contracts/outcome.ts';
import { JobError } from '../../../src/actors/ports/jobs.ts';
import type { MessageTaken, RunMessage } from '../../../src/actors/ports/run-engine.ts';
import { isA } from '../../../src/values/errors.ts';
import { ConformanceError } from '../../../src/testing/conformance/conformance-error.ts';
import { CountingBench } from '../counting-bench.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { runsConformanceAgents, type AgentsVersion, type Tell } from './travel-agent.ts';

/** A fault that a stage can produce. */
export type RunsFault =
  /** The program that requested the run is killed. Without an engine, the run dies with the program. */
  | 'program_dies'
  /** All workers are killed at once, without a signal, and new ones replace them. */
  | 'worker_dies'
  /** The engine is killed and restarts with its stored data. */
  | 'engine_dies';

/** A process that requests runs. */
export interface RunsProgram {
  /** The options that the process passes to `runSubagent`: the runtime, and either the engine or the model. */
  readonly options: Pick<RunSubagentOptions, 'runtime' | 'engine' | 'model'>;
  /** For `program_dies`: stops everything that the process has started. */
  kill(): void;
}

export interface RunsStage {
  /** Starts another process. */
  program(): RunsProgram;
  /** `worker_dies`. Resolves when the workers are gone. Their replacements may still be starting. */
  killWorkers?(): void | Promise<void>;
  /** `engine_dies`. Resolves when the engine is gone. The engine may still be restarting. */
  killEngine?(): void | Promise<void>;
  /**
   * `deploys`. Replaces all workers with workers of these versions, which use `runsConformanceAgents(tell, version)`.
   * Resolves when the replaced workers are gone. @defaultValue at first, only `later`
   */
  deploy?(versions: readonly AgentsVersion[]): void | Promise<void>;
  /** `deletes`. `forgetRun(id, { engine, jobs })`. */
  forget?(id: string): Promise<void>;
  close?(): void | Promise<void>;
}

export interface RunsConformanceSetup {
  /** The name of the engine for error messages. */
  readonly name: string;
  /** The faults that the stage can produce. */
  readonly shows: readonly RunsFault[];
  /** True if an engine stores the run, separately from the programs. False if a journal stores it. */
  readonly isEngine: boolean;
  /** The stage can delete runs. @defaultValue false */
  readonly deletes?: boolean;
  /** The stage can deploy workers of several versions. @defaultValue false */
  readonly deploys?: boolean;
  /** A worker that refuses work leaves it to another worker. @defaultValue true */
  readonly sharesWork?: boolean;
  /** The stage's time passes, whether it is real or simulated. @defaultValue true */
  readonly passesTime?: boolean;
  /** The maximum number of polls. @defaultValue 20,000 */
  readonly patience?: number;
  /** Waits between two polls. @defaultValue a turn of the event loop */
  readonly moment?: () => Promise<void>;
  /** Advances the simulated time. @defaultValue the time is real */
  readonly pass?: (ms: number) => Promise<void>;
  /**
   * Opens a stage for one case. The stage's `runWorker` has a short `offerMs` or simulated time. With `deploys`, it has
   * an `offerMs` that is longer than a deploy takes. `runsConformanceAgents(tell)` returns the subagents and the model
   * for the stage's programs and workers.
   */
  open(tell: Tell): RunsStage | Promise<RunsStage>;
}

export interface RunsScene {
  readonly name: string;
  readonly needs?: readonly (
    | RunsFault
    | 'engine'
    | 'deletes'
    | 'deploys'
    | 'sharesWork'
    | 'passesTime'
  )[];
  readonly play: (bench: RunsBench) => Promise<void>;
}

/** A question or a request, and how to answer it. */
interface Put {
  readonly requestId: string;
  readonly kind: 'question' | 'input';
  readonly isOver: () => boolean;
  answer(answer: object | string | null): void;
}

/** A message to a run. */
export interface SentMessage {
  readonly runId: string;
  readonly message: RunMessage;
  /** Undefined until the message has been settled. */
  readonly receipt: () => RunMessageReceipt | undefined;
}

/** A run as one program sees it. */
export interface WatchedRun {
  readonly run: SubagentRun;
  /** The questions and requests that the program's handlers received, in order. */
  readonly put: readonly Put[];
  kill(): void;
}

const PATIENCE = 20_000;
let stages = 0;

export class RunsBench extends CountingBench {
  readonly #setup: RunsConformanceSetup;
  readonly #environment = simulatedEnvironment();
  readonly #agents = runsConformanceAgents(this.tell);
  readonly #errors: string[] = [];
  #stage: RunsStage | null = null;
  #runs = 0;
  readonly #tag: string;

  constructor(setup: RunsConformanceSetup) {
    super(setup.name);
    this.#setup = setup;
    stages += 1;
    this.#tag = `s${stages}-${Math.trunc(this.#environment.random.next() * 1e6)}`;
  }

  async open(): Promise<void> {
    this.#stage = await this.#setup.open(this.tell);
  }

  async close(): Promise<void> {
    this.releaseAll();
    await this.#stage?.close?.();
  }

  get isEngine(): boolean {
    return this.#setup.isEngine;
  }

  get stage(): RunsStage {
    if (this.#stage) return this.#stage;
    throw new ConformanceError(`${this.#setup.name}: the stage is not open`);
  }

  /** Returns a new trip: the id of its run and the prefix of the calls that it reports. */
  trip(): string {
    this.#runs += 1;
    return `${this.#tag}-${this.#runs}`;
  }

  /**
   * Requests the run for this trip, by default from a new process. `answer`: the answer that each of its questions gets
   * at once.
   */
  start(
    trip: string,
    steps: string,
    {
      agent = 'traveller',
      program = this.stage.program(),
      answer: each,
    }: {
      readonly agent?: string;
      readonly program?: RunsProgram;
      readonly answer?: object;
    } = {},
  ): WatchedRun {
    const put: Put[] = [];
    let isDead = false;
    const hear = (
      kind: Put['kind'],
      { requestId }: Pick<Put, 'requestId'>,
      isOver: () => boolean,
    ): Promise<unknown> =>
      new Promise((resolve) => {
        const answer = (given: object | string | null): void => {
          if (!isDead) resolve(given);
        };
        if (!isDead) put.push({ requestId, kind, isOver, answer });
        if (each) answer(each);
      });
    const config = this.#agents.configs[agent] ?? { name: agent, instructions: 'None.' };
    const run = runSubagent(config, `Travel [trip ${trip}: ${steps}]`, {
      ...program.options,
      id: trip,
      onQuestion: async (question, signal) =>
        (await hear('question', question, () => signal.aborted)) as ProgramAnswer | null,
      onInput: async (request) => (await hear('input', request, () => false)) as string | null,
      onError: (error, where) => void this.#errors.push(`${where}: ${String(error)}`),
    });
    return {
      run,
      put,
      kill() {
        isDead = true;
        program.kill();
      },
    };
  }

  /** Waits for a question or request. `nth` counts from 1. */
  async asked({ put }: WatchedRun, nth = 1): Promise<Put> {
    await this.until(`question ${nth}`, () => put.length >= nth || undefined);
    return put[nth - 1] as Put;
  }

  /** Sends a message. The model's final text repeats `word` with the number of answers before it. */
  send({ run }: WatchedRun, word: string, options: RunMessageOptions = {}): SentMessage {
    const content = `hear ${word}`;
    const { idempotencyKey = word, mode = 'steer' } = options;
    let receipt: RunMessageReceipt | undefined;
    void run.send(content, { ...options, idempotencyKey }).then((settled) => {
      receipt = settled;
    });
    const message = { id: idempotencyKey, content, mode };
    return { runId: run.id, message, receipt: () => receipt };
  }

  /** Waits until the run has received the message. The run may not have read it yet. */
  async taken({ runId, message }: SentMessage): Promise<void> {
    const { engine } = this.stage.program().options;
    if (!engine) return this.quiet();
    let taken: MessageTaken | undefined;
    void engine.message?.(runId, message).then((settled) => {
      taken = settled;
    });
    await this.until(`${message.id} to be taken`, () => taken);
  }

  async expectRead(sent: SentMessage | undefined, isRead: boolean): Promise<void> {
    const receipt = await this.until('the receipt of a message', () => sent?.receipt());
    this.expect(receipt.applied === isRead, `applied ${isRead}, got ${JSON.stringify(receipt)}`);
  }

  async outcome({ run }: WatchedRun): Promise<Outcome> {
    let outcome: Outcome | undefined;
    void run.result.then((ended) => {
      outcome = ended;
    });
    return this.until(`an outcome of ${run.id}`, () => outcome);
  }

  /** Waits for a call, or for the run to end without making the call. */
  async begunOrOver(what: string, { run }: WatchedRun): Promise<void> {
    let isOver = false;
    void run.result.then(() => {
      isOver = true;
    });
    await this.until(what, () => isOver || this.count(what) > 0 || undefined);
  }

  /** Returns the id of the only child run that a run is waiting for. */
  async childOf(runId: string): Promise<string> {
    const { engine } = this.stage.program().options;
    let found: string | undefined;
    const look = async (): Promise<void> => {
      const { signal } = new AbortController();
      for (let after = 0; engine && found === undefined; await this.moment()) {
        const view = await engine.view(runId, after, signal);
        after = view.turn;
        found = view.children?.[0];
      }
    };
    void look();
    return this.until(`a child of ${runId}`, () => found);
  }

  async until<T>(what: string, seen: () => T | undefined): Promise<T> {
    const { patience = PATIENCE } = this.#setup;
    for (let look = 0; look < patience; look += 1) {
      const found = seen();
      if (found !== undefined) return found;
      await this.moment();
    }
    throw this.failed(what);
  }

  moment(): Promise<void> {
    return this.#setup.moment?.() ?? this.#environment.settle();
  }

  /** Waits for events that may still happen. */
  async quiet(): Promise<void> {
    for (let look = 0; look < 20; look += 1) await this.moment();
  }

  /** Advances the time if it is simulated. */
  async pass(ms: number): Promise<void> {
    await this.#setup.pass?.(ms);
  }

  /** Answers a question through the engine, without the program. Returns whether the engine accepted the answer. */
  async answer(id: string, requestId: string, text: string): Promise<boolean> {
    const { engine } = this.stage.program().options;
    return (await engine?.answer(id, { requestId, given: { text } })) ?? false;
  }

  /** Deletes a run as an app does: repeats the request while the engine's error is retryable. */
  async forget(id: string): Promise<void> {
    const { patience = PATIENCE } = this.#setup;
    for (let look = 0; ; look += 1) {
      try {
        return await this.stage.forget?.(id);
      } catch (error) {
        if (!isA(error, JobError) || !error.retryable || look >= patience) throw error;
        await this.moment();
      }
    }
  }

  async deploy(...versions: readonly AgentsVersion[]): Promise<void> {
    await this.stage.deploy?.(versions);
  }

  async killWorkers(): Promise<void> {
    await this.stage.killWorkers?.();
  }

  async killEngine(): Promise<void> {
    await this.stage.killEngine?.();
  }

  expectOutcome(outcome: Outcome, status: Outcome['status'], text?: string): void {
    const { status: got, text: said, error } = outcome;
    this.expect(
      got === status && (text === undefined || said.includes(text)),
      `${status}${text === undefined ? '' : ` with ${text}`}, got ${JSON.stringify({ got, said, error })}`,
    );
  }

  /** Formats the ledger of an outcome, for example as `charge ok`. */
  ledger({ toolLedger }: Outcome): string {
    return toolLedger.map(({ toolName, status }) => `${toolName} ${status}`).join(', ');
  }

  protected get besides(): string {
    return `reported: ${JSON.stringify(this.#errors.slice(-5))}`;
  }
}
