// A subagent's authority. Checks a spawn request (input names, depth, adapter, model) before it is counted. Determines
// the subagent's tools: exactly those that its author configured and, if a model spawns it, some of its spawner's
// tools. A subagent never has more authority than its spawner. A denial applies to all descendants.
//
// Invariants P8. A grant is a subset of the requester's tools. An absent grant means all of them, and an empty grant
//   means none. A denial applies to the whole subtree: to granted tools, to configured tools, and to those of an
//   instance.

import type { LanguageModel } from 'ai';
import { asJson } from '../../values/json.ts';
import { changed } from '../../values/plain-checks.ts';
import type { SessionLimits } from '../admission/limits.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Refused, ToolGrant } from '../contracts/service-types.ts';
import type { SubagentTask } from '../contracts/task.ts';
import { wrapSchema, wrongInputNames } from '../model/schema.ts';
import { roleOf } from '../model/tool-flags.ts';
import { refusal } from './refusal.ts';
import type { ScopePorts } from './scope-ports.ts';
import type { SubagentRecord } from './subagent-registry.ts';

type Tools = Readonly<Record<string, unknown>>;

/** The agent that grants tools: its tools and their contexts. */
export interface Granter {
  readonly tools: Tools;
  readonly toolsContext?: SubagentConfig['toolsContext'];
  readonly denied: ReadonlySet<string>;
}

const nothingDenied: ReadonlySet<string> = new Set();

export type Granted =
  | { readonly ok: true; readonly config: SubagentConfig; readonly denied: ReadonlySet<string> }
  | Refused;

/**
 * Returns the configuration with the tools that the subagent receives, or the same object if its tools stay the same.
 */
export function grantTools(
  config: SubagentConfig,
  grant: ToolGrant | undefined,
  granter: Granter,
): Granted {
  const own = config.tools ?? {};
  const refused = grant?.tools && lacking(grant.tools, own, granter);
  if (refused) return refused;
  const { disallowedTools = [] } = grant ?? {};
  const denied =
    disallowedTools.length > 0 ? new Set([...granter.denied, ...disallowedTools]) : granter.denied;
  const names = grant ? (grant.tools ?? Object.keys(granter.tools)) : [];
  const inherited = pick(
    granter.tools,
    names.filter((name) => roleOf(granter.tools[name]) === null),
  );
  const whole =
    Object.keys(inherited).length === 0
      ? config
      : withInherited(config, inherited, granter.toolsContext);
  return { ok: true, config: withoutDenied(whole, denied), denied };
}

/** Returns the configuration as its author wrote it, even if it has been validated in the meantime. */
export function sourceOf(config: SubagentConfig): SubagentConfig {
  return 'source' in config ? (config.source as SubagentConfig) : config;
}

/**
 * Returns the granter. If `parent` is null, the parent is a program or the lead agent named `agentName` (null for the
 * current one).
 */
export function granterOf(
  parent: SubagentRecord | null,
  ports: ScopePorts,
  agentName: string | null = null,
): Granter {
  if (!parent) return { tools: ports.giver.tools(agentName), denied: nothingDenied };
  const { definition, denied } = parent.admission;
  const { tools, toolsContext } = definition;
  return { tools, denied, ...(toolsContext ? { toolsContext } : {}) };
}

interface Wanted {
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  /** The depth: 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  /** The lowest depth limit set by its ancestors and by its request. */
  readonly maxDepth: number;
  readonly adapterName: string;
  readonly modelName: string | undefined;
  readonly model: LanguageModel | undefined;
}

/**
 * Returns the reason for refusing the request, or null if it meets all constraints.
 * @throws {ConfigurationError} INVALID_SCHEMA if `inputSchema` is not a schema.
 */
