// What may be spawned at all, before it is counted: depth, adapters, models.

import type { LanguageModel } from 'ai';
import type { SessionLimits } from '../supervisor/limits.ts';
import { refusal } from './delegation-failure.ts';
import type { Refused } from './service-types.ts';

interface Wanted {
  /** 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  /** The lowest limit of those above it and of its request. */
  readonly maxDepth: number;
  readonly adapterName: string;
  readonly modelName: string | undefined;
  readonly model: LanguageModel | undefined;
}

/** Null: nothing is against it. */
export function constraintOn(wanted: Wanted, limits: SessionLimits): Refused | null {
  const { depth, maxDepth, adapterName } = wanted;
  if (depth > maxDepth)
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

/** As it was asked for, its id, and its id after its provider. */
function namesOf({ modelName, model }: Wanted): readonly string[] {
  const asked = modelName === undefined ? [] : [modelName];
  if (model === undefined) return asked;
  if (typeof model === 'string') return [...asked, model];
  return [...asked, model.modelId, `${model.provider}/${model.modelId}`];
}
