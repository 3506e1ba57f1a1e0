// The ports of subagents that run without a session: a program takes the place of the user and the lead agent.
//
// Owns:     the questions that the program's handlers are answering, and their time limits.
// Does not: manage the subagents.
//
// Invariants
//   PROGRAM-PORTS-2. A question ends once, when it is answered, expires or is withdrawn. Its handler's signal then
//       aborts.

import type { LanguageModel } from 'ai';
import { aFunction, type ChecksOf } from '../../values/checks.ts';
import { shown } from '../../values/plain-checks.ts';
import { CancelledError, ConfigurationError, ProtocolError } from '../../values/errors.ts';
import { buildContextSnapshot } from '../context/context-snapshot.ts';
import { ConversationLog } from '../conversation/conversation.ts';
import { OutcomeProcessor } from '../../results/outcome-processor.ts';
import type { OutcomeOptions } from '../../results/outcome-processor.ts';
import { checkedBy, type VouchedFor } from '../contracts/identity.ts';
import { mayAnswer } from '../contracts/session-views.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import type { DoubtfulCall, SubagentView } from '../contracts/session-views.ts';
import type { Answer, AskedQuestion } from '../contracts/records.ts';
import { ownValue } from '../../values/own-value.ts';
import { checkedAnswer, givenAnswer, withInput, type GivenAnswer } from '../subagent/ask-user.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import { briefing, type Briefing } from '../subagent/instance.ts';
import type { Giver, ScopeNews, ScopePorts, ScopeTerms } from './scope-ports.ts';
import type { SubagentTree } from './subagent-tree.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../contracts/service-types.ts';
import type { StepReport, SubagentTask } from '../contracts/task.ts';
import type { SubagentUnitEvent } from '../subagent/subagent-events.ts';

/** A subagent's request to its parent, if the parent is the program. */
export interface ProgramRequest extends PendingInput {
  /** The subagent that asks. */
  readonly subagentId: string;
  /** The `name` of the subagent's configuration. */
  readonly subagentName: string;
}

/**
 * The answer to a question. `by`: the identity of the person who answers, which the program has verified. Required if
 * the question has `answerableBy`.
 */
export type ProgramAnswer = GivenAnswer & VouchedFor;

/** A program's callbacks for its running subagents. */
export interface ProgramHandlers {
  /**
   * Answers a question or an approval on behalf of the user. Return null to leave the question unanswered. `signal`
   * aborts when the question is over. Without this handler, questions are withdrawn immediately.
   */
  readonly onQuestion?: (
    question: AskedQuestion,
    signal: AbortSignal,
  ) => ProgramAnswer | null | Promise<ProgramAnswer | null>;
  /**
   * Answers a request to the parent (`request_input`), if the program is the parent. Return null to leave the request
   * unanswered.
   */
  readonly onInput?: (request: ProgramRequest) => string | null | Promise<string | null>;
  /**
   * Receives a subagent's progress: its own notes, and reports from its tools or its relayed agent (`percent` is null
   * for these).
   */
  readonly onProgress?: (note: ProgressNote, subagentId: string) => void;
  /** Called after each model step of a subagent. @defaultValue nothing is reported */
  readonly onStep?: (report: StepReport, subagentId: string) => void;
  /**
   * Called after a crash for each tool call that was running when the process ended. Calls to `idempotent` tools are
   * repeated instead. The model is also told about the call.
   */
  readonly onCallInDoubt?: (call: DoubtfulCall) => void;
}

const handler = aFunction.optional();

export const handlerChecks = {
  onQuestion: handler,
  onInput: handler,
  onProgress: handler,
  onStep: handler,
  onCallInDoubt: handler,
} satisfies ChecksOf<ProgramHandlers>;

/** The program that the subagents work for. */
export interface ProgramPortsOptions {
  readonly host: Host;
  readonly model: LanguageModel | undefined;
  readonly handlers: ProgramHandlers;
  readonly tools?: Readonly<Record<string, unknown>>;
  readonly outcomes?: OutcomeOptions;
  /** Configurations by name. Subagents that are restored from the journal use them. */
  readonly configs?: Readonly<Record<string, SubagentConfig>>;
  /** The record of the results that the program has received, if a journal stores them. */
  readonly ledger?: { hasHad(id: string): boolean; had(id: string): void };
  /** Returns the tree of the subagents, or null if none of them works for these ports. */
  tree(): SubagentTree | null;
  /** Whether requests may be answered with `send` if there is no `onInput`. */
  readonly answersBySend: boolean;
  /**
   * If an earlier process already asked a question, returns when it first did so, in milliseconds since 1970.
   * @defaultValue now
   */
  askedAt?(requestId: string): number | undefined;
  readonly terms?: Pick<ScopeTerms, 'standIn' | 'stepsAreJobs' | 'denied'>;
  /** Receives the notifications about changes, ended subagents and missing resources. */
  onNews?(news: ScopeNews): void;
}

