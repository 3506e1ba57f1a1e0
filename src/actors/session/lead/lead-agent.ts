// An agent that can talk to the user, as its author defines it: its instructions, its tools, and the hooks for when it
// starts and stops leading. Also validates lists of agents.

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
  /** The name of the agent, unique in the session. */
  readonly name: string;
  /** The agent's purpose, described for the other agents. */
  readonly description?: string;
  /**
   * The instructions. A function is called before each response (text) or whenever the model is configured (voice). If
   * the function throws, the error is reported and the previous instructions are used.
   */
  readonly instructions: string | ((context: AgentContext) => string);
  /** The agent's tools, from `defineTool`. @defaultValue none */
  readonly tools?: readonly ToolDefinition[];
  /** The instruction for the agent's first words each time it starts to lead, such as "Greet the user". */
  readonly greeting?: string;
  /**
   * The language that the agent speaks, as a BCP 47 tag such as `de-AT`. The model is told the language before its
   * instructions.
   */
  readonly language?: string;
  /** Options for the model's provider, in a text session; see the AI SDK. */
  readonly providerOptions?: Parameters<typeof streamText>[0]['providerOptions'];
  /**
   * Called when the agent starts to lead. `from` is the agent that led before, or null if none did. The agent's first
   * response waits for the hook, for at most 5 s.
   */
  readonly onEnter?: (context: AgentContext, from: string | null) => unknown;
  /** Called before the agent stops leading. The transfer waits for the hook, for at most 5 s. */
  readonly onExit?: (context: AgentContext, to: string) => unknown;
  /**
   * Called when the model has completed its turn. `transcript`: the last 5 turns, oldest first. Nothing waits for the hook.
   */
  readonly onTurnCompleted?: (
    context: AgentContext,
    transcript: readonly ConversationTurn[],
  ) => unknown;
}

/**
 * The part of a session that a lead agent's hooks can use. Usable until the session has ended. Later calls have no
 * effect.
 */
export interface AgentContext {
  /** The id of the session. */
  readonly sessionId: string;
  /** The name of the agent. */
  readonly agentName: string;
  /**
   * Gives the model a fact that it does not respond to.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if the value is not a string.
   */
  injectSystemMessage(text: string): void;
  /** Returns the last turns of the conversation, oldest first, without tool calls. @defaultValue 10 turns */
  getRecentTurns(count?: number): readonly ConversationTurn[];
  /** Returns the newest facts about the user, or none if there is no memory. @defaultValue 10 facts */
  getMemoryFacts(limit?: number): Promise<readonly MemoryFact[]>;
  /**
   * Requests a transfer to another agent. The transfer starts when no other transfer is running. The events
   * `transfer.completed` and `transfer.failed` report the result.
   */
  requestTransfer(agentName: string): void;
  /** Sets a directive; see `ToolContext.setDirective`. */
  readonly setDirective: SetDirective;
  /** Sends JSON to the clients, as the event `client.json` of `session.events`. */
  sendJsonToClient(data: unknown): void;
}

const callback = aFunction.optional();
const checks = {
  name: z.string().min(1).max(64),
  description: z.string().optional(),
  instructions: z.union([z.string(), aFunction], { error: 'expected a text, or a function' }),
  // Tools are validated separately: first individually, with errors that name the tool, and then as a whole.
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
 * Validates the list of agents before any agent is used.
 * @throws {ConfigurationError} if the value is not a list of agents or an agent in it is unreadable.
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
