// The activity of a subagent while its machine is in a lasting state: it prepares, calls its model, or runs
// tools. One activity at a time.
//
// Owns:     the activity under way, its AbortController, the instance of the configuration.
// Does not: decide what is done next (the machine does), or keep the results (the log does).
//
// Invariants
//   SUBAGENT-WORK-1. A stopped activity reports nothing any more.
//   SUBAGENT-WORK-2. `dispose` of the instance runs once, after the activity under way was stopped; also for
//       an instance that was still being made.
//   SUBAGENT-WORK-3. After a crash a call whose fate is unknown is made again, with the same key, only if its
//       tool permits that; any other call is settled as one that the app must reconcile.

import { messageOf } from '../../values/errors.ts';
import { withCaller } from '../model/caller.ts';
import type { Host } from '../runtime/host.ts';
import { releaseInstance, type Instance } from './instance.ts';
import { callsInDoubt, runCalls, unknownOutcome } from './run-calls.ts';
import { toolError } from '../model/tool-run.ts';
import type { SubagentLog } from './subagent-log.ts';
import type { SubagentHandle, SubagentPorts, SubagentUnitEvent } from './subagent-ports.ts';
import { think } from './think.ts';
import type { StreamedChunk } from '../contracts/task.ts';
import type { ModelStepInput, ToolCallsInput } from '../../machines/subagent-setup.ts';

/** The subagent whose work it is. */
export interface Worker extends SubagentHandle {
  readonly log: SubagentLog;
  receive(event: SubagentUnitEvent): void;
}

interface Activity {
  readonly controller: AbortController;
  /** Number of events that the activity has still to report. */
  expected: number;
}

type Tell = (event: SubagentUnitEvent) => void;

export class SubagentWork {
  /** The progress that its tools report while they work; null when none does. */
  progress: string | null = null;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  readonly #worker: Worker;
  #instance: Instance | null = null;
  #preparing: Promise<void> | null = null;
  #activity: Activity | null = null;
  #tellsProgress = false;
  /** True for a restored subagent: its instance is made again when it is needed. */
  #comesBack = false;
  /** The next activity had been begun before the process ended. */
  #isInDoubt = false;

  constructor(host: Host, ports: SubagentPorts, worker: Worker) {
    this.#host = host;
    this.#ports = ports;
    this.#worker = worker;
  }

