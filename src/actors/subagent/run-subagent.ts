// One subagent without a conversation: a program hands it a task and gets its outcome.
// It is the same subagent as in a session, with the program in the place of the user.
//
// Owns:     the question under way, and the promise of the outcome.
// Does not: decide what happens next (the subagent's machine does) or how many run at
//           the same time (`maxTotalActive` of the runtime; the others queue).
//
// Invariants
//   N1. `result` resolves once, with how it ended and after its instance was disposed.
//       It never rejects.
//   N2. A question ends once: answered, expired or withdrawn. Then its signal aborts.

import type { LanguageModel } from 'ai';
import { CancelledError, CapacityError, ProtocolError } from '../../errors.ts';
import { buildContextSnapshot } from '../context/context-snapshot.ts';
import { ConversationLog } from '../conversation/conversation.ts';
import { callSafely, createHost, type Host } from '../runtime/host.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { AskedQuestion } from '../session/records.ts';
import { defaultSessionLimits } from '../supervisor/limits.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { givenAnswer, type GivenAnswer } from './ask-user.ts';
import { checkSubagentConfig, type SubagentConfig } from './config.ts';
import { briefing, prepareInstance, type PreparedInstance } from './instance.ts';
import type { Outcome } from './outcome.ts';
import {
  Subagent,
  type SubagentPorts,
  type SubagentTask,
  type SubagentUnitEvent,
} from './subagent.ts';
import type { StepReport } from './think.ts';

/** What is to be done. `toolName` names it in the prompt; by default the subagent's own name. */
export type RunTask = Pick<SubagentTask, 'description'> & Partial<SubagentTask>;

export interface RunSubagentOptions {
  readonly runtime: Runtime;
  /** For a configuration without a model of its own. */
  readonly model?: LanguageModel;
  /**
   * Answers what the subagent asks, and consents to tool calls; null: no answer. `signal`
   * aborts when the question is over. Without this, questions are withdrawn at once.
   */
  readonly onQuestion?: (
    question: AskedQuestion,
    signal: AbortSignal,
  ) => GivenAnswer | null | Promise<GivenAnswer | null>;
  readonly onStep?: (report: StepReport) => void;
  /** Learns of what went wrong without ending the run: a model call that is tried again, a throwing hook. */
  readonly onError?: (error: unknown, where: string) => void;
}

export interface SubagentRun {
  readonly id: string;
  /** How it ended. Never rejects. */
  readonly result: Promise<Outcome>;
  /** Ends it as cancelled, unless it has ended. */
  cancel(reason?: string): void;
}

/**
 * Starts a subagent that works for a program instead of a conversation.
 * @throws {ConfigurationError} for a configuration that cannot work.
 * @throws {CapacityError} when 100,000 runs of the runtime have not ended.
 */
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions,
): SubagentRun {
  const definition = checkSubagentConfig(config, config.name);
  const whole: SubagentTask = {
    toolName: definition.name,
    args: {},
    ...(typeof task === 'string' ? { description: task } : task),
  };
  const { environment, supervisor } = options.runtime;
  const scope = scopeOf(options.runtime);
  const id = environment.ids.next('sub');
  const admission = supervisor.admit(scope.id, id, 1);
  if (admission.status === 'rejected')
    throw new CapacityError(admission.error.code, admission.error.message);
  const run = new Run(scope, supervisor, options);
  const subagent = new Subagent(run.host, id, definition, whole, run);
  run.begin(subagent);
  return { id, result: run.result, cancel: (reason = 'cancelled') => subagent.cancel(reason) };
}

/** The runs of one runtime count together. */
interface Scope {
  readonly id: string;
  readonly host: Host;
}

const scopes = new WeakMap<Runtime, Scope>();

function scopeOf(runtime: Runtime): Scope {
  const known = scopes.get(runtime);
  if (known) return known;
  const { environment, journal, inspect, supervisor } = runtime;
  const id = environment.ids.next('runs');
  const scope = { id, host: createHost({ environment, journal, inspect }) };
  supervisor.open(id, {
    ...defaultSessionLimits,
    maxConcurrentPerSession: Number.MAX_SAFE_INTEGER,
    maxLivePerSession: 100_000,
    maxTotalPerSession: Number.MAX_SAFE_INTEGER,
  });
  scopes.set(runtime, scope);
  return scope;
}

