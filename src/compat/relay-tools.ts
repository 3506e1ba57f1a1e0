// The relay tools of the superseded systems: a model between the user and the external agent, with the tools
// `agent_start` and `agent_respond` (or `claude_code_…`), and `ask_claude` for the lead agent.
//
// Does not: let a model grant permissions. A request that `permits` does not allow is denied. A configuration with
//           `relay` asks the user instead.

import { tool } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../actors/contracts/config.ts';
import type { Environment } from '../actors/ports/environment.ts';
import type {
  Relay,
  RelayAnswer,
  RelayEvent,
  RelaySession,
  RelayTool,
} from '../actors/ports/relay.ts';
import { aFunction, anObject, check, type ChecksOf } from '../values/checks.ts';
import { messageOf } from '../values/errors.ts';
import { looksLikeQuestion } from './openclaw-tasks.ts';

/** The options of `relaySubagent`. */
export interface RelayToolsOptions {
  /** The relay that reaches the agent. */
  readonly relay: Relay;
  /** The source of time, ids and randomness. */
  readonly environment: Environment;
  /** The prefix of the tool names: `agent_start`, or `claude_code_start`. @defaultValue 'agent' */
  readonly prefix?: 'agent' | 'claude_code';
  /** Allows the agent to use a tool without asking. @defaultValue none */
  readonly permits?: (tool: RelayTool) => boolean;
  /** The maximum number of turns with an agent. @defaultValue 20 */
  readonly maxTurns?: number;
}

/** The result that a relay tool returns. */
export interface RelayToolResult {
  /** Whether the agent has completed its task, is asking a question or has failed. */
  readonly status: 'completed' | 'needs_input' | 'error';
  /** The agent's session, which the respond tool needs. Absent if no agent was reached. */
  readonly sessionId?: string;
  /**
   * The thread, which a later call of the start tool can name to resume its last completed session. Absent if no agent
   * was reached.
   */
  readonly threadId?: string;
  /** The agent's text. @defaultValue none */
  readonly text?: string;
  /** The options of the agent's question, if any. @defaultValue none */
  readonly options?: readonly string[];
  /** The description of the failure. @defaultValue none */
  readonly error?: string;
}

const optionsSchema = z.strictObject({
  relay: anObject('a relay: acpRelay(…)', 'start'),
  environment: anObject('an environment: nodeEnvironment()'),
  prefix: z.enum(['agent', 'claude_code']).optional(),
  permits: aFunction.optional(),
  maxTurns: z.number().int().min(1).optional(),
} satisfies ChecksOf<RelayToolsOptions>);

const CONTINUITY = ['resume_if_available', 'force_resume', 'force_fresh'] as const;
const INSTRUCTIONS =
  'Hand the task to the agent with the start tool. When it needs input, ask the user with ask_user, and pass the ' +
  'answer on with the respond tool, until its status is completed. Then repeat what it reported, in short.';

/**
 * Creates the configuration of a subagent that has these tools. Each subagent starts its own agents, which stop when
 * the subagent ends.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function relaySubagent(
  options: RelayToolsOptions,
): SubagentConfig & { readonly tools: NonNullable<SubagentConfig['tools']> } {
  check('relaySubagent(options)', optionsSchema, options);
  const { prefix = 'agent', environment } = options;
  const agents = new Agents(options);
  return {
    name: `${prefix}_relay`,
    instructions: INSTRUCTIONS,
    interactive: true,
    maxSteps: 20,
    timeout: 600_000,
    tools: {
      [`${prefix}_start`]: tool({
        description: 'Give the agent a task. Returns its status, its words and a sessionId.',
        inputSchema: z.object({
          task: z.string().trim().min(1).max(100_000),
          continuity: z.enum(CONTINUITY).optional(),
          threadId: z.string().max(1_000).optional(),
        }),
        execute: (input, { abortSignal = new AbortController().signal }) =>
          agents.start(input, abortSignal, environment.ids.next('relay')),
      }),
      [`${prefix}_respond`]: tool({
        description: 'Answer the agent, or tell it more.',
        inputSchema: z.object({ sessionId: z.string(), response: z.string().max(100_000) }),
        execute: ({ sessionId, response }, { abortSignal = new AbortController().signal }) =>
          agents.respond(sessionId, response, abortSignal),
      }),
    },
    createInstance: () => relaySubagent(options),
    dispose: () => agents.dispose(),
  };
}

interface StartInput {
  readonly task: string;
  readonly continuity?: (typeof CONTINUITY)[number] | undefined;
  readonly threadId?: string | undefined;
}

/** One subagent's agents. */
class Agents {
  readonly #options: RelayToolsOptions;
  readonly #threads = new Map<string, Conversation>();
  /** The last completed session of each thread. An error does not replace it. */
  readonly #completed = new Map<string, string>();
  #count = 0;

