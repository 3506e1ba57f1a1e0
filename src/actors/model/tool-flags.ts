// Flags on a tool object that tell the runtime what kind of tool it is, independently of its name. The flags are global
// symbols, so that two copies of this package share them.
//
// A tool that spawns subagents records a recipe with each subagent: the tool's kind and the model's request, from which
// the tool restores the same configuration after a crash. A recipe contains only names, which are looked up in the
// current code; it contains no secrets and no part of the conversation.
//
// Does not: grant tools (the grant is recorded separately, and the restrictions are applied to it again).
//
// Invariants
//   RECIPES-1. A tool restores a configuration only from a recipe of its own kind.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import { isRecord } from '../../values/json.ts';
import type { SubagentConfig } from '../contracts/config.ts';

/**
 * Marks a tool whose calls only wait for other subagents: such a call holds no run slot, and the run's clock is paused.
 */
export const DELEGATES: unique symbol = Symbol.for('offstage.delegates');

/** Marks a tool whose calls the runtime handles itself, without calling `execute`. */
export const ROLE: unique symbol = Symbol.for('offstage.role');
export type ToolRole = 'request_input' | 'complete_task';

/** On a lead agent's tool: the AI SDK tool that it was made from. */
export const SOURCE_TOOL: unique symbol = Symbol.for('offstage.sourceTool');

/**
 * On a tool that spawns subagents: a function that restores a configuration from a recipe. It returns null for a recipe
 * of another kind, and throws the reason if it cannot restore the configuration.
 */
export const RECONFIGURES: unique symbol = Symbol.for('offstage.reconfigures');
export type Reconfigure = (recipe: JSONValue) => SubagentConfig | null;
export interface Reconfigures {
  /** Restores a configuration from a recipe that the journal has stored. */
  readonly [RECONFIGURES]: Reconfigure;
}

/** On a tool that runs a subagent: that subagent's configuration. */
export const SUBAGENT: unique symbol = Symbol.for('offstage.subAgent');

/**
 * On a tool that runs a subagent: states that an engine that stores runs executes this subagent as a separate run. The
 * value says how that run is handled if the calling run ends first. Absent if the subagent is part of the calling run.
 */
export const RUN_OF_ITS_OWN: unique symbol = Symbol.for('offstage.runOfItsOwn');
export type OnParentClose = 'cancel' | 'abandon';

/** A tool that runs a subagent; the tool may have any name. */
export interface SubagentFlag {
  /** The configuration of the subagent that the tool runs. */
  readonly [SUBAGENT]: SubagentConfig;
}

/**
 * Set on a tool that uses its session's subagents or memory: the tool runs in the session's process, even if steps are
 * jobs.
 */
export const AT_ITS_SESSION = { runs: 'here' } as const;

/** Adds flags to a tool and returns that tool. */
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
 * Returns how the separate run of a tool's subagent is handled when the calling run ends; null if there is no separate
 * run.
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

/** Creates the value for `SpawnRequest.recipe`. `input` must be JSON. */
export function recipeOf(by: string, input: object): JSONValue {
  return { by, input: input as JSONValue };
}

/**
 * Returns the flag for a tool that spawns subagents: `make` receives the input from a recipe of the kind `by`, and may
 * throw the reason why it cannot restore the configuration.
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