const noConversation = ConversationLog.empty();

interface OpenQuestion {
  readonly requestId: string;
  readonly controller: AbortController;
  readonly stopClock: () => void;
}

class Run implements SubagentPorts {
  readonly host: Host;
  readonly path: string;
  readonly result: Promise<Outcome>;
  readonly #supervisor: Supervisor;
  readonly #options: RunSubagentOptions;
  #resolve!: (outcome: Outcome) => void;
  #subagent!: Subagent;
  #question: OpenQuestion | null = null;

  constructor(scope: Scope, supervisor: Supervisor, options: RunSubagentOptions) {
    const { onError } = options;
    this.path = scope.id;
    this.host = onError ? { ...scope.host, report: quietly(onError) } : scope.host;
    this.#supervisor = supervisor;
    this.#options = options;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  begin(subagent: Subagent): void {
    this.#subagent = subagent;
    subagent.start();
  }

  prepare({ definition, task }: Subagent, signal: AbortSignal): Promise<PreparedInstance> {
    return prepareInstance(this.host, definition, this.#options.model, signal, (own) =>
      briefing(
        own,
        buildContextSnapshot({
          mode: 'none',
          task,
          instructions: own.instructions,
          conversation: noConversation,
        }),
      ),
    );
  }

  requestSlot(id: string, resumed: boolean, grant: () => void): void {
    this.#supervisor.requestSlot(this.path, id, resumed, grant);
  }

  releaseSlot(id: string): void {
    this.#supervisor.releaseSlot(this.path, id);
  }

  ask(question: AskedQuestion): void {
    const { requestId, timeoutMs } = question;
    const { onQuestion } = this.#options;
    if (!onQuestion) {
      this.#tell({ type: 'question.withdrawn', requestId, reason: 'withdrawn: nobody is there' });
      return;
    }
    const controller = new AbortController();
    const settle = (event: SubagentUnitEvent): void => {
      if (this.#question?.controller === controller && this.withdraw(requestId)) this.#tell(event);
    };
    const stopClock = this.host.environment.scheduler.schedule(
      () => settle({ type: 'question.expired', requestId }),
      timeoutMs,
    );
    this.#question = { requestId, controller, stopClock };
    const answering = async (): Promise<void> => {
      const given = await onQuestion(question, controller.signal);
      const answer = given && givenAnswer(question, given);
      if (given && !answer)
        throw new ProtocolError('INVALID_ANSWER', `${requestId}: ${JSON.stringify(given)} is none`);
      settle(
        answer
          ? { type: 'question.answered', requestId, answer, approved: answer.approved === true }
          : { type: 'question.withdrawn', requestId, reason: 'not answered' },
      );
    };
    answering().catch((error: unknown) => {
      if (!controller.signal.aborted) this.host.report(error, 'onQuestion');
      settle({ type: 'question.withdrawn', requestId, reason: 'not answered' });
    });
  }

  /** The question is over. False if it was already. */
  withdraw(requestId: string): boolean {
    if (this.#question?.requestId !== requestId) return false;
    const { controller, stopClock } = this.#question;
    this.#question = null;
    stopClock();
    controller.abort(new CancelledError('the question is over'));
    return true;
  }

  changed(): void {}

  stepped(_subagent: Subagent, report: StepReport): void {
    callSafely(this.host, 'onStep', () => this.#options.onStep?.(report));
  }

  ended({ id }: Subagent, outcome: Outcome, disposed: Promise<void>): void {
    if (this.#question) this.withdraw(this.#question.requestId);
    this.#supervisor.ended(this.path, id);
    void disposed.then(() => this.#resolve(outcome));
  }

  #tell(event: SubagentUnitEvent): void {
    this.#subagent.receive(event);
  }
}

function quietly(onError: NonNullable<RunSubagentOptions['onError']>): Host['report'] {
  return (error, where) => {
    try {
      onError(error, where);
    } catch {
      // Whoever listens for errors is not helped by an error of their own.
    }
  };
}
