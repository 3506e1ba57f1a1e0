// The agents of a session that can talk to the user: their instructions, their tools, and their hooks at the
// beginning and end of leading. One agent leads at a time.
//
// Owns:     the checks of the agents, their tools, prepared for a model.
// Does not: know the current lead agent (records) or change it (transfer).

import { z } from 'zod';
import type { streamText } from 'ai';
import { aFunction, anObject, check, type ChecksOf } from '../../../values/checks.ts';
import { checkIsObject, notAnObject } from '../../../values/plain-checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import type { ConversationTurn } from '../../conversation/turns.ts';
import type { AgentContext } from './agent-context.ts';
import { languageTag } from '../../contracts/directives.ts';
import {
  checkLeadTools,
  checkToolList,
  checkSubagentNames,
  prepareLeadTools,
  type LeadTool,
} from './lead-tools.ts';
import { TRANSFER_TOOL, transferTool, type TransferCall } from './transfer-tool.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';

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

export class LeadAgents {
  readonly #agents: ReadonlyMap<string, LeadAgent>;
  readonly #definitions: ReadonlyMap<string, readonly ToolDefinition[]>;
  readonly #tools = new Map<string, ReadonlyMap<string, LeadTool>>();

  /**
   * `transfer` implements `transfer_to_agent`.
   * @throws {ConfigurationError} for agents that cannot work.
   */
  constructor(
    agents: readonly LeadAgent[],
    subagents: Readonly<Record<string, unknown>>,
    transfer: (to: string, call: TransferCall) => Promise<unknown>,
  ) {
    checkAgents(agents);
    const byName = new Map<string, LeadAgent>();
    for (const [index, agent] of agents.entries()) {
      if (byName.has(agent.name))
        throw new ConfigurationError(
          'INVALID_OPTION',
          `agents[${index}]: expected names that are unique, got "${agent.name}" twice`,
        );
      byName.set(agent.name, agent);
    }
    this.#agents = byName;
    this.#definitions = new Map(
      agents.map((agent) => {
        const others = agents.filter((other) => other !== agent);
        const own = agent.tools ?? [];
        if (others.length > 0 && own.some(({ name }) => name === TRANSFER_TOOL))
          throw new ConfigurationError(
            'INVALID_TOOL',
            `agent "${agent.name}", tool "${TRANSFER_TOOL}": the runtime reserves this name in a session with several agents`,
          );
        checkLeadTools(agent.name, own, subagents);
        const tools = others.length > 0 ? [...own, transferTool(others, transfer)] : own;
        return [agent.name, tools];
      }),
    );
    checkSubagentNames(agents, subagents);
  }

  get names(): readonly string[] {
    return [...this.#agents.keys()];
  }

  get(name: string): LeadAgent | undefined {
    return this.#agents.get(name);
  }

  /** Prepares the tools of all agents, so that no transfer has to wait for it. */
  async prepare(): Promise<void> {
    for (const [name, definitions] of this.#definitions)
      this.#tools.set(name, await prepareLeadTools(definitions));
  }

  /** Returns the tools of an agent by name; empty before `prepare`. */
  toolsOf(agentName: string): ReadonlyMap<string, LeadTool> {
    return this.#tools.get(agentName) ?? new Map();
  }
}
