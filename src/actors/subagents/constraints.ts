// The constraints on a spawn request before it is counted: the names of its inputs, its depth, its adapter,
// its model.

import type { LanguageModel } from 'ai';
import { wrongInputNames } from '../model/input-names.ts';
import { asJson } from '../../values/json.ts';
import { wrapSchema } from '../model/schema.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import type { SessionLimits } from '../admission/limits.ts';
import { refusal } from './delegation-failure.ts';
import type { Refused } from '../contracts/service-types.ts';
import type { SubagentTask } from '../contracts/task.ts';

interface Wanted {
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  /** Depth: 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  /** The lowest of the depth limits of its ancestors and of its request. */
  readonly maxDepth: number;
  readonly adapterName: string;
  readonly modelName: string | undefined;
  readonly model: LanguageModel | undefined;
}

/**
 * Returns the constraint that refuses the request; null: no constraint does.
 * @throws {ConfigurationError} INVALID_SCHEMA, for an `inputSchema` that is no schema.
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
  // Written so that a limit that is not a number admits nothing.
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

function wrongInputsOf(definition: SubagentDefinition, { args }: SubagentTask): string | null {
  const { inputSchema, name } = definition;
  if (inputSchema === undefined) return null;
  return wrongInputNames(wrapSchema(inputSchema, `${name}.inputSchema`), args);
}

/** Returns the requested name, the id of the model, and the part of the id after its provider. */
function namesOf({ modelName, model }: Wanted): readonly string[] {
  const asked = modelName === undefined ? [] : [modelName];
  if (model === undefined) return asked;
  if (typeof model === 'string') return [...asked, model];
  return [...asked, model.modelId, `${model.provider}/${model.modelId}`];
}
