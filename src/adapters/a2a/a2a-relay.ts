// A relay to any hosted agent that speaks the Agent2Agent protocol (A2A), version 1. Each turn is a task of the agent, in
// one context; nothing of it runs here.
//
// Does not: receive webhooks, send files, or get credentials for the agent.

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
  /** The address of the agent, below which its card is: `<url>/.well-known/agent-card.json`. */
  readonly url: string;
  /** The name of the agent in messages. @defaultValue the host of the address */
  readonly name?: string;
  /**
   * Headers of each request to the origin of `url`, such as `authorization`. An address of `origins` does not get them.
   * @defaultValue {}
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /**
   * Further origins, such as `https://agents.example.com`, of which the agent's card may name addresses. The words of the
   * user go to no other. @defaultValue []
   */
  readonly origins?: readonly string[];
  /** @defaultValue globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
  /** The time to read the card and to find an earlier task, in milliseconds. @defaultValue 30000 */
  readonly startTimeoutMs?: number;
  /** The time that the agent gets to cancel a task before it is let go, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** The time between two looks at a task whose events do not come by themselves, in milliseconds. @defaultValue 2000 */
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
 * Creates a relay to a hosted agent, for `defineSubagent({ relay })`. Needs the package `@a2a-js/sdk`. Nothing is
 * requested before a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function a2aRelay(options: A2aRelayOptions): Relay {
  check('a2aRelay(options)', optionsSchema, options);
  const { name = new URL(options.url).host } = options;
  return {
    name,
    loop: relayLoop,
    // A task lives at the agent. Its tools are its own business, and words in the middle of a task are not for all.
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
