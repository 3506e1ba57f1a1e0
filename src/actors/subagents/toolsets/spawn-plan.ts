// Derives a subagent from the arguments of `spawn_subagent`: its configuration, its model, its tools, and its part of
// the conversation. Names are resolved by the host's options, and an unknown name from a model is refused.
//
// Does not: decide whether another subagent may run, or check that the tools are a subset of the caller's and that
//           denials apply. The service does both, because it knows the caller.

import { jsonSchema, type JSONSchema7, type LanguageModel, type Schema } from 'ai';
import { z } from 'zod';
import { aFunction, type ChecksOf } from '../../../values/checks.ts';
import { aModel } from '../../model/model.ts';
import { messageOf } from '../../../values/errors.ts';
import { ownValue } from '../../../values/own-value.ts';
import { type SubagentConfig } from '../../contracts/config.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { unmarked } from '../../notes/note-marks.ts';
import { note, sentence, type Quotes } from '../../notes/note.ts';
import { createChildSubagentToolset } from '../../subagent/child-toolset.ts';
import { checkSubagentConfig } from '../../subagent/config.ts';
import { toolFailure, type ToolFailure } from '../../model/tool-results.ts';

const anId = z.string().min(1).max(200);
const aName = z.string().min(1).max(200);
const someNames = z.array(aName).max(200);

/** Text from a model in a tool's arguments. */
export const words = z.string().trim().min(1).max(100_000);

const OF_HOST = 'Only if your instructions name one';

/** The arguments that a model writes for `spawn_subagent`. */
export const spawnInput = z.object({
  task: words.describe('What the subagent shall do: everything that it has to know'),
  adapterName: aName.optional().describe('The kind of subagent, if your instructions name kinds'),
  providerConfigId: aName.optional().describe(OF_HOST),
  harnessId: aName.optional().describe(OF_HOST),
  model: aName.optional().describe('Another model, if your instructions name one'),
  contextMode: z
    .enum(['fork', 'fresh'])
    .default('fork')
    .describe('fork: it knows this conversation so far; fresh: only the task'),
  tools: someNames.optional().describe('The only tools that it gets, out of yours; [] is none'),
  disallowedTools: someNames.optional().describe('Tools that it and its own subagents do not get'),
  systemPrompt: words.optional().describe('Instructions beside its own'),
  maxDepth: z.number().int().min(1).max(100).optional().describe('How deep subagents may nest'),
  responseSchema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('JSON Schema of the result, if it shall be JSON'),
  executionTargetId: aName.optional().describe(OF_HOST),
  workstreamId: anId.optional().describe('Subagents of one workstream see each other'),
});

export type SpawnInput = z.infer<typeof spawnInput>;

/** The configuration that a spawned subagent starts from, and that the call may override. */
export type SpawnBase = Partial<Omit<SubagentConfig, 'inputSchema' | 'outputSchema'>>;

/** The names whose meaning only a host knows. */
export type HostNames = Pick<
  SpawnInput,
  'adapterName' | 'providerConfigId' | 'harnessId' | 'model' | 'executionTargetId' | 'workstreamId'
>;

/**
 * Validates a toolset's base configuration before any subagent is spawned.
 * @throws {ConfigurationError} if an option is unknown or invalid.
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

/** The options of tools that a model uses to spawn subagents: their configurations and models. */
export interface SpawnOptions {
  /** The base configuration of every spawned subagent. @defaultValue name 'subagent', completion 'tool', maxSteps 20 */
  readonly agent?: SpawnBase;
  /** The kinds of subagents, by `adapterName`. Each kind overrides the options in `agent`. */
  readonly adapters?: Readonly<Record<string, SpawnBase>>;
  /** Models by name. Any other name is refused. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  /**
   * Returns the base configuration for the names in a call. Required for `providerConfigId`, `harnessId` and
   * `executionTargetId`, and for `adapterName` and `model` if `adapters` or `models` are absent. Takes precedence over
   * all other options. If it throws, the error becomes the result of the call.
   */
  readonly configure?: (names: HostNames) => SpawnBase;
}

/**
 * The arguments that determine the configuration. The task (with the calling model's instructions) and the grant are
 * recorded separately. Recipes from earlier versions have a `systemPrompt`.
 */
export const spawnRecipe = spawnInput.omit({
  task: true,
  tools: true,
  disallowedTools: true,
  maxDepth: true,
});
export const SPAWN_RECIPE = 'spawn_subagent';

/** Created only once, because a tool object is prepared for a model once. */
const toolsWithout = createChildSubagentToolset();
const toolsWithSchema = createChildSubagentToolset({ structured: true });

/** The default step limit. It includes the steps for reporting, asking and submitting the result. */
const DEFAULT_MAX_STEPS = 20;

const DEFAULT_INSTRUCTIONS =
  'You work on a task for another agent, in the background. Do it with the tools that you have, ' +
  'say with report_progress how far you are after each significant step, ask with request_input ' +
  'what only the other agent can know, and hand in the result with complete_task.';

type ResponseSchema =
  | { readonly ok: true; readonly schema: Schema }
  /** The message to the model that wrote the schema. */
  | { readonly ok: false; readonly message: string };

export type SpawnPlan =
  | { readonly ok: true; readonly config: SubagentConfig }
  | { readonly ok: false; readonly failure: ToolFailure };

/**
 * Returns the configuration of a spawned subagent, without its caller's tools. `earlier`: instructions that an earlier
 * version stored in the recipe. They are quoted as a model's text.
 */
export function planSpawn(
  input: Omit<SpawnInput, 'systemPrompt'>,
  options: SpawnOptions,
  earlier?: string,
): SpawnPlan {
  const { adapterName, model, responseSchema, contextMode } = input;
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
        earlier === undefined ? instructions : withQuoted(instructions, { instructions: earlier }),
      context: contextMode === 'fork' ? 'fork' : 'none',
      tools: { ...base.tools, ...(schema ? toolsWithSchema : toolsWithout) },
      ...(schema ? { outputSchema: schema.schema } : {}),
    },
  };
}

/** Returns the instructions, followed by a quote of the text that an earlier version stored. */
export function withQuoted(instructions: string, quotes: Quotes): string {
  const kept = note(sentence`The agent that gave the task said this of it.`, quotes);
  return `${instructions}\n\n${unmarked(kept)}`;
}

/** Refuses names that this host does not know, because ignoring them would change the request. */
function unresolved(input: HostNames, options: SpawnOptions): ToolFailure | null {
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

function hostNames(input: HostNames): HostNames {
  const { adapterName, providerConfigId, harnessId, model, executionTargetId, workstreamId } =
    input;
  return { adapterName, providerConfigId, harnessId, model, executionTargetId, workstreamId };
}

/**
 * Converts a JSON Schema from a model to the schema of a result. The child receives exactly this schema, and its result
 * is validated against it. Refuses keywords that cannot be checked (`if`, `not`, an external `$ref`, …) instead of
 * ignoring them.
 */
export function responseSchemaOf(raw: Readonly<Record<string, unknown>>): ResponseSchema {
  let checker: z.ZodType;
  try {
    checker = z.fromJSONSchema(raw);
  } catch (error) {
    return { ok: false, message: `responseSchema: ${messageOf(error)}` };
  }
  const schema = jsonSchema(raw as JSONSchema7, {
    validate(value) {
      const checked = checker.safeParse(value);
      return checked.success
        ? { success: true, value: checked.data }
        : { success: false, error: checked.error };
    },
  });
  return { ok: true, schema };
}
