// What a tool writes down of a subagent that it spawns, so that after a crash it can make the
// same configuration again: which kind of tool it was, and what the model had asked for. Names
// only, which mean what the code of that day says; no secret and nothing of the conversation.
//
// Does not: give it any tools (the grant is written down by itself, and cut again).
//
// Invariants
//   RECIPES-1. A tool makes a configuration only from a recipe of its own kind.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../contracts/config.ts';
import { RECONFIGURES, type Reconfigures } from './marks.ts';

const recipe = z.object({ by: z.string(), input: z.unknown() });

/** For `SpawnRequest.recipe`. `input` must be JSON. */
export function recipeOf(by: string, input: object): JSONValue {
  return { by, input: input as JSONValue };
}

/**
 * The mark of a tool that spawns: `make` is given what it had put into a recipe of the kind `by`,
 * and may throw why it cannot.
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
