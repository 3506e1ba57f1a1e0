// The recipe of a subagent that a tool spawns: the kind of tool and the model's request, from which the tool
// restores the same configuration after a crash. It holds names only, which the current code resolves; no
// secret and no part of the conversation.
//
// Does not: grant tools (the grant is recorded separately, and restricted again).
//
// Invariants
//   RECIPES-1. A tool makes a configuration only from a recipe of its own kind.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../contracts/config.ts';
import { RECONFIGURES, type Reconfigures } from './tool-flags.ts';

const recipe = z.object({ by: z.string(), input: z.unknown() });

/** Returns a value for `SpawnRequest.recipe`. `input` must be JSON. */
export function recipeOf(by: string, input: object): JSONValue {
  return { by, input: input as JSONValue };
}

/**
 * Returns the mark of a spawning tool: `make` gets the input of a recipe of the kind `by`, and may throw the
 * reason why it cannot restore the configuration.
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
