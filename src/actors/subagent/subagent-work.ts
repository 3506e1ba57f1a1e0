// What a subagent does while its machine is in a state that lasts: it prepares, calls its
// model, or runs tools. One activity at a time.
//
// Owns:     the activity under way, its AbortController, the instance of the configuration.
// Does not: decide what is done next (the machine does), or keep what comes of it (the log).
//
// Invariants
//   K1. What was stopped reports nothing any more.
//   K2. `dispose` of the instance runs once, after what was under way was stopped; also of one
//       that was still being made.

import { CancelledError, messageOf } from '../../errors.ts';
import type { ModelStepInput, ToolCallsInput } from '../../machines/subagent-setup.ts';
import { withCaller } from '../delegation/caller.ts';
import type { Host } from '../runtime/host.ts';
import { BUDGET_USED_UP } from './fold-event.ts';
import { releaseInstance, type Instance } from './instance.ts';
import { runCalls } from './run-calls.ts';
import type { SubagentLog } from './subagent-log.ts';
import type {
  StreamedChunk,
  SubagentFace,
  SubagentPorts,
  SubagentUnitEvent,
} from './subagent-ports.ts';
import { think } from './think.ts';

/** Whose work it is. */
export interface Worker extends SubagentFace {
  readonly log: SubagentLog;
  receive(event: SubagentUnitEvent): void;
}

interface Activity {
  readonly controller: AbortController;
  /** Events that it has still to report. */
  expected: number;
}

type Tell = (event: SubagentUnitEvent) => void;

/** The answer to a call that was given up for a message. */
const UNREAD_FIRST = 'Not run: a message came first. Read it, then decide again.';
const HAND_IN_NOW =
  '[SYSTEM: What you may use is used up. This is your last answer, and you cannot call tools. ' +
  'Hand in what you have so far, and say what is missing.]';

export class SubagentWork {
  /** What its tools say of themselves while they work; null when none does. */
  progress: string | null = null;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  readonly #worker: Worker;
  #instance: Instance | null = null;
  #preparing: Promise<void> | null = null;
  #activity: Activity | null = null;
  #tellsProgress = false;

  constructor(host: Host, ports: SubagentPorts, worker: Worker) {
    this.#host = host;
    this.#ports = ports;
    this.#worker = worker;
  }

  /** The tools of its instance, as their author wrote them; none before there is one. */
  get tools(): Readonly<Record<string, unknown>> {
    return this.#instance?.definition.tools ?? {};
  }

  /** Begins an activity of the machine. */
  begin(name: string, input: unknown): void {
    const controller = new AbortController();
    const { step, callIds } = input as Partial<ToolCallsInput>;
    const activity: Activity = { controller, expected: callIds?.length ?? 1 };
    this.#activity = activity;
    const { signal } = controller;
    const tell: Tell = (event) => {
      if (signal.aborted) return;
      activity.expected -= 1;
      this.#worker.receive(event);
    };
    if (name === 'prepare') this.#preparing = this.#prepare(tell, signal);
    else if (!this.#instance)
      tell({ type: 'model.failed', step, error: { ...notPrepared, retryable: false } });
    else if (name === 'modelStep')
      this.#think(this.#instance, input as ModelStepInput, signal, tell);
    else this.#act(this.#instance, input as ToolCallsInput, signal, tell);
  }

  /** What has reported all that it was begun for has ended by itself: there is nothing to abort. */
  stop(reason: string): void {
    const activity = this.#activity;
    this.#activity = null;
    this.progress = null;
    if (activity && activity.expected > 0) activity.controller.abort(new CancelledError(reason));
  }

  /** At the end, once it is stopped. Resolves when the instance is disposed; never rejects. */
  release(): Promise<void> {
    if (!this.#instance) return this.#preparing ?? Promise.resolve();
    return releaseInstance(this.#host, this.#instance);
  }

  async #prepare(tell: Tell, signal: AbortSignal): Promise<void> {
    try {
      const { messages, ...instance } = await this.#ports.prepare(this.#worker, signal);
      if (signal.aborted) {
        await releaseInstance(this.#host, instance);
        return;
      }
      this.#instance = instance;
      tell({ type: 'subagent.prepared', messages });
    } catch (error) {
      const message = messageOf(error);
      const code = 'PREPARATION_FAILED';
      tell({ type: 'subagent.unprepared', error: { code, message, retryable: false } });
    } finally {
      this.#preparing = null;
    }
  }

  #think(
    instance: Instance,
    { step, messageIds, final }: ModelStepInput,
    signal: AbortSignal,
    tell: Tell,
  ): void {
    const { log } = this.#worker;
    log.closeStep(final ? BUDGET_USED_UP : UNREAD_FIRST);
    log.read(messageIds);
    if (final) log.tell(HAND_IN_NOW);
    think({
      ...this.#stepOf(instance, step, signal, tell),
      messages: log.messages,
      final,
      budget: this.#ports.budgetOf(this.#worker),
      exhausted: (message) => {
        if (signal.aborted) return;
        log.tell(HAND_IN_NOW);
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
    runCalls({
      ...this.#stepOf(instance, step, signal, tell),
      log: this.#worker.log,
      callIds,
      progressed: (words) => this.#progressed(words),
      keepLarge:
        this.#ports.keepLarge &&
        (async (returned) =>
          (await this.#ports.keepLarge?.(this.#worker, this.tools, returned)) ?? returned.value),
      keyOf: (callId) => this.#keyOf(step, callId),
    });
  }

  /** What a model call and the calls of tools have in common. */
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
          idempotencyKey: this.#keyOf(step, callId),
        }),
    };
  }

  /** The same for every attempt at this call, in this process and after it. */
  #keyOf(step: number, callId: string): string {
    return `${this.#worker.id}:${step}:${callId}`;
  }

  #stream(chunk: StreamedChunk): void {
    this.#ports.activity(this.#worker);
    this.#ports.streamed(this.#worker, chunk);
  }

  /** Told once in a turn of the event loop, however fast a tool talks. */
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

const notPrepared = { code: 'INTERNAL', message: 'not prepared' } as const;