interface OpenQuestion {
  readonly subagentId: string;
  readonly controller: AbortController;
  readonly stopClock: () => void;
}

const noConversation = ConversationLog.empty();

export class ProgramPorts implements ScopePorts {
  readonly name = 'program';
  readonly host: Host;
  readonly terms: ScopeTerms;
  readonly giver: Giver;
  readonly outcomes: OutcomeProcessor;
  readonly #options: ProgramPortsOptions;
  readonly #questions = new Map<string, OpenQuestion>();
  /** The last progress of each running subagent, so that only new text is reported. */
  readonly #progress = new Map<string, string>();

  constructor(options: ProgramPortsOptions) {
    this.host = options.host;
    const { handlers, ledger, model, terms, tools = {} } = options;
    this.terms = {
      ...terms,
      isRecoverable: ledger !== undefined,
      // The program's handlers have the questions, and the handlers stop with the process.
      keepsQuestions: false,
      handlesInput: handlers.onInput !== undefined,
    };
    this.giver = { agentName: null, model, tools: () => tools };
    this.outcomes = new OutcomeProcessor(options.host, options.outcomes ?? {});
    this.#options = options;
  }

  configOf(_toolName: string, name: string): SubagentConfig | undefined {
    return ownValue(this.#options.configs ?? {}, name);
  }

  endOf(id: string) {
    return { isKnown: this.#options.ledger?.hasHad(id) ?? true, outcome: null };
  }

  tell(news: ScopeNews): void {
    const { handlers, ledger, onNews } = this.#options;
    const report = (name: string, call: () => unknown): void => callSafely(this.host, name, call);
    switch (news.type) {
      case 'question.asked':
        return this.#ask(news.question);
      case 'question.withdrawn':
        return this.#withdraw(news.requestId);
      case 'input.requested':
        return this.#requested(news.view, news.request);
      case 'progressed': {
        const { id } = news.view;
        this.#progress.set(id, news.note.update);
        return report('onProgress', () => handlers.onProgress?.(news.note, id));
      }
      case 'changed':
        onNews?.(news);
        return this.#progressed(news.view);
      case 'stepped':
        return report('onStep', () => handlers.onStep?.(news.report, news.view.id));
      case 'call.in_doubt': {
        const { id: subagentId, name: subagentName } = news.view;
        const call = { subagentId, subagentName, ...news.call };
        return report('onCallInDoubt', () => handlers.onCallInDoubt?.(call));
      }
      case 'delivered':
        if (news.parentId === null) ledger?.had(news.id);
        return;
      case 'ended':
        for (const [requestId, { subagentId }] of this.#questions)
          if (subagentId === news.view.id) this.#withdraw(requestId);
        this.#progress.delete(news.view.id);
        return onNews?.(news);
      case 'lacks':
        return onNews?.(news);
      case 'input.settled':
      case 'wait.began':
      case 'wait.ended':
    }
  }

  brief(
    own: SubagentDefinition,
    task: SubagentTask,
    conversation: SpawnRequest['messages'],
    notes: NoteMarks | null,
  ): Briefing {
    const { instructions } = own;
    const snapshot = buildContextSnapshot({
      mode: 'none',
      task,
      instructions,
      conversation: noConversation,
    });
    return briefing(own, conversation ? { ...snapshot, conversation } : snapshot, notes);
  }

  #ask(question: AskedQuestion): void {
    const { requestId, subagentId, timeoutMs } = question;
    const { handlers, tree } = this.#options;
    const { onQuestion } = handlers;
    if (!onQuestion) {
      const reason = 'withdrawn: the user is not there';
      tree()?.get(subagentId)?.receive({ type: 'question.withdrawn', requestId, reason });
      return;
    }
    const controller = new AbortController();
    const settle = (event: SubagentUnitEvent): void => {
      if (this.#questions.get(requestId)?.controller !== controller) return;
      this.#withdraw(requestId);
      tree()?.get(subagentId)?.receive(event);
    };
    const { clock, scheduler } = this.host.environment;
    const now = clock.now();
    const dueAt = (this.#options.askedAt?.(requestId) ?? now) + timeoutMs;
    const stopClock = scheduler.schedule(
      () => settle({ type: 'question.expired', requestId }),
      Math.max(0, dueAt - now),
    );
    this.#questions.set(requestId, { subagentId, controller, stopClock });
    const answering = async (): Promise<void> => {
      const given = await onQuestion(question, controller.signal);
      // An answer without changed arguments must be passed on immediately, because the question could be withdrawn in
      // the meantime.
      const answer =
        given?.input === undefined
          ? given && answerOf(question, given)
          : await this.#changed(question, given);
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

  /** Converts the changed arguments in an answer with the tool's schema, and returns the new answer. */
  async #changed(question: AskedQuestion, given: ProgramAnswer): Promise<Answer> {
    const asker = this.#options.tree()?.get(question.subagentId);
    const call = await asker?.changedCall(question.requestId, given.input);
    if (!call) throw new CancelledError('the question is over');
    return withInput(question, answerOf(question, given), call.changed);
  }

  #withdraw(requestId: string): void {
    const question = this.#questions.get(requestId);
    if (!question) return;
    this.#questions.delete(requestId);
    question.stopClock();
    question.controller.abort(new CancelledError('the question is over'));
  }

  /** Withdraws all questions. The process that resumes the subagents asks the questions again. */
  suspend(): void {
    for (const requestId of this.#questions.keys()) this.#withdraw(requestId);
  }

  #requested({ id, name }: SubagentView, request: PendingInput): void {
    const { requestId } = request;
    const { answersBySend, handlers } = this.#options;
    const answer = (content: string | null): void =>
      this.#options.tree()?.settleRequest(id, requestId, content);
    const { onInput } = handlers;
    if (!onInput) {
      if (!answersBySend) answer(null);
      return;
    }
    const asking = async (): Promise<void> => {
      answer(contentOf(await onInput({ ...request, subagentId: id, subagentName: name })));
    };
    asking().catch((error: unknown) => {
      this.host.report(error, 'onInput');
      answer(null);
    });
  }

  /** Reports new progress from a tool or a relayed agent. Only the view contains it. */
  #progressed(view: SubagentView): void {
    const { id, progress: update } = view;
    if (update === null || update === this.#progress.get(id)) return;
    const note = { update, percent: null, at: this.host.environment.clock.now() };
    this.tell({ type: 'progressed', view, note });
  }
}

/** @throws {ConfigurationError} `INVALID_ANSWER` if the value is not an answer to a request. */
export function contentOf(given: unknown): string | null {
  if (given === null || typeof given === 'string') return given;
  throw new ConfigurationError(
    'INVALID_ANSWER',
    `onInput: expected text or null, got ${shown(given)}`,
  );
}

/** @throws {OffstageError} if the value does not answer this question, or if the identity may not answer it. */
export function answerOf(question: AskedQuestion, given: ProgramAnswer): Answer {
  // Spreading a string or a list would copy its characters or items.
  const isPlain = typeof given === 'object' && given !== null && !Array.isArray(given);
  const { by, ...rest } = isPlain ? given : ({} as ProgramAnswer);
  const checked = checkedAnswer('onQuestion', isPlain ? rest : given);
  if (checked.lasts)
    throw new ConfigurationError(
      'INVALID_ANSWER',
      'onQuestion: expected no `lasts`, because a run without a session keeps no approval: answer each question',
    );
  const answer = givenAnswer(question, checked);
  const who = checkedBy('onQuestion', { by });
  const { requestId, answerableBy = [] } = question;
  if (!mayAnswer(question, who))
    throw new ProtocolError(
      'NOT_ALLOWED',
      `${requestId}: expected \`by\` to be one of ${answerableBy.join(', ')}, got ${shown(who)}`,
    );
  if (!answer)
    throw new ProtocolError(
      'INVALID_ANSWER',
      `${requestId}: expected an answer to the question, got ${shown(given)}`,
    );
  return who === undefined ? answer : { ...answer, by: who };
}
