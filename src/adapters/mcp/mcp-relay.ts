// A relay to a tool of a server that speaks the Model Context Protocol: each turn is a call of the tool, as a task where
// the server has tasks. Nothing of it runs here, unless the transport starts the server.
//
// Does not: offer the server sampling, roots or files, open addresses that it wants the user to visit, or log in.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { z } from 'zod';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import type { Relay, RelaySession, RelayStart } from '../../actors/ports/relay.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { openInTime, originFetch } from '../relays/remote-agent.ts';
import { Foreign2025 } from './foreign-2025.ts';
import { Foreign2026 } from './foreign-2026.ts';
import type { ForeignServer, Heard } from './foreign-server.ts';
import { loadClientSdk } from './load-sdk.ts';
import { McpRelaySession, type McpPrompt } from './mcp-relay-session.ts';

/** The options of `mcpRelay`. */
export interface McpRelayOptions {
  /** The tool that does the work. */
  readonly tool: string;
  /** The address of a server over HTTP; or else `transport`. */
  readonly url?: string;
  /** Headers of each request to the origin of `url`, such as `authorization`. @defaultValue {} */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /** @defaultValue globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /**
   * Makes a transport of the official SDK for one session, such as
   * `() => new StdioClientTransport({ command, args })`. Only with `2025-11-25`.
   */
  readonly transport?: () => Transport | Promise<Transport>;
  /** The version of the protocol, on which the way of tasks depends. @defaultValue '2025-11-25' */
  readonly protocol?: '2025-11-25' | '2026-07-28';
  /** Makes the arguments of a call. @defaultValue the text, as the only argument of the tool that is a text */
  readonly arguments?: (prompt: McpPrompt) => Readonly<Record<string, unknown>>;
  /** The name of the server in messages. @defaultValue the tool */
  readonly name?: string;
  /** The time to connect and to find the tool, in milliseconds. @defaultValue 30000 */
  readonly startTimeoutMs?: number;
  /** The time that the server gets to cancel a task before it is let go, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** The time between two looks at a task, in milliseconds, where the server names none. @defaultValue 2000 */
  readonly pollMs?: number;
  /** The time for which the server is asked to keep a task, in milliseconds (2025-11-25). @defaultValue 86400000 */
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
 * Creates a relay to a tool of an MCP server, for `defineSubagent({ relay })`. Needs the package
 * `@modelcontextprotocol/sdk`. Nothing is requested before a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function mcpRelay(options: McpRelayOptions): Relay {
  check('mcpRelay(options)', optionsSchema, options);
  const { name = options.tool, protocol } = options;
  return {
    name,
    loop: relayLoop,
    // A task lives at the server. A question of 2025-11-25 has no id, and most servers put it once.
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
): Promise<ForeignServer> {
  const { url, protocol, headers, fetch, ttlMs = 86_400_000 } = options;
  if (url === undefined) {
    const [sdk, transport] = [await loadClientSdk(), await options.transport?.()];
    if (!transport) throw new Error('`transport` returned none');
    return Foreign2025.open(sdk, transport, { heard, ttlMs, signal, traceparent });
  }
  const bound = originFetch(
    { url, ...(headers ? { headers } : {}), ...(fetch ? { fetch } : {}) },
    signal,
  );
  if (protocol === '2026-07-28') return new Foreign2026({ url, fetch: bound, heard, traceparent });
  const sdk = await loadClientSdk();
  const open = (known: string | null): Promise<ForeignServer> => {
    const given = { fetch: bound, ...(known === null ? {} : { sessionId: known }) };
    const transport = new sdk.StreamableHTTPClientTransport(new URL(url), given);
    return Foreign2025.open(sdk, transport, { heard, ttlMs, signal, traceparent });
  };
  if (sessionId === null) return open(null);
  // A server that was begun again does not know the session, and may know its tasks.
  return open(sessionId).catch(() => open(null));
}
