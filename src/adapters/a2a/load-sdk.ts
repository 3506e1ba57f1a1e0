// Loads the A2A SDK on demand.

import type * as Core from '@a2a-js/sdk';
import type * as Client from '@a2a-js/sdk/client';
import type * as Errors from '@a2a-js/sdk/errors';
import { ConfigurationError } from '../../values/errors.ts';

export type Sdk = Pick<typeof Core, 'Role' | 'TaskState'> &
  Pick<typeof Errors, 'A2AError'> &
  Pick<
    typeof Client,
    | 'ClientFactory'
    | 'DefaultAgentCardResolver'
    | 'JsonRpcTransportFactory'
    | 'RestTransportFactory'
  >;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadSdk(by: string): Promise<Sdk> {
  try {
    const [core, client, errors] = await Promise.all([
      import('@a2a-js/sdk'),
      import('@a2a-js/sdk/client'),
      import('@a2a-js/sdk/errors'),
    ]);
    return { ...core, ...client, A2AError: errors.A2AError };
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `${by} needs the package \`@a2a-js/sdk\`: run \`npm install @a2a-js/sdk\``,
      { cause },
    );
  }
}
