// A separate server for a webhook. It is reachable by any peer, under any name: the signature decides.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { createGuard } from '../listen/guard.ts';

export interface Listener {
  /** An origin such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  /** Resolves when the port is free. Closes open connections. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly name: string;
  readonly port: number;
  readonly host: string;
  readonly environment: Environment;
  /** The limit of bodies that are read at once. */
  readonly maxBodies: number;
  readonly bodyTimeoutMs: number;
  /** `admit`: to be called when the signature is right. */
  readonly handler: (
    request: IncomingMessage,
    response: ServerResponse,
    admit: () => void,
  ) => Promise<void>;
  /** Called with later errors, which the listener survives. */
  readonly report: (error: unknown) => void;
}

/** The time limit of a request's headers. */
const HEADERS_TIMEOUT_MS = 10_000;
/** The limit of connections beside those whose bodies are read. */
const IDLE_CONNECTIONS = 64;

/** @throws {ConfigurationError} `LISTEN_FAILED` (the port is taken) */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { name, port, host, environment, maxBodies, bodyTimeoutMs, handler, report } = options;
  const guard = await createGuard({
    name,
    environment,
    isHost: () => true,
    isOrigin: () => true,
    maxStrangers: maxBodies + IDLE_CONNECTIONS,
    strangerTimeoutMs: HEADERS_TIMEOUT_MS + bodyTimeoutMs,
    request: ({ request, response, admit }) => handler(request, response, admit),
    onError: report,
  });
  const bound = await guard.listen({ port, host }).catch((cause: unknown) => {
    const message = `${name} could not listen on ${host}:${port}: ${messageOf(cause)}`;
    throw new ConfigurationError('LISTEN_FAILED', message, { cause });
  });
  const address = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return { origin: `http://${address}:${bound.port}`, close: () => guard.close() };
}
