// An agent that can talk to the user, as its author writes it: its instructions, its tools, and its hooks at the
// beginning and end of leading. And the checks of a list of them.

import { z } from 'zod';
import type { streamText } from 'ai';
import { aFunction, anObject, check, type ChecksOf } from '../../../values/checks.ts';
import { checkIsObject, notAnObject } from '../../../values/plain-checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import { languageTag, type SetDirective } from '../../contracts/directives.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';
import type { MemoryFact } from '../../ports/memory-store.ts';
import { checkToolList } from './lead-tools.ts';
import type { ConversationTurn } from '../../conversation/items.ts';

/** An agent that talks to the user. */
export interface LeadAgent {
  /** Unique in the session. */
  readonly name: string;
  /** The purpose of this agent, for the other agents. */
  readonly description?: string;
  /**
   * The instructions. A function is called before each response (text), or each time the model is configured
   * (voice); its errors are reported, and its last value stays in force.
   */
  readonly instructions: string | ((context: AgentContext) => string);
  /** The tools of the agent, as `defineTool` returns them. @defaultValue none */
  readonly tools?: readonly ToolDefinition[];
  /** Its first words each time it begins to lead, as an instruction such as "Greet the user". */
  readonly greeting?: string;
  /**
   * A language tag (BCP 47) such as `de-AT`: the prompt tells the agent to speak it, before its instructions.
   */
  readonly language?: string;
  /** Options for the model's provider, in a text session; see the AI SDK. */
  readonly providerOptions?: Parameters<typeof streamText>[0]['providerOptions'];
  /**
   * Called when it begins to lead; `from` led before (null: no agent). Its first response waits for it, 5 s
   * at most.
   */
  readonly onEnter?: (context: AgentContext, from: string | null) => unknown;
  /** Called before it ends to lead; the transfer waits for it, 5 s at most. */
  readonly onExit?: (context: AgentContext, to: string) => unknown;
  /**
   * Called when the model has completed its turn. `transcript`: the last 5 turns, oldest first. Not awaited.
   */
  readonly onTurnCompleted?: (
    context: AgentContext,
    transcript: readonly ConversationTurn[],
  ) => unknown;
}

/**
 * The session as the hooks of a lead agent see it. Usable until the session has ended; later calls do
 * nothing.
 */
export interface AgentContext {
  /** The id of the session. */
  readonly sessionId: string;
  /** The name of the agent. */
  readonly agentName: string;
  /**
   * Tells the model a fact that it does not respond to.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for a value that is no text.
   */
  injectSystemMessage(text: string): void;
  /** Returns the last turns of the conversation, oldest first: words only. @defaultValue 10 turns */
  getRecentTurns(count?: number): readonly ConversationTurn[];
  /** Returns the newest remembered facts of the user; none without a memory. @defaultValue 10 facts */
  getMemoryFacts(limit?: number): Promise<readonly MemoryFact[]>;
  /**
   * Requests a transfer to another agent, which begins when no other transfer is under way. The events
   * `transfer.completed` and `transfer.failed` report the result.
   */
  requestTransfer(agentName: string): void;
  /** Sets a directive; see `ToolContext.setDirective`. */
  readonly setDirective: SetDirective;
  /** Sends JSON to the clients: the event `client.json` of `session.events`. */
  sendJsonToClient(data: unknown): void;
}

const callback = aFunction.optional();
const checks = {
  name: z.string().min(1).max(64),
  description: z.string().optional(),
  instructions: z.union([z.string(), aFunction], { error: 'expected a text, or a function' }),
  // Checked one by one, with errors that name each tool, and then as a whole.
  tools: z.unknown().optional(),
  greeting: z.string().optional(),
  language: z
    .string()
    .refine((language) => languageTag(language) !== null, 'expected a language tag such as "en-GB"')
    .optional(),
  providerOptions: anObject('options by the name of a provider').optional(),
  onEnter: callback,
  onExit: callback,
  onTurnCompleted: callback,
} satisfies ChecksOf<LeadAgent>;

const shape = z.strictObject(checks);

const EXAMPLE = "agents: [{ name: 'lead', instructions: 'You help the user.' }]";

/**
 * Checks the list of agents before any of them is read.
 * @throws {ConfigurationError} for a value that is no list of agents, or that holds one that cannot be read.
 */
export function checkAgents(
  agents: unknown,
): asserts agents is readonly [LeadAgent, ...LeadAgent[]] {
  if (!Array.isArray(agents) || agents.length === 0)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `agents: expected an array of one agent or more, got ${Array.isArray(agents) ? 'none' : (notAnObject(agents) ?? 'an object')}. Write ${EXAMPLE}`,
    );
  for (const [index, agent] of agents.entries()) {
    const where = `agents[${index}]`;
    checkIsObject(where, agent, EXAMPLE);
    check(where, shape, agent);
    checkToolList(where, (agent as LeadAgent).tools);
  }
}
