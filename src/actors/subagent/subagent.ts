// One subagent: its machine, hosted in a commit unit of its own, and its effects.
//
// Owns:     its life (actor and log), its instance of the configuration, its AbortController.
// Does not: decide what happens next (the machine does), hand out slots (supervisor),
//           or talk to the user (session).
//
// Invariants
//   B1. `ended` is called exactly once, with everything that was done.
//   B2. `dispose` of the instance runs exactly once, after the last effect was aborted.
//   B3. While it waits for the user it is parked: no actor, no controller, no timer and no
//       promise, only one string. The next event wakes it. (An inspected one stays as it is.)
//   B4. An effect that was stopped reports nothing any more.

import type { AnyMachineSnapshot } from 'xstate';
import { CancelledError, messageOf } from '../../errors.ts';
import type {
  Ending,
  Failure,
  Stamped,
  SubagentEvent,
  SubagentSnapshot,
} from '../../machines/index.ts';
import type { ModelResponse } from '../ai/model-step.ts';
import { CommitUnit, type Posted, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import type { Effect } from '../runtime/hosting.ts';
import type { SubagentState } from '../session-views.ts';
import type { AskedQuestion, Answer } from '../session/records.ts';
import { inputTimeoutMessage } from '../session/prompts.ts';
import { approvalQuestion, askedQuestion } from './ask-user.ts';
import type { SubagentDefinition } from './config.ts';
import { releaseInstance, type Instance, type PreparedInstance } from './instance.ts';
import type { Outcome } from './outcome.ts';
import { stepReport, think, type StepReport } from './think.ts';
import { runCalls } from './run-calls.ts';
import { SubagentLife } from './subagent-life.ts';
import type { SubagentLog } from './subagent-log.ts';

/** Raised when the machine, or what its events carry, changes. */
const DEFINITION_VERSION = 1;

/** What is delegated. */
export interface SubagentTask {
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly description: string;
}

/** What a subagent needs of whoever runs it. */
export interface SubagentPorts {
  /**
   * Makes the instance and its first messages; may reject, then the run fails. Settles soon
   * after the signal aborts, and what it made is disposed then.
   */
  prepare(subagent: Subagent, signal: AbortSignal): Promise<PreparedInstance>;
  requestSlot(id: string, resumed: boolean, grant: () => void): void;
  releaseSlot(id: string): void;
  ask(question: AskedQuestion): void;
  withdraw(requestId: string): void;
  /** Names the actor in the inspector: `<session>/<subagent>`. */
  readonly path: string;
  /** State, step or progress is not what it was. */
  changed(subagent: Subagent): void;
  stepped(subagent: Subagent, report: StepReport): void;
  /** The last call. `disposed` settles when the instance is disposed; it never rejects. */
  ended(subagent: Subagent, outcome: Outcome, disposed: Promise<void>): void;
}

/** What the machine's events carry beyond what the machine reads. */
export type SubagentUnitEvent = UnitEvent & Record<string, unknown>;

/** An effect that takes time. */
interface Activity {
  readonly controller: AbortController;
  /** Events that it has still to report. */
  expected: number;
}

export class Subagent implements UnitBody {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly startedAt: number;
  /** What its tools say of themselves while they work; null when none does. */
  progress: string | null = null;
  readonly #unit: CommitUnit;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  #life!: SubagentLife;
  #instance: Instance | null = null;
  #preparing: Promise<void> | null = null;
  #activity: Activity | null = null;
  #outcome: Outcome | null = null;
  #tellsProgress = false;

  constructor(
    host: Host,
    id: string,
    definition: SubagentDefinition,
    task: SubagentTask,
    ports: SubagentPorts,
  ) {
    this.id = id;
    this.definition = definition;
    this.task = task;
    this.#host = host;
    this.#ports = ports;
    this.startedAt = host.environment.clock.now();
    this.#unit = new CommitUnit(id, DEFINITION_VERSION, host, this);
  }

  start(): void {
    const { maxSteps, timeout, maxInputRetries } = this.definition;
    const { id, startedAt: at } = this;
    this.#unit.start(() => {
      this.#life = new SubagentLife(
        { id, at, maxSteps, timeoutMs: timeout, maxInputRetries },
        this,
        { id: `${this.#ports.path}/${id}`, inspect: this.#host.inspect },
      );
    });
  }

  get outcome(): Outcome | null {
    return this.#outcome;
  }

  get step(): number {
    return this.#life.actor.getSnapshot().context.step;
  }

  get state(): SubagentState {
    const { value } = this.#life.actor.getSnapshot();
    return (typeof value === 'string' ? value : Object.keys(value)[0]) as SubagentState;
  }

  /** Puts an event into its mailbox. */
  receive(event: SubagentUnitEvent): void {
    this.#unit.receive('subagent', event);
  }

  cancel(reason: string): void {
    this.receive({ type: 'subagent.cancel', reason });
  }

  /** Ends it here and now, without its machine: the grace of a closing session is over. */
  kill(reason: string): void {
    this.#end({
      status: 'lost',
      steps: this.step,
      error: { code: 'KILLED', message: `Killed: ${reason}`, retryable: true },
    });
  }

  post(effect: Effect): void {
    this.#unit.post('subagent', effect);
  }

  accepts(_actor: string, event: UnitEvent & Stamped): boolean {
    const wasParked = this.#life.isParked;
    const snapshot = this.#life.actor.getSnapshot() as AnyMachineSnapshot;
    const isAccepted = snapshot.status === 'active' && snapshot.can(event);
    if (wasParked && !isAccepted) this.#life.park();
    return isAccepted;
  }

  apply(_actor: string, event: UnitEvent & Stamped): void {
    const { actor, log } = this.#life;
    this.#fold(event, log, actor.getSnapshot().context);
    actor.send(event as SubagentEvent);
    const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
    if (snapshot.status === 'error') throw snapshot.error;
    this.post({ kind: 'do', name: 'changed', params: undefined });
    if (snapshot.status === 'done')
      this.post({ kind: 'do', name: 'ended', params: snapshot.output });
  }

  release({ effect }: Posted): void {
    if (this.#outcome) return;
    if (effect.kind === 'stop') this.#stop('superseded');
    else if (effect.kind === 'start') this.#begin(effect.name, effect.input);
    else this.#carryOut(effect.name, effect.params);
  }

  crashed(error: unknown): void {
    this.#host.report(error, `subagent ${this.id}`);
    this.#end({ status: 'failed', steps: this.step, error: internal(error) });
  }

  #fold(event: UnitEvent, log: SubagentLog, context: SubagentSnapshot['context']): void {
    const carried = event as SubagentUnitEvent;
    switch (event.type) {
      case 'subagent.prepared':
        log.begin((carried['messages'] ?? []) as never);
        break;
      case 'model.responded':
        log.responded(
          carried['step'] as number,
          carried['response'] as never,
          carried['retryMessage'] as string | undefined,
        );
        this.#reportStep(carried);
        break;
      case 'model.failed':
        if (carried['response'] === undefined) break;
        log.said(carried['response'] as never);
        this.#reportStep(carried);
        break;
      case 'tool.settled':
        log.settled(carried['callId'] as string, carried['outcome'] as never);
        break;
      case 'question.answered':
        log.answered(askingCall(context), carried['answer'] as Answer);
        break;
      case 'question.expired':
        log.unanswered(
          askingCall(context),
          inputTimeoutMessage(context.missed + 1, context.maxInputRetries),
        );
        break;
      case 'question.withdrawn':
        log.unanswered(
          askingCall(context),
          `The question was ${typeof carried['reason'] === 'string' ? carried['reason'] : 'withdrawn'}`,
        );
        break;
      default:
        break;
    }
  }

  /** Hooks learn of a step when it is committed, like everybody else. */
  #reportStep({ step, response }: SubagentUnitEvent): void {
    const params = stepReport(step as number, response as ModelResponse);
    this.post({ kind: 'do', name: 'stepped', params });
  }

  #begin(name: string, input: unknown): void {
    const controller = new AbortController();
    const { step, callIds } = input as { step: number; callIds?: readonly string[] };
    const activity: Activity = { controller, expected: callIds?.length ?? 1 };
    this.#activity = activity;
    const { signal } = controller;
    const tell = (event: SubagentUnitEvent): void => {
      if (signal.aborted) return;
      activity.expected -= 1;
      this.receive(event);
    };
    if (name === 'prepare') this.#preparing = this.#prepare(tell, signal);
    else if (!this.#instance) tell({ type: 'model.failed', step, error: internal('not prepared') });
    else if (name === 'modelStep') {
      const { log } = this.#life;
      log.closeStep();
      think({
        host: this.#host,
        instance: this.#instance,
        messages: log.messages,
        step,
        signal,
        tell,
      });
    } else
      runCalls({
        host: this.#host,
        instance: this.#instance,
        log: this.#life.log,
        subagentId: this.id,
        step,
        callIds: callIds ?? [],
        signal,
        tell,
        progressed: (words) => this.#progressed(words),
      });
  }

  /** Told once in a turn of the event loop, however fast a tool talks. */
  #progressed(words: string): void {
    this.progress = words;
    if (this.#tellsProgress) return;
    this.#tellsProgress = true;
    this.#host.environment.scheduler.yieldThen(() => {
      this.#tellsProgress = false;
      if (this.#life && !this.#outcome) this.#ports.changed(this);
    });
  }

  async #prepare(tell: (event: SubagentUnitEvent) => void, signal: AbortSignal): Promise<void> {
    try {
      const { messages, ...instance } = await this.#ports.prepare(this, signal);
      if (signal.aborted) {
        await releaseInstance(this.#host, instance);
        return;
      }
      this.#instance = instance;
      tell({ type: 'subagent.prepared', messages });
    } catch (error) {
      const failure: Failure = {
        code: 'PREPARATION_FAILED',
        message: messageOf(error),
        retryable: false,
      };
      tell({ type: 'subagent.unprepared', error: failure });
    } finally {
      this.#preparing = null;
    }
  }

  #carryOut(name: string, params: unknown): void {
    switch (name) {
      case 'requestSlot':
        this.#ports.requestSlot(this.id, (params as { resumed: boolean }).resumed, () =>
          this.receive({ type: 'slot.granted' }),
        );
        break;
      case 'releaseSlot':
        this.#ports.releaseSlot(this.id);
        break;
      case 'ask':
        this.#ask(params as { requestId: string; callId: string; kind: 'question' | 'approval' });
        break;
      case 'withdraw':
        this.#ports.withdraw((params as { requestId: string }).requestId);
        break;
      case 'stepped':
        this.#ports.stepped(this, params as StepReport);
        break;
      case 'changed':
        this.#ports.changed(this);
        if (this.state === 'waiting_for_input') this.#life.park();
        break;
      case 'ended':
        this.#end(params as Ending);
        break;
      default:
        break;
    }
  }

  #ask(asked: { requestId: string; callId: string; kind: 'question' | 'approval' }): void {
    const call = this.#life.log.call(asked.callId);
    const question =
      asked.kind === 'approval' ? approvalQuestion(call) : askedQuestion(call?.input);
    this.#ports.ask({
      requestId: asked.requestId,
      subagentId: this.id,
      subagentName: this.definition.name,
      kind: asked.kind,
      timeoutMs: this.definition.inputTimeout,
      ...question,
    });
  }

  /** What has reported all that it was begun for has ended by itself: there is nothing to abort. */
  #stop(reason: string): void {
    const activity = this.#activity;
    this.#activity = null;
    this.progress = null;
    if (activity && activity.expected > 0) activity.controller.abort(new CancelledError(reason));
  }

  #end(ending: Ending): void {
    if (this.#outcome) return;
    const { actor, log } = this.#life;
    log.abandonCalls();
    const isCompleted = ending.status === 'completed';
    this.#outcome = {
      status: ending.status,
      output: isCompleted ? (this.#instance?.result ?? log.text) : null,
      text: isCompleted ? log.text : '',
      ...(!isCompleted && log.text !== '' ? { partial: log.text } : {}),
      ...(ending.error ? { error: ending.error } : {}),
      steps: ending.steps,
      usage: log.usage,
      toolLedger: log.ledger,
    };
    this.#stop(ending.error?.message ?? ending.status);
    this.#unit.dispose();
    actor.stop();
    const instance = this.#instance;
    const disposed = instance
      ? releaseInstance(this.#host, instance)
      : (this.#preparing ?? Promise.resolve());
    callSafely(this.#host, `end of ${this.id}`, () =>
      this.#ports.ended(this, this.#outcome as Outcome, disposed),
    );
  }
}

function internal(error: unknown): Failure {
  return { code: 'INTERNAL', message: messageOf(error), retryable: false };
}

/** The call whose question is the one under way: the first unsettled one that asks. */
function askingCall({ calls }: SubagentSnapshot['context']): string {
  return calls.find((call) => call.kind !== 'tool' && !call.settled)?.callId ?? '';
}
