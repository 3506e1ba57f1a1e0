// From the arguments of `spawn_subagent` to a subagent: which configuration, which model,
// which tools, how much of the conversation. Names are resolved by what the host gave,
// never by what a model wrote: a name that the host does not know is refused.
//
// Does not: decide whether one more may run (service), or check that the tools are a
//           subset of the caller's and its denials hold (service: it knows the caller).

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { aFunction, type ChecksOf } from '../../../values/checks.ts';
import { aModel } from '../../model/model.ts';
import { ownValue } from '../../../values/own-value.ts';
import { type SubagentConfig } from '../../contracts/config.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { createChildSubagentToolset } from '../../subagent/child-toolset.ts';
import { spawnInput, type SpawnInput } from './parent-schemas.ts';
import { responseSchemaOf } from './response-schema.ts';
import { toolFailure, type ToolFailure } from '../../model/tool-failure.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';

/** What a spawned subagent is unless the call says otherwise. */
export type SpawnBase = Partial<Omit<SubagentConfig, 'inputSchema' | 'outputSchema'>>;

/** The names that a host gives a meaning of its own. */
export type HostNames = Pick<
  SpawnInput,
  'adapterName' | 'providerConfigId' | 'harnessId' | 'model' | 'executionTargetId' | 'workstreamId'
>;

/**
 * What every subagent of a toolset is, before any is spawned.
 * @throws {ConfigurationError} for an option that is unknown or wrong.
 */
export function checkSpawnBase(where: string, base: SpawnBase): void {
  checkSubagentConfig({ name: 'subagent', instructions: '', ...base }, where);
}

export const spawnChecks = {
  agent: z.unknown().optional(),
  adapters: z.record(z.string(), z.unknown()).optional(),
  models: z.record(z.string(), aModel).optional(),
  configure: aFunction.optional(),
} satisfies ChecksOf<SpawnOptions>;

export interface SpawnOptions {
  /** What every spawned subagent is. @defaultValue name 'subagent', completion 'tool', maxSteps 20 */
  readonly agent?: SpawnBase;
  /** Kinds of subagents, by `adapterName`; each goes before `agent`. */
  readonly adapters?: Readonly<Record<string, SpawnBase>>;
  /** Models by name; any other name is refused. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  /**
   * What the names of a call mean in this host; needed for `providerConfigId`, `harnessId` and
   * `executionTargetId`, and instead of `adapters` or `models` where there is no such list.
   * Goes before all else; what it throws is the answer to the call.
   */
  readonly configure?: (names: HostNames) => SpawnBase;
}

/** What of a call makes the configuration; the task and what is granted are written down anyway. */
export const spawnRecipe = spawnInput.omit({
  task: true,
  tools: true,
  disallowedTools: true,
  maxDepth: true,
});
export const SPAWN_RECIPE = 'spawn_subagent';

/** Made once: a tool is prepared for a model once for each tool object. */
const toolsWithout = createChildSubagentToolset();
const toolsWithSchema = createChildSubagentToolset({ structured: true });

/** Telling, asking and handing in are steps, too. */
const DEFAULT_MAX_STEPS = 20;

const DEFAULT_INSTRUCTIONS =
  'You work on a task for another agent, in the background. Do it with the tools that you have, ' +
  'say with report_progress how far you are after each significant step, ask with request_input ' +
  'what only the other agent can know, and hand in the result with complete_task.';

export type SpawnPlan =
  | { readonly ok: true; readonly config: SubagentConfig }
  | { readonly ok: false; readonly failure: ToolFailure };

/** The configuration of one spawned subagent, without the tools of its caller. */
export function planSpawn(input: SpawnInput, options: SpawnOptions): SpawnPlan {
  const { adapterName, model, systemPrompt, responseSchema, contextMode } = input;
  const { agent = {}, adapters = {}, models = {}, configure } = options;
  const refused = unresolved(input, options);
  if (refused) return { ok: false, failure: refused };
  const schema = responseSchema && responseSchemaOf(responseSchema);
  if (schema && !schema.ok)
    return { ok: false, failure: toolFailure('INVALID_SCHEMA', schema.message) };
  const base: SpawnBase = {
    ...agent,
    ...ownValue(adapters, adapterName),
    ...withoutUndefined({ model: ownValue(models, model) }),
    ...configure?.(hostNames(input)),
  };
  const instructions = base.instructions ?? DEFAULT_INSTRUCTIONS;
  return {
    ok: true,
    config: {
      name: 'subagent',
      completion: 'tool',
      maxSteps: DEFAULT_MAX_STEPS,
      ...base,
      instructions:
        systemPrompt === undefined ? instructions : `${instructions}\n\n${systemPrompt}`,
      context: contextMode === 'fork' ? 'fork' : 'none',
      tools: { ...base.tools, ...(schema ? toolsWithSchema : toolsWithout) },
      ...(schema ? { outputSchema: schema.schema } : {}),
    },
  };
}

/** Names that mean nothing here are refused: leaving them out would not be what was asked for. */
function unresolved(input: SpawnInput, options: SpawnOptions): ToolFailure | null {
  const { adapterName, model } = input;
  const { configure, adapters = configure ? null : {}, models = configure ? null : {} } = options;
  if (adapterName !== undefined && adapters && !Object.hasOwn(adapters, adapterName))
    return toolFailure('ADAPTER_NOT_ALLOWED', notAllowed('adapterName', adapterName, adapters));
  if (model !== undefined && models && !Object.hasOwn(models, model))
    return toolFailure('MODEL_NOT_ALLOWED', notAllowed('model', model, models));
  if (configure) return null;
  for (const name of ['providerConfigId', 'harnessId', 'executionTargetId'] as const)
    if (input[name] !== undefined)
      return toolFailure('UNSUPPORTED_OPTION', `${name} has no meaning here; leave it out`);
  return null;
}

function notAllowed(name: string, value: string, allowed: Readonly<Record<string, unknown>>) {
  const names = Object.keys(allowed);
  const expected = names.length > 0 ? `expected one of ${names.join(', ')}` : 'leave it out';
  return `${name} "${value}" is not allowed; ${expected}`;
}

function hostNames(input: SpawnInput): HostNames {
  const { adapterName, providerConfigId, harnessId, model, executionTargetId, workstreamId } =
    input;
  return { adapterName, providerConfigId, harnessId, model, executionTargetId, workstreamId };
}
