// The engine of a simulated world, for subagents with `runs: 'jobs'`. It outlives the processes of sessions. Its
// workers are separate processes that can die.
//
// Owns:     the worker, and when it dies.
// Does not: store jobs (`simulatedJobs`).

import type { JobHandler, Jobs } from '../../actors/ports/jobs.ts';
import { jobWorker } from '../../actors/subagent/job-worker.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import { simulatedJobs } from '../doubles/simulated-jobs.ts';
import { SimulatedProcess } from '../doubles/simulated-process.ts';
import { appIn, sessionModelIn, type AppStage } from './staged-app.ts';

/** A worker dies within this time, in milliseconds. A job takes longer only if its model or tool does. */
const DIES_WITHIN_MS = 4000;
/** The number of the first worker. The processes of sessions have lower numbers. */
const FIRST_WORKER = 1001;

interface Worker {
  readonly process: SimulatedProcess;
  readonly handler: JobHandler;
}

export class JobEngine {
  readonly jobs: Jobs;
  readonly #stage: AppStage;
  readonly #environment: SimulatedEnvironment;
  readonly #killWorkers: () => void;
  /** Null before the first job. Most apps have no jobs. */
  #worker: Worker | null = null;

  constructor(stage: AppStage, environment: SimulatedEnvironment) {
    this.#stage = stage;
    this.#environment = environment;
    const jobs = simulatedJobs({
      handler: {
        do: (job, signal, said) => {
          const worker = (this.#worker ??= this.#hire(FIRST_WORKER));
          const dies = stage.faults.strikes('worker.dies');
          if (dies)
            environment.scheduler.schedule(
              () => this.#kill(worker),
              dies.within(0, DIES_WITHIN_MS),
            );
          return worker.handler.do(job, signal, said);
        },
      },
    });
    this.jobs = jobs;
    this.#killWorkers = () => jobs.killWorkers();
  }

  #hire(number: number): Worker {
    const process = new SimulatedProcess(number, this.#environment);
    const { subagentConfigs: configs = {} } = appIn(this.#stage, process);
    const model = sessionModelIn(this.#stage, process);
    const { environment } = process;
    return { process, handler: jobWorker({ environment, configs, model }) };
  }

  #kill(worker: Worker): void {
    if (worker !== this.#worker) return;
    worker.process.kill();
    this.#worker = this.#hire(worker.process.number + 1);
    this.#killWorkers();
  }
}