  /** The tools of its instance, as their author defined them; empty before there is an instance. */
  get tools(): Readonly<Record<string, unknown>> {
    if (this.#instance) return this.#instance.definition.tools;
    return this.#comesBack ? this.#worker.definition.tools : {};
  }

  /** True while no activity is under way. */
  get isIdle(): boolean {
    return this.#activity === null;
  }

  /** Marks the subagent as restored. `inDoubt`: calls were under way. */
  comesBack(inDoubt: boolean): void {
    this.#comesBack = true;
    this.#isInDoubt = inDoubt;
  }

  /** Begins an activity of the machine. */
  begin(name: string, input: unknown): void {
    const controller = new AbortController();
    const { step = 0, callIds } = input as Partial<ToolCallsInput>;
    const activity: Activity = { controller, expected: callIds?.length ?? 1 };
    this.#activity = activity;
    const { signal } = controller;
    const tell: Tell = (event) => {
      if (signal.aborted) return;
      activity.expected -= 1;
      this.#worker.receive(event);
    };
    if (name === 'prepare') {
      this.#preparing = this.#prepare(tell, signal);
      return;
    }
    const begin = (instance: Instance): void => {
      if (name === 'modelStep') this.#think(instance, input as ModelStepInput, signal, tell);
      else this.#act(instance, input as ToolCallsInput, signal, tell);
    };
    const fail = (message: string): void => {
      const error = { code: 'PREPARATION_FAILED', message, retryable: false };
      if (name === 'modelStep') tell({ type: 'model.failed', step, error });
      for (const callId of callIds ?? [])
        tell({ type: 'tool.settled', step, callId, outcome: toolError(message, 'FAILED') });
    };
    if (this.#instance) begin(this.#instance);
    else if (this.#comesBack) this.#preparing = this.#prepareAgain(begin, fail, signal);
    else fail('not prepared');
  }

  /**
   * Stops the activity. An activity that has reported every event has ended by itself and is not aborted.
   * `reason` is the abort reason of the signals of tools and models.
   */
  stop(reason: Error): void {
    const activity = this.#activity;
    this.#activity = null;
    this.progress = null;
    if (activity && activity.expected > 0) activity.controller.abort(reason);
  }

  /** Releases the instance at the end, after the stop. Resolves when it is disposed; never rejects. */
  release(): Promise<void> {
    if (!this.#instance) return this.#preparing ?? Promise.resolve();
    return releaseInstance(this.#host, this.#instance);
  }

  async #prepare(tell: Tell, signal: AbortSignal): Promise<void> {
    try {
      const { messages, notes, ...instance } = await this.#ports.prepare(this.#worker, signal);
      if (signal.aborted) {
        await releaseInstance(this.#host, instance);
        return;
      }
      this.#instance = instance;
      tell({ type: 'subagent.prepared', messages, marks: notes?.secret });
    } catch (error) {
      const message = messageOf(error);
      const code = 'PREPARATION_FAILED';
      tell({ type: 'subagent.unprepared', error: { code, message, retryable: false } });
    } finally {
      this.#preparing = null;
    }
  }

  /** Prepares the instance of a restored subagent: the first messages are in the log already. */
  async #prepareAgain(
    begin: (instance: Instance) => void,
    fail: (message: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const { marks } = this.#worker.log;
      const again = { marks };
      const { messages: _, ...instance } = await this.#ports.prepare(this.#worker, signal, again);
      if (signal.aborted) {
        await releaseInstance(this.#host, instance);
        return;
      }
      this.#instance = instance;
      begin(instance);
    } catch (error) {
      fail(messageOf(error));
    } finally {
      this.#preparing = null;
    }
  }

  #think(
    instance: Instance,
    { step, final }: ModelStepInput,
    signal: AbortSignal,
    tell: Tell,
  ): void {
    const { log } = this.#worker;
    think({
      ...this.#stepOf(instance, step, signal, tell),
      messages: log.messages,
      handIn: log.handIn,
      final,
      budget: this.#ports.budgetOf(this.#worker),
      exhausted: (message) => {
        if (signal.aborted) return;
        this.#worker.receive({ type: 'budget.exhausted', graceful: true, message, step });
      },
    });
  }

  #act(
    instance: Instance,
    { step, callIds }: ToolCallsInput,
    signal: AbortSignal,
    tell: Tell,
  ): void {
    const { log } = this.#worker;
    const inDoubt = this.#isInDoubt ? callsInDoubt(instance, log, callIds) : [];
    this.#isInDoubt = false;
    for (const { callId, toolName, input } of inDoubt) {
      const idempotencyKey = this.#keyOf(step, callId);
      this.#ports.inDoubt?.(this.#worker, { callId, toolName, input, idempotencyKey });
      tell({ type: 'tool.settled', step, callId, outcome: unknownOutcome(toolName) });
    }
    runCalls({
      ...this.#stepOf(instance, step, signal, tell),
      log,
      callIds: callIds.filter((id) => !inDoubt.some(({ callId }) => callId === id)),
      progressed: (words) => this.#progressed(words),
      keepLarge:
        this.#ports.keepLarge &&
        (async (returned) =>
          (await this.#ports.keepLarge?.(this.#worker, this.tools, returned)) ?? returned.value),
      keyOf: (callId) => this.#keyOf(step, callId),
    });
  }

  /** Returns the input that a model call and the calls of tools share. */
  #stepOf(instance: Instance, step: number, signal: AbortSignal, tell: Tell) {
    const { stream, toolsContext } = instance.definition;
    return {
      host: this.#host,
      instance,
      step,
      signal,
      tell,
      streamed: stream
        ? (chunk: StreamedChunk): void => {
            if (!signal.aborted) this.#stream(chunk);
          }
        : undefined,
      deniedAbove: (toolName: string, input: unknown) =>
        this.#ports.deniedAbove(this.#worker, toolName, input),
      contextOf: (toolName: string, callId: string) =>
        withCaller(toolsContext?.[toolName], {
          ...this.#ports.callerOf(this.#worker),
          subagentId: this.#worker.id,
          approver: this.#worker.log.approverOf(callId),
          idempotencyKey: this.#keyOf(step, callId),
        }),
    };
  }

  /** Returns the idempotency key of a call: the same for every attempt, in this process and after it. */
  #keyOf(step: number, callId: string): string {
    return `${this.#worker.id}:${step}:${callId}`;
  }

  #stream(chunk: StreamedChunk): void {
    this.#ports.activity(this.#worker);
    this.#ports.streamed(this.#worker, chunk);
  }

  /** Reports progress once in a turn of the event loop, however often a tool reports it. */
  #progressed(words: string): void {
    this.progress = words;
    this.#ports.activity(this.#worker);
    if (this.#tellsProgress) return;
    this.#tellsProgress = true;
    this.#host.environment.scheduler.yieldThen(() => {
      this.#tellsProgress = false;
      if (!this.#worker.outcome) this.#ports.changed(this.#worker);
    });
  }
}
