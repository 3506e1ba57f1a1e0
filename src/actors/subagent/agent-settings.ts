// The settings of a `ToolLoopAgent` of the AI SDK become the configuration of a subagent.
//
// Owns:     which settings are kept, and what stands for them; the loop of the rest, which agent-loop.ts runs.
//
// Invariants
//   AGENT-SETTINGS-1. A setting is kept, or refused by its name: none is dropped.

import { isStepCount, type ToolSet } from 'ai';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { checkIsObject, notAnObject, readable, shown } from '../../values/plain-checks.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { NOT_KEPT, type AgentLoop, type AgentSettings } from '../contracts/agent-loop.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import { aToolApproval } from '../model/approval.ts';
import { aModel } from '../model/model.ts';
import { roleOf } from '../model/tool-flags.ts';

/** Options of a subagent for which the settings of an agent stand. */
const FROM_AGENT = ['instructions', 'tools', 'model', 'toolApproval', 'toolsContext'] as const;
type FromAgent = (typeof FROM_AGENT)[number];

/** A configuration whose model, tools and loop are those of an agent of the AI SDK. */
export type AgentSubagentConfig<
  TOOLS extends ToolSet = ToolSet,
  RUNTIME_CONTEXT extends Record<string, unknown> = Record<string, unknown>,
> = Omit<SubagentConfig, FromAgent | 'name' | 'agent' | 'relay' | 'runs'> & {
  /** The name in events, in the inspector and in texts for the user. @defaultValue the agent's id */
  readonly name?: string;
  /** The settings, as `new ToolLoopAgent(settings)` takes them. */
  readonly agent: AgentSettings<TOOLS, RUNTIME_CONTEXT>;
};

/** The agent's own conditions end its loop: this limit is for a condition that is never met. */
const MAX_STEPS = 1000;
/** As a `ToolLoopAgent` has it. */
const DEFAULT_STEPS = 20;

