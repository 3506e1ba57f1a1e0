// Loads a scenario of the app: a module whose default export holds the options of the simulation.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import type { SimulationOptions } from '../../testing/simulate/index.ts';

const schema = z.looseObject({
  app: z.union([z.looseObject({ agents: z.array(z.unknown()).min(1) }), z.instanceof(Function)]),
});

/** @throws {ConfigurationError} `INVALID_SCENARIO` for a module that cannot be loaded, or exports none. */
export async function loadScenario(path: string): Promise<SimulationOptions> {
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(path)).href)) as typeof loaded;
  } catch (cause) {
    throw new ConfigurationError(
      'INVALID_SCENARIO',
      `The scenario ${path} cannot be loaded: ${messageOf(cause)}`,
      { cause },
    );
  }
  const parsed = schema.safeParse(loaded.default);
  if (!parsed.success)
    throw new ConfigurationError(
      'INVALID_SCENARIO',
      `${path}: expected the default export to be the options of a simulation: ${z.prettifyError(parsed.error)}`,
    );
  return loaded.default as SimulationOptions;
}
