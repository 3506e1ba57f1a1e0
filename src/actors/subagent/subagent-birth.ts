// The first entry of a subagent in the journal: everything that is fixed when it is admitted
// and cannot be told from anything else. What its author wrote (tools, model, instructions) is
// code: it is found again by name, or by the recipe of the tool that spawned it.

import type { JSONValue, ModelMessage } from 'ai';
import type { SubagentInput } from '../../machines/index.ts';
import type { SubagentTask } from '../contracts/task.ts';

export const SPAWNED = 'subagent.spawned';

/** Raised when the machine, or what its events carry, changes. */
export const SUBAGENT_VERSION = 3;

export interface SubagentBirth {
  readonly type: typeof SPAWNED;
  /** The `name` of its configuration. */
  readonly name: string;
  readonly task: SubagentTask;
  /** Null: it works for the lead agent or a program. */
  readonly parentId: string | null;
  /** Whom of the scope it works for (`ScopePorts.name`). */
  readonly worksFor: string;
  /** The lead agent that led then, out of whose tools it was given some; null: none did. */
  readonly agentName: string | null;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** What the user had said that led to it. */
  readonly request: string | null;
  /** Who that was, where somebody vouched for it. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly maxDepth: number | null;
  /** What its spawner granted: names out of its own tools; see `ToolGrant`. */
  readonly grant: {
    readonly tools?: readonly string[];
    readonly disallowedTools?: readonly string[];
  } | null;
  /** What the tool that spawned it needs to make the same configuration again. */
  readonly recipe: JSONValue | null;
  /** The conversation that it goes on from, where it was given one. */
  readonly messages: readonly ModelMessage[] | null;
  /** The limits that its machine began with; those of a later configuration are for later runs. */
  readonly limits: Pick<SubagentInput, 'maxSteps' | 'timeoutMs' | 'maxInputRetries'>;
}
