// The first entry of a subagent in the journal: everything that is fixed at its admission and cannot be
// derived from anything else. The work of its author (tools, model, instructions) is code: the runtime finds
// it again by name, or by the recipe of the tool that spawned the subagent.

import type { JSONValue, ModelMessage } from 'ai';
import type { SubagentInput } from '../../machines/index.ts';
import type { SubagentTask } from '../contracts/task.ts';

export const SPAWNED = 'subagent.spawned';

/** Raised when the machine, or the content of its events, changes. */
export const SUBAGENT_VERSION = 3;

export interface SpawnedEvent {
  readonly type: typeof SPAWNED;
  /** The `name` of its configuration. */
  readonly name: string;
  readonly task: SubagentTask;
  /** The parent; null: the lead agent or a program. */
  readonly parentId: string | null;
  /** The name of the scope's ports that it works for (`ScopePorts.name`). */
  readonly worksFor: string;
  /** The lead agent at that time, whose tools were granted to it; null: no lead agent. */
  readonly agentName: string | null;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** The words of the user that led to it. */
  readonly request: string | null;
  /** The user who said them, if the app vouched for the identity. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly maxDepth: number | null;
  /** The grant of its spawner: names out of the spawner's own tools; see `ToolGrant`. */
  readonly grant: {
    readonly tools?: readonly string[];
    readonly disallowedTools?: readonly string[];
  } | null;
  /** The data from which the tool that spawned it can rebuild the same configuration. */
  readonly recipe: JSONValue | null;
  /** The conversation that it continues, if it was given one. */
  readonly messages: readonly ModelMessage[] | null;
  /** The limits that its machine began with; those of a later configuration apply to later runs. */
  readonly limits: Pick<SubagentInput, 'maxSteps' | 'timeoutMs' | 'maxInputRetries'>;
}