  constructor(options: RelayToolsOptions) {
    this.#options = options;
  }

  async start(
    { task, continuity = 'resume_if_available', threadId: wanted }: StartInput,
    signal: AbortSignal,
    owner: string,
  ): Promise<RelayToolResult> {
    const known = wanted ?? this.#threads.keys().next().value;
    const target = known === undefined ? undefined : this.#completed.get(known);
    if (continuity === 'force_resume' && target === undefined)
      return { status: 'error', error: 'force_resume_requested_but_no_resume_target' };
    const isContinued = target !== undefined && continuity !== 'force_fresh';
    const open = known === undefined ? undefined : this.#threads.get(known);
    if (isContinued && known !== undefined && open?.isIdle === true)
      return this.#turn(known, open, signal, () => open.say(task));
    const threadId = isContinued && known !== undefined ? known : this.#nextThread();
    const conversation = new Conversation(this.#options, owner);
    try {
      await conversation.open(isContinued ? target : undefined, signal);
    } catch (error) {
      if (!isContinued || continuity === 'force_resume' || signal.aborted)
        return { status: 'error', error: messageOf(error) };
      // The agent does not know the session any more, so one attempt is made with a new session.
      try {
        await conversation.open(undefined, signal);
      } catch (again) {
        return { status: 'error', error: messageOf(again) };
      }
    }
    await this.#threads.get(threadId)?.release();
    this.#threads.set(threadId, conversation);
    return this.#turn(threadId, conversation, signal, () => conversation.say(task));
  }

  async respond(
    sessionId: string,
    response: string,
    signal: AbortSignal,
  ): Promise<RelayToolResult> {
    const [threadId, conversation] =
      [...this.#threads].find(([, { id }]) => id === sessionId) ?? [];
    if (threadId === undefined || !conversation)
      return { status: 'error', error: 'unknown_session_thread_mapping' };
    return this.#turn(threadId, conversation, signal, () => conversation.respond(response));
  }

  async dispose(): Promise<void> {
    const all = [...this.#threads.values()];
    this.#threads.clear();
    await Promise.allSettled(all.map((one) => one.release()));
  }

  async #turn(
    threadId: string,
    conversation: Conversation,
    signal: AbortSignal,
    begin: () => Promise<RelayToolResult>,
  ): Promise<RelayToolResult> {
    if (signal.aborted) return { status: 'error', error: 'the call was cancelled' };
    const stop = (): void => conversation.interrupt();
    signal.addEventListener('abort', stop, { once: true });
    try {
      const result = await begin();
      const { id: sessionId } = conversation;
      if (result.status === 'completed') this.#completed.set(threadId, sessionId);
      if (conversation.isClosed) this.#threads.delete(threadId);
      return { ...result, sessionId, threadId };
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #nextThread(): string {
    this.#count += 1;
    return `${this.#options.prefix === 'claude_code' ? 'claude' : 'agent'}_thread_${this.#count}`;
  }
}

type Question = Extract<RelayEvent, { readonly type: 'question' }>;

/** The conversation with one agent. */
class Conversation {
  readonly #options: RelayToolsOptions;
  readonly #owner: string;
  #session: RelaySession | null = null;
  #words = '';
  #turns = 0;
  #isTurn = false;
  #open: Question | null = null;
  #settle: ((result: RelayToolResult) => void) | null = null;
  isClosed = false;

  constructor(options: RelayToolsOptions, owner: string) {
    this.#options = options;
    this.#owner = owner;
  }

  get id(): string {
    return this.#session?.id ?? '';
  }

  get isIdle(): boolean {
    return !this.#isTurn && !this.isClosed;
  }

  async open(resume: string | undefined, signal: AbortSignal): Promise<void> {
    const { relay, environment } = this.#options;
    this.#session = await relay.start({
      subagentId: this.#owner,
      ...(resume === undefined ? {} : { resume }),
      signal,
      scheduler: environment.scheduler,
      ids: environment.ids,
      receive: (event) => this.#receive(event),
      report: () => {},
    });
  }

  say(text: string): Promise<RelayToolResult> {
    const { maxTurns = 20 } = this.#options;
    return this.#waits(() => {
      this.#turns += 1;
      if (this.#turns > maxTurns) {
        this.#end({ status: 'error', error: `it may have ${maxTurns} turns, and has had them` });
        return;
      }
      this.#isTurn = true;
      this.#session?.prompt({ key: `${this.#owner}:${this.#turns}`, text });
    });
  }

  respond(text: string): Promise<RelayToolResult> {
    const asked = this.#open;
    if (!asked) return this.say(text);
    this.#open = null;
    const chosen = asked.options?.find(
      ({ label }) => label.toLowerCase() === text.trim().toLowerCase(),
    );
    const answer: RelayAnswer = {
      type: 'answered',
      text,
      ...(chosen ? { optionId: chosen.id } : {}),
    };
    return this.#waits(() => this.#session?.answer(asked.requestId, answer));
  }

  interrupt(): void {
    this.#open = null;
    this.#session?.interrupt();
  }

  async release(): Promise<void> {
    const session = this.#session;
    this.isClosed = true;
    this.#end({ status: 'error', error: 'the agent was let go' });
    await session?.release('ended');
  }

  #waits(begin: () => void): Promise<RelayToolResult> {
    this.#words = '';
    const { promise, resolve } = Promise.withResolvers<RelayToolResult>();
    this.#settle = resolve;
    if (this.isClosed) this.#end({ status: 'error', error: 'the agent has ended' });
    else begin();
    return promise;
  }

  #end(result: RelayToolResult): void {
    this.#settle?.(result);
    this.#settle = null;
  }

  #receive(event: RelayEvent): void {
    switch (event.type) {
      case 'words':
        this.#words = (this.#words + event.text).slice(-100_000);
        return;
      case 'permission': {
        const { permits } = this.#options;
        const { title, kind, input } = event;
        let isPermitted = false;
        try {
          isPermitted = permits?.({ title, kind, input }) === true;
        } catch {
          // If `permits` throws, the request is denied.
        }
        const answer: RelayAnswer = isPermitted
          ? { type: 'permitted' }
          : { type: 'denied', words: 'The program does not permit it.' };
        this.#session?.answer(event.requestId, answer);
        return;
      }
      case 'question': {
        this.#open = event;
        const options = event.options?.map(({ label }) => label) ?? [];
        const choices = options.length > 0 ? { options } : {};
        this.#end({ status: 'needs_input', text: event.text, ...choices });
        return;
      }
      case 'withdrawn':
        if (this.#open?.requestId === event.requestId) this.#open = null;
        return;
      case 'turn_ended': {
        this.#isTurn = false;
        this.#open = null;
        const text = this.#words.trim();
        if (event.reason !== 'completed')
          this.#end({ status: 'error', error: event.message || event.reason, text });
        else
          this.#end({
            status: looksLikeQuestion(text) === null ? 'completed' : 'needs_input',
            text,
          });
        return;
      }
      case 'closed':
        this.isClosed = true;
        this.#isTurn = false;
        this.#end({ status: 'error', error: event.message, text: this.#words.trim() });
        return;
      case 'session_id':
      case 'progress':
      case 'tool_started':
      case 'tool_ended':
      case 'artifact':
      case 'usage':
    }
  }
}

const askInput = z.object({ task: z.string().min(1).describe('What it is to do, in full') });

/**
 * Creates the lead agent's tool `ask_claude` and the configuration of the subagent behind it, whose external agent asks
 * the user for permissions.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function askClaude(relay: Relay) {
  check('askClaude(relay)', anObject('a relay: acpRelay(…)', 'start'), relay);
  const config: SubagentConfig = {
    name: 'claude_code',
    instructions: 'Do what the task says, and report what you did.',
    relay,
    timeout: 600_000,
  };
  return {
    tool: {
      name: 'ask_claude',
      description: 'Let Claude Code do something in the code base; it works in the background',
      parameters: askInput,
      execution: 'background' as const,
      pendingMessage: 'I have passed it on.',
    },
    subagentConfigs: { ask_claude: config },
  };
}