export function constraintOn(wanted: Wanted, limits: SessionLimits): Refused | null {
  const { definition, task, depth, maxDepth, adapterName } = wanted;
  const unkept = asJson(task.args);
  if (!unkept.ok)
    return refusal(
      'INVALID_INPUT',
      `The inputs of ${definition.name}: expected JSON, ${unkept.message}. No subagent was spawned.`,
    );
  const wrong = wrongInputsOf(definition, task);
  if (wrong !== null)
    return refusal(
      'INVALID_INPUT',
      `The inputs of ${definition.name}: ${wrong}. No subagent was spawned.`,
    );
  // The comparison is negated, so that a limit of NaN does not admit any subagent.
  if (!(depth <= maxDepth))
    return refusal(
      'DEPTH_EXCEEDED',
      `A subagent at depth ${depth} is too deep: maxDepth is ${maxDepth}`,
    );
  const { allowedAdapters, allowedModels } = limits;
  if (allowedAdapters.length > 0 && !allowedAdapters.includes(adapterName))
    return refusal(
      'ADAPTER_NOT_ALLOWED',
      `"${adapterName}" is not allowed: expected one of ${allowedAdapters.join(', ')}`,
    );
  const names = namesOf(wanted);
  if (allowedModels.length > 0 && !allowedModels.some((name) => names.includes(name)))
    return refusal(
      'MODEL_NOT_ALLOWED',
      `The model "${names[0] ?? 'unknown'}" is not allowed: expected one of ${allowedModels.join(', ')}`,
    );
  return null;
}

function lacking(names: readonly string[], own: Tools, { tools, denied }: Granter): Refused | null {
  const missing = names.filter((name) => !Object.hasOwn(own, name) && !Object.hasOwn(tools, name));
  if (missing.length > 0)
    return refusal(
      'TOOL_NOT_ALLOWED',
      `${quoted(missing)} cannot be granted: expected some of ${quoted(Object.keys(tools)) || 'no tools'}`,
    );
  const forbidden = names.filter((name) => denied.has(name));
  return forbidden.length === 0
    ? null
    : refusal('TOOL_NOT_ALLOWED', `${quoted(forbidden)} cannot be granted: denied from above`);
}

function withInherited(
  config: SubagentConfig,
  inherited: Tools,
  context: SubagentConfig['toolsContext'],
): SubagentConfig {
  const inheritedContext = context && pick(context, Object.keys(inherited));
  const { createInstance } = config;
  return {
    ...config,
    tools: { ...inherited, ...config.tools },
    ...(createInstance
      ? {
          createInstance: () =>
            changed(createInstance.call(config), (own) => withInherited(own, inherited, context)),
        }
      : {}),
    ...(inheritedContext ? { toolsContext: { ...inheritedContext, ...config.toolsContext } } : {}),
  };
}

/**
 * Removes denied tools. The runtime's own tools (`complete_task`, `request_input`) do not give any authority, so they
 * are not removed.
 */
function withoutDenied(config: SubagentConfig, denied: ReadonlySet<string>): SubagentConfig {
  if (denied.size === 0) return config;
  const tools = config.tools ?? {};
  const { createInstance } = config;
  const left = Object.keys(tools).filter(
    (name) => !denied.has(name) || roleOf(tools[name]) !== null,
  );
  return {
    ...config,
    tools: pick(tools, left),
    ...(createInstance
      ? {
          createInstance: () =>
            changed(createInstance.call(config), (own) => withoutDenied(own, denied)),
        }
      : {}),
  };
}

function pick<T>(record: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(record, name) ? [[name, record[name] as T]] : [])),
  );
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

function wrongInputsOf(definition: SubagentDefinition, { args }: SubagentTask): string | null {
  const { inputSchema, name } = definition;
  if (inputSchema === undefined) return null;
  return wrongInputNames(wrapSchema(inputSchema, `${name}.inputSchema`), args);
}

/** Returns the requested model's name, and its id with and without the provider. */
function namesOf({ modelName, model }: Wanted): readonly string[] {
  const asked = modelName === undefined ? [] : [modelName];
  if (model === undefined) return asked;
  if (typeof model === 'string') return [...asked, model];
  return [...asked, model.modelId, `${model.provider}/${model.modelId}`];
}
