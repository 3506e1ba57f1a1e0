// A relay to a tool of an MCP server. Each turn is a tool call, which runs as a task if the server supports tasks. The
// tool runs on the server. A stdio transport starts the server as a local process.
//
// Does not: offer sampling, roots or files to the server, open URLs for the user, or log in.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { z } from 'zod';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import type { Relay, RelaySession, RelayStart } from '../../actors/ports/relay.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { openInTime, originFetch } from '../relays/remote-agent.ts';
import { Remote2025 } from './remote-2025.ts';
import { remote2026 } from './remote-2026.ts';
import type { RemoteServer, Heard } from './remote-server.ts';
import { loadClientSdk } from './load-sdk.ts';
import { McpRelaySession, type McpPrompt } from './mcp-relay-session.ts';

/** The options of `mcpRelay`. */
export interface McpRelayOptions {
  /** The tool's name. */
  readonly tool: string;
  /** The URL of an HTTP server. Specify either `url` or `transport`. */
  readonly url?: string;
  /** Headers for each request to the origin of `url`, such as `authorization`. @defaultValue {} */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /** @defaultValue globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Creates an SDK transport for one session, such as `() => new StdioClientTransport({ command, args })`. Supported
   * only with `2025-11-25`.
   */
  readonly transport?: () => Transport | Promise<Transport>;
  /** The protocol version, which determines how tasks work. @defaultValue '2025-11-25' */
  readonly protocol?: '2025-11-25' | '2026-07-28';
  /** Builds the arguments of a call. @defaultValue the text, for a tool with one text argument */
  readonly arguments?: (prompt: McpPrompt) => Readonly<Record<string, unknown>>;
  /** The server's name in messages. @defaultValue the tool's name */
  readonly name?: string;
  /** The time limit for connecting and finding the tool, in milliseconds. @defaultValue 30000 */
  readonly startTimeoutMs?: number;
  /** The maximum time that the server may take to cancel a task, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** The polling interval for a task unless the server specifies one, in milliseconds. @defaultValue 2000 */
  readonly pollMs?: number;
  /** The time for which the server should store a task, in milliseconds (2025-11-25). @defaultValue 86400000 */
  readonly ttlMs?: number;
}

const milliseconds = z.number().min(1).optional();
const optionsSchema = z
  .strictObject({
    tool: z.string().min(1),
    url: z.url({ protocol: /^https?$/, error: 'expected an http or https address' }).optional(),
    headers: z.union([z.record(z.string(), z.string()), aFunction]).optional(),
    fetch: aFunction.optional(),
    transport: aFunction.optional(),
    protocol: z.enum(['2025-11-25', '2026-07-28']).optional(),
    arguments: aFunction.optional(),
    name: z.string().min(1).optional(),
    startTimeoutMs: milliseconds,
    graceMs: milliseconds,
    pollMs: milliseconds,
    ttlMs: milliseconds,
  } satisfies ChecksOf<McpRelayOptions>)
  .refine(({ url, transport }) => (url === undefined) !== (transport === undefined), {
    error: 'expected either `url` or `transport`',
    path: ['url'],
  })
  .refine(({ transport, protocol }) => transport === undefined || protocol !== '2026-07-28', {
    error: 'expected `url` beside `protocol: "2026-07-28"`: its requests are sent over HTTP',
    path: ['transport'],
  });

/**
 * Creates a relay to an MCP server's tool, for `defineSubagent({ relay })`. Needs the package
 * `@modelcontextprotocol/sdk`. The first request is sent when a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function mcpRelay(options: McpRelayOptions): Relay {
  check('mcpRelay(options)', optionsSchema, options);
  const { name = options.tool, protocol } = options;
  return {
    name,
    loop: relayLoop,
    // The server stores the task. With 2025-11-25, a question has no id, and most servers send it only once.
    capabilities: {
      openQuestionSurvives: protocol === '2026-07-28',
      resumes: true,
      steers: false,
      reportsTools: false,
    },
    start: (start) => begin(name, options, start),
  };
}

async function begin(
  name: string,
  options: McpRelayOptions,
  start: RelayStart,
): Promise<RelaySession> {
  const { tool, startTimeoutMs = 30_000, graceMs = 5_000, pollMs = 2_000 } = options;
  start.signal.throwIfAborted();
  return openInTime({ name, start, timeoutMs: startTimeoutMs }, (over) =>
    McpRelaySession.open({
      name,
      tool,
      argumentsOf: options.arguments ?? null,
      connect: (heard, sessionId) => connect(options, start, heard, sessionId, over.signal),
      start,
      graceMs,
      pollMs,
      over,
    }),
  );
}

async function connect(
  options: McpRelayOptions,
  { traceparent }: RelayStart,
  heard: Heard,
  sessionId: string | null,
  signal: AbortSignal,
): Promise<RemoteServer> {
  const { url, protocol, headers, fetch, ttlMs = 86_400_000 } = options;
  if (url === undefined) {
    const [sdk, transport] = [await loadClientSdk(), await options.transport?.()];
    if (!transport) throw new Error('`transport` returned none');
    return Remote2025.open(sdk, transport, { heard, ttlMs, signal, traceparent });
  }
  const bound = originFetch(
    { url, ...(headers ? { headers } : {}), ...(fetch ? { fetch } : {}) },
    signal,
  );
  if (protocol === '2026-07-28') return remote2026({ url, fetch: bound, heard, traceparent });
  const sdk = await loadClientSdk();
  const open = (known: string | null): Promise<RemoteServer> => {
    const given = { fetch: bound, ...(known === null ? {} : { sessionId: known }) };
    const transport = new sdk.StreamableHTTPClientTransport(new URL(url), given);
    return Remote2025.open(sdk, transport, { heard, ttlMs, signal, traceparent });
  };
  if (sessionId === null) return open(null);
  // A server that has restarted does not have the session any more, but may still have its tasks.
  return open(sessionId).catch(() => open(null));
}
