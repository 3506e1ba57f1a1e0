// A text conversation with scripted models: a lead agent that calls the tools that the user names, and subagents that
// follow their scripts. For tests of whole sessions.
//
// The lead agent calls the tools in "use report and ride", or with arguments in "use report {"days":7}". It passes on a
// message from the runtime as `Told: …` and repeats everything else.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import {
  defineTool,
  TextSession,
  type LeadAgent,
  type SessionEvent,
  type SubagentConfig,
  type TextPart,
  type TextSessionOptions,
  type ToolDefinition,
} from '../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import type { ScriptedLanguageModel } from '../../src/testing/doubles/scripted-model.ts';

export const LEAD = 'You are the lead agent.';

export interface ScriptedSubagent {
  readonly script: Script;
  readonly config?: Partial<SubagentConfig>;
  /** The text that the lead agent says at once, or null if the call stays open until the result is reported. */
  readonly pending?: string | null;
}

export interface TalkOptions extends Partial<Omit<TextSessionOptions, 'agents' | 'model'>> {
  readonly subagents?: Readonly<Record<string, ScriptedSubagent>>;
  readonly tools?: readonly ToolDefinition[];
  readonly lead?: Script;
  readonly greeting?: string;
  /** Additional options for the first lead agent. */
  readonly agent?: Partial<LeadAgent>;
  /** Agents that may lead later. Their instructions are `agentInstructions(name)`. */
  readonly others?: readonly OtherAgent[];
  /** Receives every model call before it is answered. */
  readonly onModelCall?: (who: string, prompt: ScriptedPrompt) => void;
  /** Adds a wire between the session and its scripted models. @defaultValue none */
  readonly wire?: (mind: ScriptedLanguageModel) => LanguageModel;
  /** No API would write these calls, so the rules of the APIs do not apply. @defaultValue false */
  readonly isNoApi?: boolean;
}

export interface OtherAgent extends Omit<LeadAgent, 'instructions'> {
  /** @defaultValue the script of the lead agent, which reports the agent's name */
  readonly script?: Script;
}

export const agentInstructions = (name: string): string => `You are the agent "${name}".`;

export const instructionsOf = (name: string): string => `You are the subagent "${name}".`;

export function backgroundTool(name: string, pending: string | null = 'On it.'): ToolDefinition {
  return defineTool({
    name,
    description: `Does ${name}`,
    parameters: z.looseObject({}),
    execution: 'background',
    ...(pending === null ? {} : { pendingMessage: pending }),
  });
}

export function configOf(name: string, config: Partial<SubagentConfig> = {}): SubagentConfig {
  return { name, instructions: instructionsOf(name), ...config };
}

/** The lead agent's script, unless a test supplies another one. */
export const leadScript: Script = ({ user, results, prompt }) => {
  if (prompt.at(-1)?.role === 'tool') return { text: `Tools said: ${JSON.stringify(results)}` };
  if (user.startsWith('[')) return { text: `Told: ${user}` };
  const wanted = /^use (.*)$/s.exec(user)?.[1];
  if (wanted === undefined) return { text: `You said: ${user}` };
  const calls = wanted.split(' and ').map((use) => {
    const [, name = '', json = '{}'] = /^(\S+) ?(\{.*\})?$/s.exec(use) ?? [];
    return { name, input: json };
  });
  return { calls };
};

/** Returns a call to `settle_question`. */
export const settle = (action: string, more: object = {}): LeadCall => [
  'settle_question',
  { action, ...more },
];

export type LeadCall = readonly [name: string, input: object];

/**
 * Returns a script that answers this text with these calls whenever the user says it, and answers any other text as
 * usual.
 */
export function settling(words: string, ...made: readonly LeadCall[]): Script {
  return (prompt) => {
    if (prompt.prompt.at(-1)?.role !== 'user' || prompt.user !== words) return leadScript(prompt);
    return { calls: made.map(([name, input]) => ({ name, input: JSON.stringify(input) })) };
  };
}

/**
 * Returns a script that interprets each of these texts as the answer to the question that has the floor. The text for
 * an option is the option's label.
 */
