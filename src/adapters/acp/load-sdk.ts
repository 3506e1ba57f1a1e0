// Loads the ACP SDK on demand.

import type * as Sdk from '@agentclientprotocol/sdk';
import { ConfigurationError } from '../../values/errors.ts';

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadSdk(by: string): Promise<typeof Sdk> {
  try {
    return await import('@agentclientprotocol/sdk');
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `${by} needs the package \`@agentclientprotocol/sdk\`: run \`npm install @agentclientprotocol/sdk\``,
      { cause },
    );
  }
}
