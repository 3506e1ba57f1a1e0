// Loads the MCP SDK on demand.

import type * as client from '@modelcontextprotocol/sdk/client/index.js';
import type * as http from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type * as server from '@modelcontextprotocol/sdk/server/index.js';
import type * as stdio from '@modelcontextprotocol/sdk/server/stdio.js';
import type * as web from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type * as types from '@modelcontextprotocol/sdk/types.js';
import { ConfigurationError } from '../../values/errors.ts';

/** The type is explicit because an inferred type would copy all SDK schemas into the declarations. */
export type ServerSdk = typeof server & typeof web & typeof stdio & typeof types;

export type ClientSdk = typeof client & typeof http & typeof types;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadServerSdk(): Promise<ServerSdk> {
  const [ofServer, ofWeb, ofStdio, ofTypes] = await loaded('mcpServer', () =>
    Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]),
  );
  return { ...ofServer, ...ofWeb, ...ofStdio, ...ofTypes };
}

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadClientSdk(): Promise<ClientSdk> {
  const [ofClient, ofHttp, ofTypes] = await loaded('mcpRelay', () =>
    Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]),
  );
  return { ...ofClient, ...ofHttp, ...ofTypes };
}

async function loaded<Parts>(by: string, load: () => Promise<Parts>): Promise<Parts> {
  try {
    return await load();
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `${by} needs the package \`@modelcontextprotocol/sdk\`: run \`npm install @modelcontextprotocol/sdk\``,
      { cause },
    );
  }
}
