// A simulated world's engine, for subagents with `runs: 'jobs'`. It outlives the sessions' processes; its workers are
// separate processes, which die.
//
// Owns:     the worker and its deaths.
// Does not: store jobs (`simulatedJobs`).

import type { JobHandler, Jobs } from '../../actors/ports/jobs.ts';
import { jobWorker } from '../../actors/subagent/job-worker.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import { simulatedJobs } from '../doubles/simulated-jobs.ts';
import { SimulatedProcess } from '../doubles/simulated-process.ts';
import { appIn, sessionModelIn, type AppStage } from './staged-app.ts';

/** A worker dies within this time, in milliseconds: a job takes no longer unless its model or tool does. */
const DIES_WITHIN_MS = 4000;
/** The first worker number; session processes have lower numbers. */
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
  /** Null before the first job, and so in most apps. */
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
