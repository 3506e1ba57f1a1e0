// Finds the optional packages of this adapter, or names them in an error that says how to add them.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { ConfigurationError } from '../../../values/errors.ts';

const require = createRequire(import.meta.url);

/**
 * Returns the address of a file of an optional package.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY`
 */
export function locatePeer(packageName: string, file: string): URL {
  // By the search path and not by `exports`, which hides the weights of some packages.
  for (const folder of require.resolve.paths(packageName) ?? []) {
    const manifest = `${folder}/${packageName}/package.json`;
    if (existsSync(manifest)) return new URL(file, pathToFileURL(manifest));
  }
  throw missing(packageName);
}

/**
 * Loads an optional package.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY`
 */
export async function importPeer<Module>(
  packageName: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    throw missing(packageName, cause);
  }
}

function missing(packageName: string, cause?: unknown): ConfigurationError {
  const reason = cause instanceof Error ? ` (${cause.message})` : '';
  return new ConfigurationError(
    'MISSING_DEPENDENCY',
    `localVoice needs the package ${packageName}, which could not be loaded${reason}: npm install ${packageName}`,
    { cause },
  );
}
