// A relay to an AI SDK agent: any object with the `Agent` interface, such as a `ToolLoopAgent`. The agent runs its loop
// in this process, with its own model, tools, instructions, stop conditions and approvals.
//
// Does not: store the conversation after the process ends, steer the agent within a turn, read its structured output,
//           or pass call options to it.
//
// Invariants
//   AGENT-RELAY-1. A tool is reported after the text that precedes it, but before its `execute` is called. After a turn
//       has been cut short, none of its tools is called.
//   AGENT-RELAY-2. Every call in the conversation has a result. If a call was open when its turn was cut short, its
//       result says so and the call does not run again.

import type { Agent, ModelMessage, ToolModelMessage, ToolSet } from 'ai';
import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { messageOf } from '../../values/errors.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import type {
  Relay,
  RelayAnswer,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
} from '../ports/relay.ts';
import { relayLoop } from './relay-loop.ts';

/** The part of an AI SDK `Agent` that a relay uses; the agent may have any tools. */
export interface RelayedAgent {
  /** The agent's id, which names the agent in messages if the relay has no `name`. @defaultValue none */
  readonly id?: string | undefined;
  /**
   * Runs one turn, like `Agent.stream`. The relay reports the parts of `stream`, and passes `responseMessages` to the
   * next turn.
   */
  stream(options: never): PromiseLike<{
    readonly stream: ReadableStream<unknown>;
    readonly responseMessages: PromiseLike<ModelMessage[]>;
  }>;
}

/** A question that an AI SDK agent asks the user by calling a tool. */
export interface AgentQuestion {
  readonly text: string;
  readonly options?: readonly {
    readonly id: string;
    readonly label: string;
    readonly description?: string;
  }[];
}

/** The options of `agentRelay`. */
export interface AgentRelayOptions {
  /** The agent's name in messages. @defaultValue the agent's id, or `an agent` */
  readonly name?: string;
  /**
   * The agent's tools that ask the user and have no `execute`, by name. Each function derives the question from the
   * call's input. The agent receives `{ answer, optionId? }` as the result. @defaultValue {}
   */
  readonly questions?: Readonly<Record<string, (input: unknown) => AgentQuestion>>;
}

/** An agent whose tools may have any types. */
type AnyAgent = Agent<never, ToolSet>;
type StreamOptions = Parameters<AnyAgent['stream']>[0];
type TurnEnd = Extract<RelayEvent, { readonly type: 'turn_ended' }>;

interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

interface Turn {
  readonly stop: AbortController;
  /** The calls that have appeared in the stream. All text before them has been passed on. */
  readonly seen: Map<string, PromiseWithResolvers<void>>;
  readonly started: Set<string>;
}

/** The calls left unanswered by one run of the agent's stream. */
interface Segment {
  readonly finishReason: string;
  readonly hasText: boolean;
  readonly approvals: ReadonlyMap<string, Call>;
  readonly unanswered: ReadonlyMap<string, Call>;
}

const anAgent = z.custom<AnyAgent>(
  (value) => {
    if (typeof value !== 'object' || value === null) return false;
    return typeof (value as Partial<RelayedAgent>).stream === 'function';
  },
  { error: 'expected an agent of the AI SDK, such as new ToolLoopAgent({ model, tools })' },
);
const optionsSchema = z.strictObject({
  name: z.string().min(1).optional(),
  questions: z.record(z.string(), aFunction).optional(),
} satisfies ChecksOf<AgentRelayOptions>);
const questionSchema = z.object({
  text: z.string().min(1),
  options: z
    .array(z.object({ id: z.string(), label: z.string(), description: z.string().optional() }))
    .optional(),
});
const argumentsSchema = z.strictObject({ agent: anAgent, options: optionsSchema });

const CUT_OFF =
  'The turn was cut off. The call may have been run or not: look before you repeat it.';
const ENDS: Readonly<Record<string, TurnEnd['reason']>> = {
  stop: 'completed',
  length: 'limit',
  'content-filter': 'refused',
};

