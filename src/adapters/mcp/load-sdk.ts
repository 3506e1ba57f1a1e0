// The package of the protocol, which is loaded when it is needed.

import type * as server from '@modelcontextprotocol/sdk/server/index.js';
import type * as stdio from '@modelcontextprotocol/sdk/server/stdio.js';
import type * as web from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type * as types from '@modelcontextprotocol/sdk/types.js';
import { ConfigurationError } from '../../values/errors.ts';

/** By name: an inferred type would write all schemas of the package into the declarations. */
export type ServerSdk = typeof server & typeof web & typeof stdio & typeof types;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadServerSdk(): Promise<ServerSdk> {
  try {
    const parts = await Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]);
    const [ofServer, ofWeb, ofStdio, ofTypes] = parts;
    return { ...ofServer, ...ofWeb, ...ofStdio, ...ofTypes };
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      'mcpServer needs the package `@modelcontextprotocol/sdk`: run `npm install @modelcontextprotocol/sdk`',
      { cause },
    );
  }
}
