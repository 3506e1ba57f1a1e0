// Marks on a tool object that tell the runtime the tool's kind, independently of its name. They are global symbols, so
// that two copies of this package agree.
//
// A tool that spawns subagents records a recipe with each one: the tool's kind and the model's request, from which the
// tool restores the same configuration after a crash. A recipe contains only names, which the current code resolves,
// and no secret or part of the conversation.
//
// Does not: grant tools (the grant is recorded separately, and restricted again).
//
// Invariants
//   RECIPES-1. A tool restores a configuration only from a recipe of its own kind.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import { isRecord } from '../../values/json.ts';
import type { SubagentConfig } from '../contracts/config.ts';

/** The call only waits for other subagents: it holds no run slot, and the run's clock is paused meanwhile. */
export const DELEGATES: unique symbol = Symbol.for('offstage.delegates');

/** The runtime handles the call itself, instead of `execute`. */
export const ROLE: unique symbol = Symbol.for('offstage.role');
export type ToolRole = 'request_input' | 'complete_task';

/** On a lead agent's tool: the AI SDK tool from which it was made. */
export const SOURCE_TOOL: unique symbol = Symbol.for('offstage.sourceTool');

/**
 * On a tool that spawns subagents: restores a configuration from the recipe in the tool's request. Returns null for a
 * recipe of another kind; throws the reason if it cannot restore the configuration.
 */
export const RECONFIGURES: unique symbol = Symbol.for('offstage.reconfigures');
export type Reconfigure = (recipe: JSONValue) => SubagentConfig | null;
export interface Reconfigures {
  readonly [RECONFIGURES]: Reconfigure;
}

/** On a tool that runs a subagent: that subagent's configuration. */
export const SUBAGENT: unique symbol = Symbol.for('offstage.subAgent');

/**
 * On a tool that runs a subagent: an engine that keeps runs executes this subagent as a separate run, with this
 * treatment if the calling run ends first. Absent if the subagent is part of the calling run.
 */
export const RUN_OF_ITS_OWN: unique symbol = Symbol.for('offstage.runOfItsOwn');
export type OnParentClose = 'cancel' | 'abandon';

/** A tool that runs a subagent, under any name. */
export interface SubagentFlag {
  readonly [SUBAGENT]: SubagentConfig;
}

/** On a tool that uses its session's subagents or memory: it runs in the session's process, even where steps are jobs. */
export const AT_ITS_SESSION = { runs: 'here' } as const;

/** Adds marks to a tool, and returns it. */
export function marked<T extends object, M extends object>(tool: T, marks: M): T & M {
  return Object.assign(tool, marks);
}

export function delegates(tool: unknown): boolean {
  return isRecord(tool) && DELEGATES in tool && tool[DELEGATES] === true;
}

export function reconfigureOf(tool: unknown): Reconfigure | null {
  return isRecord(tool) && RECONFIGURES in tool ? (tool[RECONFIGURES] as Reconfigure) : null;
}

/** Returns the configuration of the subagent that a tool runs; null for any other tool. */
export function subagentOf(tool: unknown): SubagentConfig | null {
  try {
    return isRecord(tool) && SUBAGENT in tool ? (tool as SubagentFlag)[SUBAGENT] : null;
  } catch {
    // An app may pass a Proxy whose traps throw.
    return null;
  }
}

/**
 * Returns the treatment of a tool's separate run when the calling run ends; null if the tool's subagent is not a separate run.
 */
export function runOfItsOwn(tool: unknown): OnParentClose | null {
  if (subagentOf(tool) === null || !isRecord(tool) || !(RUN_OF_ITS_OWN in tool)) return null;
  return tool[RUN_OF_ITS_OWN] === 'abandon' ? 'abandon' : 'cancel';
}

export function roleOf(tool: unknown): ToolRole | null {
  const role = isRecord(tool) && ROLE in tool ? tool[ROLE] : null;
  return role === 'request_input' || role === 'complete_task' ? role : null;
}

const recipe = z.object({ by: z.string(), input: z.unknown() });

/** Returns a value for `SpawnRequest.recipe`. `input` must be JSON. */
export function recipeOf(by: string, input: object): JSONValue {
  return { by, input: input as JSONValue };
}

/**
 * Returns the mark of a spawning tool: `make` receives the input of recipes of the kind `by`, and may throw the reason
 * why it cannot restore the configuration.
 */
export function reconfigures<Input>(
  by: string,
  schema: z.ZodType<Input>,
  make: (input: Input) => SubagentConfig | null,
): Reconfigures {
  return {
    [RECONFIGURES]: (written) => {
      const read = recipe.safeParse(written);
      return read.success && read.data.by === by ? make(schema.parse(read.data.input)) : null;
    },
  };
}
