// What a subagent has said and done: its messages, the calls of the step under way and
// the ledger of all its calls. Folded from the events that its machine accepted, so
// that it can be rebuilt from them.
//
// Owns:     the messages, the results, the ledger, the token counts.
// Does not: call anything, or know what happens next.
//
// Invariants
//   G1. Between two model calls every call is answered exactly once, in call order.
//   G2. What was done is in the ledger, whatever the end.

import type { ModelMessage } from 'ai';
import { toolMessage, type StepResult } from '../ai/messages.ts';
import type { ModelCall, ModelResponse } from '../ai/model-step.ts';
import type { ToolOutcome } from '../ai/tool-run.ts';
import type { Answer } from '../session/records.ts';
import type { LedgerEntry, Usage } from './outcome.ts';

interface OpenCall extends ModelCall {
  readonly step: number;
  result: StepResult | null;
}

/** A log as plain JSON. */
export interface LogRecord {
  readonly messages: readonly ModelMessage[];
  readonly calls: readonly OpenCall[];
  readonly ledger: readonly LedgerEntry[];
  readonly text: string;
  readonly usage: Usage;
}

const empty: LogRecord = {
  messages: [],
  calls: [],
  ledger: [],
  text: '',
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
};

export class SubagentLog {
  readonly #messages: ModelMessage[];
  #calls: readonly OpenCall[];
  readonly #ledger: LedgerEntry[];
  #text: string;
  #usage: Usage;

  /** Goes on from `record`. */
  constructor({ messages, calls, ledger, text, usage }: LogRecord = empty) {
    this.#messages = [...messages];
    this.#calls = calls;
    this.#ledger = [...ledger];
    this.#text = text;
    this.#usage = usage;
  }

  get record(): LogRecord {
    return {
      messages: this.#messages,
      calls: this.#calls,
      ledger: this.#ledger,
      text: this.#text,
      usage: this.#usage,
    };
  }

  /** What the model reads next. */
  get messages(): readonly ModelMessage[] {
    return this.#messages;
  }

  /** What the model had read when it made the calls of the step under way. */
  get messagesBeforeCalls(): readonly ModelMessage[] {
    const answer = this.#messages.findLastIndex(({ role }) => role === 'assistant');
    return this.#messages.slice(0, answer);
  }

  get ledger(): readonly LedgerEntry[] {
    return this.#ledger;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** The last words of the model. */
  get text(): string {
    return this.#text;
  }

  begin(messages: readonly ModelMessage[]): void {
    this.#messages.push(...messages);
  }

  call(callId: string): ModelCall | undefined {
    return this.#calls.find((call) => call.callId === callId);
  }

  responded(step: number, response: ModelResponse, retryMessage: string | undefined): void {
    this.#messages.push(...response.assistantMessages);
    this.said(response);
    this.#calls = response.calls.map((call) => ({ ...call, step, result: null }));
    if (retryMessage !== undefined) this.#messages.push({ role: 'user', content: retryMessage });
  }

  /** What the model said and cost, also when nothing can be made of it. */
  said({ text, usage }: Pick<ModelResponse, 'text' | 'usage'>): void {
    if (text !== '') this.#text = text;
    this.#usage = {
      inputTokens: this.#usage.inputTokens + usage.inputTokens,
      outputTokens: this.#usage.outputTokens + usage.outputTokens,
      totalTokens: this.#usage.totalTokens + usage.totalTokens,
    };
  }

  settled(callId: string, outcome: ToolOutcome): void {
    this.#settle(callId, { callId, outcome }, outcome.status, ledgerOutput(outcome));
  }

  answered(callId: string, answer: Answer): void {
    if (answer.approved === true) return;
    if (answer.approved === false) {
      this.#settle(callId, { callId, denied: answer.userResponse }, 'denied', answer.userResponse);
      return;
    }
    const { approved: _, ...output } = answer;
    this.#settle(callId, { callId, output }, 'ok', output);
  }

  /** The question got no answer; the model reads why. */
  unanswered(callId: string, error: string): void {
    this.#settle(callId, { callId, output: { error } }, 'unanswered', error);
  }

  /** Answers the calls of the step, so that the model can be called again. */
  closeStep(): void {
    if (this.#calls.length === 0) return;
    this.#messages.push(
      toolMessage(
        this.#calls,
        this.#calls.flatMap(({ result }) => result ?? []),
      ),
    );
    this.#calls = [];
  }

  /** Calls that nobody ran, at the end. */
  abandonCalls(): void {
    for (const call of this.#calls)
      if (call.result === null) this.#ledger.push(entry(call, 'not_run', null));
    this.#calls = [];
  }

  #settle(
    callId: string,
    result: StepResult,
    status: LedgerEntry['status'],
    output: unknown,
  ): void {
    const call = this.#calls.find((open) => open.callId === callId);
    if (!call || call.result !== null) return;
    call.result = result;
    this.#ledger.push(entry(call, status, output));
  }
}

function entry(call: OpenCall, status: LedgerEntry['status'], output: unknown): LedgerEntry {
  const { step, callId, toolName, input } = call;
  return { step, callId, toolName, input, status, output };
}

function ledgerOutput(outcome: ToolOutcome): unknown {
  return outcome.status === 'ok' ? outcome.output : outcome.error.message;
}
