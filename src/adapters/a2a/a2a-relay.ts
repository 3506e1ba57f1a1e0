// A relay to any hosted agent that speaks the Agent2Agent protocol (A2A), version 1. Each turn is one task of the
// agent, and all tasks share one context. The agent itself runs elsewhere.
//
// Does not: receive webhooks, send files, or obtain credentials for the agent.

import { withoutUndefined } from '../../values/without-undefined.ts';
import { z } from 'zod';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import type { Relay, RelaySession, RelayStart } from '../../actors/ports/relay.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { openInTime, originFetch } from '../relays/remote-agent.ts';
import { A2aSession } from './a2a-session.ts';
import { loadSdk, type Sdk } from './load-sdk.ts';
import { withoutEndSlashes } from '../../values/end-slashes.ts';

/** The options of `a2aRelay`. */
export interface A2aRelayOptions {
  /** The agent's URL; its card is at `<url>/.well-known/agent-card.json`. */
  readonly url: string;
  /** The agent's name in messages. @defaultValue the host of `url` */
  readonly name?: string;
  /**
   * Headers for each request to the origin of `url`, such as `authorization`. Requests to the other `origins` are sent
   * without these headers.
   * @defaultValue {}
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /**
   * Additional origins, such as `https://agents.example.com`, that the agent's card may refer to. Requests to any other
   * origin are refused. @defaultValue []
   */
  readonly origins?: readonly string[];
  /** @defaultValue globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /** The maximum time to read the card and find an earlier task, in milliseconds. @defaultValue 30000 */
  readonly startTimeoutMs?: number;
  /** The maximum time that the agent may take to cancel a task, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** The polling interval for a task that does not send events, in milliseconds. @defaultValue 2000 */
  readonly pollMs?: number;
}

const milliseconds = z.number().min(1).optional();
const address = z.url({ protocol: /^https?$/, error: 'expected an http or https address' });
const optionsSchema = z.strictObject({
  url: address,
  origins: z.array(address).max(100).optional(),
  name: z.string().min(1).optional(),
  headers: z.union([z.record(z.string(), z.string()), aFunction]).optional(),
  fetch: aFunction.optional(),
  startTimeoutMs: milliseconds,
  graceMs: milliseconds,
  pollMs: milliseconds,
} satisfies ChecksOf<A2aRelayOptions>);

/**
 * Creates a relay to a hosted agent, for `defineSubagent({ relay })`. Needs the package `@a2a-js/sdk`. The first
 * request is sent when a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function a2aRelay(options: A2aRelayOptions): Relay {
  check('a2aRelay(options)', optionsSchema, options);
  const { name = new URL(options.url).host } = options;
  return {
    name,
    loop: relayLoop,
    // The agent stores the task, so an open question is not lost. The agent does not report its tools, and some agents
    // do not accept messages during a task.
    capabilities: {
      openQuestionSurvives: true,
      resumes: true,
      steers: false,
      reportsTools: false,
    },
    start: (start) => begin(name, options, start),
  };
}

async function begin(
  name: string,
  options: A2aRelayOptions,
  start: RelayStart,
): Promise<RelaySession> {
  const { startTimeoutMs = 30_000, graceMs = 5_000, pollMs = 2_000 } = options;
  start.signal.throwIfAborted();
  const sdk = await loadSdk('a2aRelay');
  return openInTime({ name, start, timeoutMs: startTimeoutMs }, async (over) => {
    const connection = await connect(sdk, options, start, over.signal);
    return A2aSession.open({ sdk, name, ...connection, start, graceMs, pollMs, over });
  });
}

async function connect(
  sdk: Sdk,
  options: A2aRelayOptions,
  { traceparent }: RelayStart,
  over: AbortSignal,
) {
  const { url, origins, headers, fetch } = options;
  const fetchImpl = originFetch(
    withoutUndefined({ url, origins, headers, fetch, traceparent }),
    over,
  );
  const factory = new sdk.ClientFactory({
    transports: [
      new sdk.JsonRpcTransportFactory({ fetchImpl }),
      new sdk.RestTransportFactory({ fetchImpl }),
    ],
  });
  const resolver = new sdk.DefaultAgentCardResolver({ fetchImpl });
  const card = await resolver.resolve(withoutEndSlashes(url));
  const client = await factory.createFromAgentCard(card);
  return { client, streams: card.capabilities?.streaming === true };
}