export function answering(...words: readonly string[]): Script {
  return (prompt) => {
    const said = words.find((one) => one === prompt.user);
    if (said === undefined || prompt.prompt.at(-1)?.role !== 'user') return leadScript(prompt);
    return settling(said, settle('answer', { text: said, quote: said }))(prompt);
  };
}

/** Returns the scripted models of a session, keyed by the agent that speaks. */
export function castOf({
  subagents = {},
  lead = leadScript,
  others = [],
  onModelCall,
  systemAs,
  wire,
  isNoApi = false,
}: TalkOptions) {
  const watched = (who: string, script: Script): Script => {
    return (prompt) => {
      onModelCall?.(who, prompt);
      return script(prompt);
    };
  };
  return scriptedModel({
    // If there is a wire, the server applies the rules to the package's request. Notes as system messages are for
    // OpenAI.
    rules:
      systemAs === 'system' ? ['openai-chat', 'openai-responses'] : wire === undefined && !isNoApi,
    scripts: [
      { when: LEAD, script: watched('lead', lead) },
      ...others.map(({ name, script = leadScript }) => ({
        when: agentInstructions(name),
        script: watched(name, script),
      })),
      ...Object.entries(subagents).map(([name, { script }]) => ({
        when: instructionsOf(name),
        script: watched(name, script),
      })),
    ],
  });
}

export function agentOf({ subagents = {}, tools = [], greeting, agent }: TalkOptions) {
  return {
    name: 'lead',
    instructions: LEAD,
    tools: [
      ...tools,
      ...Object.entries(subagents).map(([name, { pending }]) => backgroundTool(name, pending)),
    ],
    ...(greeting === undefined ? {} : { greeting }),
    ...agent,
  };
}

/** Returns the first agent and the agents that may lead later. */
export function agentsOf(options: TalkOptions): [LeadAgent, ...LeadAgent[]] {
  const others = (options.others ?? []).map(({ script: _script, ...agent }) => ({
    ...agent,
    instructions: agentInstructions(agent.name),
  }));
  return [agentOf(options), ...others];
}

export function configsOf({ subagents = {} }: TalkOptions): Record<string, SubagentConfig> {
  return Object.fromEntries(
    Object.entries(subagents).map(([name, { config }]) => [name, configOf(name, config)]),
  );
}

export function textTalk(options: TalkOptions = {}) {
  const {
    subagents: _,
    tools: __,
    lead: ___,
    greeting: ____,
    onModelCall: _____,
    agent: ______,
    others: _______,
    wire = (mind) => mind,
    isNoApi: ________,
    ...rest
  } = options;
  const environment =
    (options.environment as ReturnType<typeof simulatedEnvironment> | undefined) ??
    simulatedEnvironment();
  const errors: { error: unknown; where: string }[] = [];
  const session = new TextSession({
    ...(options.runtime ? {} : { environment }),
    ...rest,
    model: wire(castOf(options)),
    agents: agentsOf(options),
    subagentConfigs: configsOf(options),
    hooks: {
      ...options.hooks,
      onError: options.hooks?.onError ?? ((error, where) => errors.push({ error, where })),
    },
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  const parts: TextPart[] = [];
  return {
    environment,
    session,
    events,
    errors,
    /** The parts that an observer of `session.parts` received. */
    parts,
    state: () => session.store.getSnapshot().context,
    /** Starts the session and observes it. */
    async start() {
      session.parts.subscribe((part) => parts.push(part));
      await session.start();
      await environment.settle();
    },
    /** Types as the user and waits for everything that takes no time. */
    async type(text: string) {
      await session.sendText(text);
      await environment.settle();
    },
    /** Returns the lead agent's messages so far. */
    said: () => parts.flatMap((part) => (part.type === 'text.done' ? [part.text] : [])),
    question: () => session.store.getSnapshot().context.questions.at(-1),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
    },
  };
}

/** Returns the text that the author wrote in a lead agent's instructions, without the explanation of notes. */
export function withoutNotes(instructions = ''): string {
  return instructions.replace(/\n\n# Notes\n.*$/s, '').trim();
}
