// The service for a program's own tools: a tool that is called outside any session needs a service that runs
// its subagents.

import type { LanguageModel } from 'ai';
import { anObject, type ChecksOf } from '../../values/checks.ts';
import { aModel } from '../model/model.ts';
import type { Runtime } from '../admission/runtime.ts';
import type { SubagentService } from '../contracts/service-types.ts';
import { createSubagentService } from './subagent-service.ts';

/** The options that determine where subagents run without a session. */
export interface ProgramOptions {
  /** `createSubagentService(…)`: a service of its own, with its limits and its end. */
  readonly service?: SubagentService;
  /** Instead of a service: all tools with the same runtime share one, which ends with the process. */
  readonly runtime?: Runtime;
  /** The model of subagents without a model of their own. */
  readonly model?: LanguageModel;
}

export const programChecks = {
  service: anObject('a service: createSubagentService(…)', 'spawn').optional(),
  runtime: anObject('a runtime: createRuntime(…)').optional(),
  model: aModel.optional(),
} satisfies ChecksOf<ProgramOptions>;

const shared = new WeakMap<Runtime, SubagentService>();

/** Returns the service; undefined where the program gave neither: the tool then works in a session only. */
export function programService({ service, runtime }: ProgramOptions): SubagentService | undefined {
  if (service || !runtime) return service;
  const known = shared.get(runtime);
  if (known) return known;
  const created = createSubagentService({ runtime });
  shared.set(runtime, created);
  return created;
}