type Hook = (options: object) => unknown;
const aHook = z.custom<Hook>((value) => typeof value === 'function', {
  error: 'expected a function',
});
/** Settings of a call, which a step may change. */
export const callChecks = {
  maxOutputTokens: z.number().int().min(1).optional(),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  stopSequences: z.array(z.string()).optional(),
  seed: z.number().int().optional(),
  reasoning: z
    .enum(['provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
    .optional(),
  toolChoice: z
    .union(
      [
        z.enum(['auto', 'none', 'required']),
        z.strictObject({ type: z.literal('tool'), toolName: z.string() }),
      ],
      { error: "expected 'auto', 'none', 'required' or { type: 'tool', toolName }" },
    )
    .optional(),
  providerOptions: z.record(z.string(), z.record(z.string(), z.json())).optional(),
};
const systemMessage = z.strictObject(
  { role: z.literal('system'), content: z.string() },
  { error: 'expected text, or a system message without options of a provider' },
);
const aRecord = z.record(z.string(), z.unknown());
/** Settings that a step may change, and that go on to the steps after it. */
export const loopChecks = {
  instructions: z
    .union([z.string(), systemMessage], {
      error: 'expected text, or one system message without options of a provider',
    })
    .transform((words) => (typeof words === 'string' ? words : words.content))
    .optional(),
  activeTools: z.array(z.string()).optional(),
  toolOrder: z.array(z.string()).optional(),
  runtimeContext: aRecord.optional(),
  toolsContext: z.record(z.string(), aRecord).optional(),
};
const repair = z.custom<AgentLoop['call']['repairToolCall']>(
  (value) => typeof value === 'function',
  { error: 'expected a function' },
);
const schema = z.strictObject({
  ...callChecks,
  ...loopChecks,
  id: z.string().min(1).optional(),
  model: aModel,
  tools: aRecord.optional(),
  headers: z.record(z.string(), z.string().optional()).optional(),
  maxRetries: z.number().int().min(0).optional(),
  timeout: z
    .number('expected milliseconds; limits of single calls are `toolTimeout` beside `agent`')
    .positive()
    .optional(),
  stopWhen: z
    .union([aHook, z.array(aHook)], { error: 'expected a function, or several' })
    .optional(),
  prepareStep: aHook.optional(),
  toolApproval: aToolApproval.optional(),
  repairToolCall: repair.optional(),
  experimental_repairToolCall: repair.optional(),
});

const made = new WeakSet<object>();

/** Tells whether `configOfAgent` has made it. */
export function isAgentLoop(value: unknown): value is AgentLoop {
  return notAnObject(value) === null && made.has(value as object);
}

/**
 * Returns the configuration of a subagent that runs the loop of an agent with these settings.
 * @throws {ConfigurationError} that names the setting, its value and what to use in its place.
 */
export function configOfAgent(
  { agent, ...config }: { readonly agent: object } & Readonly<Record<string, unknown>>,
  path: string,
): SubagentConfig {
  const where = `${path}.agent`;
  checkIsObject(where, agent, '{ model, instructions, tools }');
  const given = withoutUndefined(readable(where, agent) as Readonly<Record<string, unknown>>);
  for (const [name, why] of Object.entries(NOT_KEPT))
    if (Object.hasOwn(given, name)) throw refused(`${where}.${name}`, why, given[name]);
  for (const name of [...FROM_AGENT, 'relay', 'runs'] as const)
    if (config[name] !== undefined && (name !== 'runs' || config[name] !== 'here'))
      throw refused(`${path}.${name}`, 'the agent has its own', config[name]);
  const settings = check(where, schema, given);
  const { id, model, instructions = '', tools = {}, toolsContext, maxRetries, timeout } = settings;
  const toolNames = Object.keys(tools);
  for (const [name, tool] of Object.entries(tools))
    if (!isRunnable(tool))
      throw refused(
        `${where}.tools.${name}`,
        "give it `execute`; a question to the user is `interactive: true` beside `agent`, and a tool that hands in the result `completion: 'tool'`",
        tool,
      );
  const { activeTools, toolOrder, toolApproval, prepareStep, runtimeContext = {} } = settings;
  const { stopWhen = isStepCount(DEFAULT_STEPS) } = settings;
  checkNames(`${where}.activeTools`, activeTools, toolNames);
  checkNames(`${where}.toolOrder`, toolOrder, toolNames);
  if (typeof toolApproval === 'object')
    checkNames(`${where}.toolApproval`, Object.keys(toolApproval), toolNames);
  const loop: AgentLoop = {
    call: withoutUndefined(callOf(settings)),
    runtimeContext,
    toolNames,
    activeTools,
    toolOrder,
    stopWhen: Array.isArray(stopWhen) ? stopWhen : [stopWhen as Hook],
    prepareStep,
  };
  made.add(loop);
  return {
    ...withoutUndefined({
      name: id,
      model: model as SubagentConfig['model'],
      toolApproval: toolApproval as SubagentConfig['toolApproval'],
      toolsContext,
      retry: maxRetries === undefined ? undefined : { maxAttempts: maxRetries + 1 },
      timeout,
    }),
    maxSteps: MAX_STEPS,
    ...withoutUndefined(config),
    instructions,
    tools,
    agent: loop,
  };
}

function callOf(settings: z.output<typeof schema>): AgentLoop['call'] {
  const { headers, repairToolCall = settings.experimental_repairToolCall } = settings;
  const own = Object.keys(callChecks) as (keyof typeof callChecks)[];
  const call = Object.fromEntries(own.map((name) => [name, settings[name]]));
  return { ...call, headers, repairToolCall };
}

/** Tells whether the runtime can run it: by its `execute`, by its role, or at its provider. */
function isRunnable(tool: unknown): boolean {
  if (typeof tool !== 'object' || tool === null) return true;
  const { execute, type } = tool as Readonly<Record<string, unknown>>;
  return typeof execute === 'function' || type === 'provider' || roleOf(tool) !== null;
}

export function checkNames(
  where: string,
  names: readonly string[] | undefined,
  known: readonly string[],
): void {
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `${where}: expected names of the agent's tools (${known.join(', ') || 'it has none'}), got ${shown(unknown)}`,
    );
}

function refused(where: string, why: string, value: unknown): ConfigurationError {
  return new ConfigurationError(
    'INVALID_OPTION',
    `${where}: expected none beside a subagent's own: ${why}; got ${shown(value)}`,
  );
}