/**
 * Creates a relay to an AI SDK agent, for `defineSubagent({ relay })`. The agent runs only while a subagent uses it.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function agentRelay(agent: RelayedAgent, options: AgentRelayOptions = {}): Relay {
  const checked = check('agentRelay(agent, options)', argumentsSchema, { agent, options });
  const { name = agent.id ?? 'an agent', questions = {} } = options;
  let sessions = 0;
  return {
    name,
    loop: relayLoop,
    // The conversation exists only in this process's memory.
    capabilities: {
      openQuestionSurvives: false,
      resumes: false,
      steers: false,
      reportsTools: true,
    },
    start(start) {
      if (start.signal.aborted) return Promise.reject(start.signal.reason as Error);
      sessions += 1;
      const id = `${start.subagentId}-agent-${sessions}`;
      return Promise.resolve(new AgentSession(id, checked.agent, questions, start));
    },
  };
}

class AgentSession implements RelaySession {
  readonly isRunning = false;
  readonly id: string;
  readonly #agent: AnyAgent;
  readonly #questions: NonNullable<AgentRelayOptions['questions']>;
  readonly #start: RelayStart;
  readonly #messages: ModelMessage[] = [];
  readonly #open = new Map<string, (answer: RelayAnswer) => void>();
  #turn: Turn | null = null;
  #requests = 0;
  #isOver = false;
  /** Tools whose results were lost because a turn was cut short. */
  #lost: string[] = [];

  constructor(
    id: string,
    agent: AnyAgent,
    questions: NonNullable<AgentRelayOptions['questions']>,
    start: RelayStart,
  ) {
    this.id = id;
    this.#agent = agent;
    this.#questions = questions;
    this.#start = start;
  }

  prompt({ text }: RelayPrompt): void {
    if (this.#isOver) return;
    const turn: Turn = { stop: new AbortController(), seen: new Map(), started: new Set() };
    this.#turn = turn;
    const lost = this.#lost.map((tool) => JSON.stringify(tool)).join(', ');
    this.#lost = [];
    const before =
      lost === '' ? '' : `(Your last turn was cut off while these tools ran: ${lost}.)\n\n`;
    this.#messages.push({ role: 'user', content: `${before}${text}` });
    void this.#run(turn);
  }

  /** Never called, because the capabilities do not include steering. */
  steer(): void {}

  answer(requestId: string, answer: RelayAnswer): void {
    const settle = this.#open.get(requestId);
    this.#open.delete(requestId);
    settle?.(answer);
  }

  interrupt(): void {
    this.#turn?.stop.abort();
    for (const requestId of this.#open.keys()) this.answer(requestId, { type: 'cancelled' });
  }

  release(): Promise<RelayRelease> {
    const wasRunning = this.#turn !== null;
    this.#isOver = true;
    this.interrupt();
    this.#turn = null;
    return Promise.resolve(wasRunning ? 'cancelled' : 'idle');
  }

  async #run(turn: Turn): Promise<void> {
    const end = await this.#work(turn).catch((error: unknown): TurnEnd => {
      return { type: 'turn_ended', reason: 'failed', message: messageOf(error) };
    });
    if (this.#turn !== turn) return;
    this.#closeCalls();
    this.#turn = null;
    // Output that the agent produces later does not belong to any turn.
    const isCut = turn.stop.signal.aborted;
    turn.stop.abort();
    this.#start.receive(isCut ? { type: 'turn_ended', reason: 'cancelled' } : end);
  }

  async #work(turn: Turn): Promise<TurnEnd> {
    const { signal } = turn.stop;
    for (;;) {
      const segment = await this.#segment(turn);
      const { approvals, unanswered, finishReason, hasText } = segment;
      if (signal.aborted) return { type: 'turn_ended', reason: 'cancelled' };
      if (approvals.size > 0 || unanswered.size > 0) {
        const content = await this.#settle(turn, segment);
        if (signal.aborted) return { type: 'turn_ended', reason: 'cancelled' };
        this.#messages.push({ role: 'tool', content });
        continue;
      }
      // The run was ended by a stop condition. If the agent wrote any text, the text is the answer.
      if (finishReason === 'tool-calls')
        return hasText
          ? { type: 'turn_ended', reason: 'completed' }
          : { type: 'turn_ended', reason: 'limit', message: 'it was stopped without an answer' };
      return { type: 'turn_ended', reason: ENDS[finishReason] ?? 'failed', message: finishReason };
    }
  }

  /** Runs the agent until it finishes or has calls that need an answer. */
  async #segment(turn: Turn): Promise<Segment> {
    const { signal } = turn.stop;
    const finished: ModelMessage[] = [];
    const running = new Map<string, string>();
    const calls = new Map<string, Call>();
    const approvals = new Map<string, Call>();
    const unanswered = new Map<string, Call>();
    let finishReason = 'other';
    let hasText = false;
    let failure: { readonly error: unknown } | null = null;
    let isComplete = false;

    const started = (call: Call): void => {
      if (turn.started.has(call.toolCallId)) return;
      turn.started.add(call.toolCallId);
      running.set(call.toolCallId, call.toolName);
      this.#send(turn, { type: 'tool_started', toolId: call.toolCallId, ...toolOf(call) });
    };
    const ended = (call: Call, ok: boolean, output: unknown): void => {
      // Some agents do not report when a tool starts.
      started(calls.get(call.toolCallId) ?? call);
      running.delete(call.toolCallId);
      unanswered.delete(call.toolCallId);
      this.#send(turn, { type: 'tool_ended', toolId: call.toolCallId, ok, output });
    };
    const options: StreamOptions = {
      messages: [...this.#messages],
      abortSignal: signal,
      onToolExecutionStart: async ({ toolCall }) => {
        //   AGENT-RELAY-1. The tool is called after this promise settles, but never after its turn has been cut short.
        await seenIn(turn, toolCall.toolCallId).promise;
        if (signal.aborted) await new Promise<never>(() => {});
        started(toolCall);
      },
      onStepEnd: ({ response, usage }) => {
        finished.push(...response.messages);
        const { inputTokens = 0, outputTokens = 0, inputTokenDetails, outputTokenDetails } = usage;
        const parts = {
          cachedInputTokens: inputTokenDetails?.cacheReadTokens,
          cacheWriteTokens: inputTokenDetails?.cacheWriteTokens,
          reasoningTokens: outputTokenDetails?.reasoningTokens,
        };
        this.#send(turn, {
          type: 'usage',
          inputTokens,
          outputTokens,
          ...withoutUndefined(parts),
        });
      },
    };

    try {
      const result = await raceAbort(this.#agent.stream(options), signal);
      const reader = result.stream.getReader();
      const cancel = (): void => void reader.cancel(signal.reason).catch(() => {});
      if (signal.aborted) cancel();
      else signal.addEventListener('abort', cancel, { once: true });
      for (;;) {
        const { done, value: part } = await reader.read();
        if (done || signal.aborted) break;
        if (part.type === 'start-step') hasText = false;
        else if (part.type === 'text-delta') {
          if (part.text === '') continue;
          hasText = true;
          this.#send(turn, { type: 'words', text: part.text });
        } else if (part.type === 'tool-call') {
          calls.set(part.toolCallId, part);
          seenIn(turn, part.toolCallId).resolve();
          if (part.providerExecuted === true) started(part);
          else if (part.invalid !== true) unanswered.set(part.toolCallId, part);
        } else if (part.type === 'tool-approval-request') {
          if (part.isAutomatic === true) continue;
          unanswered.delete(part.toolCall.toolCallId);
          approvals.set(part.approvalId, part.toolCall);
        } else if (part.type === 'tool-result') {
          if (part.preliminary !== true) ended(part, true, part.output);
        } else if (part.type === 'tool-error') {
          // An invalid call is never run.
          if (calls.get(part.toolCallId) === undefined || turn.started.has(part.toolCallId))
            ended(part, false, messageOf(part.error));
          unanswered.delete(part.toolCallId);
        } else if (part.type === 'tool-output-denied') unanswered.delete(part.toolCallId);
        else if (part.type === 'finish') finishReason = part.finishReason;
        else if (part.type === 'error') failure ??= { error: part.error };
        else if (part.type === 'abort') failure ??= { error: new Error('it was aborted') };
      }
      signal.removeEventListener('abort', cancel);
      if (failure !== null) throw failure.error;
      const messages = await raceAbort(result.responseMessages, signal);
      this.#messages.push(...messages);
      isComplete = true;
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      if (!isComplete) {
        this.#messages.push(...finished);
        this.#lost.push(...running.values());
      }
    }
    return { finishReason, hasText, approvals, unanswered };
  }

  /** Concurrently asks for all the answers that a segment of the agent's run needs. */
  async #settle(
    turn: Turn,
    { approvals, unanswered }: Segment,
  ): Promise<ToolModelMessage['content']> {
    const questions = [...unanswered.values()].map((call) => ({
      call,
      question: this.#questionOf(call),
    }));
    const permitted = [...approvals].map(async ([approvalId, call]) => {
      seenIn(turn, call.toolCallId).resolve();
      const answer = await this.#ask(turn, (requestId) => ({
        type: 'permission',
        requestId,
        toolId: call.toolCallId,
        ...toolOf(call),
      }));
      return {
        type: 'tool-approval-response' as const,
        approvalId,
        approved: answer.type === 'permitted',
        ...(answer.type === 'denied' ? { reason: answer.words } : {}),
        ...(answer.type === 'cancelled' ? { reason: 'Nobody answered.' } : {}),
      };
    });
    const answered = questions.map(async ({ call: { toolCallId, toolName }, question }) => {
      const answer = await this.#ask(turn, (requestId) => ({
        type: 'question',
        requestId,
        text: question.text,
        ...(question.options ? { options: question.options } : {}),
      }));
      const output =
        answer.type === 'answered'
          ? {
              type: 'json' as const,
              value: {
                answer: answer.text,
                ...(answer.optionId === undefined ? {} : { optionId: answer.optionId }),
              },
            }
          : { type: 'error-text' as const, value: 'Nobody answered.' };
      return { type: 'tool-result' as const, toolCallId, toolName, output };
    });
    return Promise.all([...permitted, ...answered]);
  }

  #questionOf({ toolName, input }: Call): AgentQuestion {
    const ask = Object.hasOwn(this.#questions, toolName) ? this.#questions[toolName] : undefined;
    if (!ask)
      throw new Error(
        `its tool ${JSON.stringify(toolName)} has no execute: name it in \`questions\` of agentRelay if it asks the user`,
      );
    const { text, options } = check(`questions.${toolName}(input)`, questionSchema, ask(input));
    return { text, ...(options ? { options } : {}) };
  }

  #ask(turn: Turn, event: (requestId: string) => RelayEvent): Promise<RelayAnswer> {
    if (this.#turn !== turn || turn.stop.signal.aborted)
      return Promise.resolve({ type: 'cancelled' });
    this.#requests += 1;
    const requestId = `request-${this.#requests}`;
    return new Promise((resolve) => {
      this.#open.set(requestId, resolve);
      this.#send(turn, event(requestId));
    });
  }

  /** AGENT-RELAY-2 */
  #closeCalls(): void {
    const open = new Map<string, string>();
    for (const { role, content } of this.#messages) {
      if (typeof content === 'string' || (role !== 'assistant' && role !== 'tool')) continue;
      for (const part of content)
        if (part.type === 'tool-call' && part.providerExecuted !== true)
          open.set(part.toolCallId, part.toolName);
        else if (part.type === 'tool-result') open.delete(part.toolCallId);
    }
    if (open.size === 0) return;
    this.#messages.push({
      role: 'tool',
      content: [...open].map(([toolCallId, toolName]) => ({
        type: 'tool-result',
        toolCallId,
        toolName,
        output: { type: 'error-text', value: CUT_OFF },
      })),
    });
  }

  #send(turn: Turn, event: RelayEvent): void {
    if (this.#turn === turn && !turn.stop.signal.aborted) this.#start.receive(event);
  }
}

function toolOf({ toolName, input }: Call) {
  return { title: toolName, kind: 'other', input };
}

function seenIn({ seen }: Turn, toolCallId: string): PromiseWithResolvers<void> {
  const known = seen.get(toolCallId) ?? Promise.withResolvers<void>();
  seen.set(toolCallId, known);
  return known;
}
