// Loads the packages that only some modes of inspection need.

import { ConfigurationError } from '../../values/errors.ts';

/**
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` when it is not installed; the message has the
 * command that installs it.
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `createInspector needs the package \`${name}\` for this: run \`npm install ${name}\``,
      { cause },
    );
  }
}
