// Webhooks as an event source: signed HTTP requests become events of a service.
//
//   request ─▶ shape (path, method, type, size) ─▶ time ─▶ body ─▶ signature ─▶ seen before?
//           ─▶ rate ─▶ JSON ─▶ event ─▶ emit ─▶ answer
//
// Owns:     the listener, if it has one; the accepted messages; the rate limit.
// Does not: trust any part of a request before its signature has been verified, store messages (the session's journal
//           does), or store the keys of accepted messages (a restart of the process clears them).
//
// Invariants
//   WEBHOOK-SOURCE-1. No part of a request is parsed before its signature has been verified. Signatures are compared in
//       constant time, and every signature failure has the same response.
//   WEBHOOK-SOURCE-2. A message is accepted at most once. Its key is remembered for as long as its timestamp would be
//       accepted. A message that could not be accepted is not remembered and may be sent again. While the decision on a
//       message is pending, a repetition of the message receives 503.
//   WEBHOOK-SOURCE-3. The response 202 means that the message is in the session's journal.
//   WEBHOOK-SOURCE-4. Requests without a valid signature use up neither the rate limit nor the places for signed
//       requests. If a body is slow, it loses its place to the next body.
//   WEBHOOK-SOURCE-5. A source that is stopping responds to running requests with 503 and frees the port.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { wallTime, type Environment } from '../../actors/ports/environment.ts';
import type {
  EmitEvent,
  EventSourceConfig,
  EventSourceContext,
  ExternalEvent,
} from '../../actors/ports/event-source.ts';
import {
  ConfigurationError,
  handleRejection,
  messageOf,
  ProtocolError,
} from '../../values/errors.ts';
import { createGuard } from '../listen/guard.ts';
import { readBody } from '../listen/request-body.ts';
import { UnauthenticatedPlaces } from '../listen/unauthenticated-places.ts';
import {
  checkOptions,
  type CheckedOptions,
  type WebhookSourceOptions,
  RateLimit,
  type WebhookRefusal,
} from './options.ts';
import { claimOf, digestOf, isSigned, type Claim } from './signatures.ts';

/** The event source for a webhook. */
export interface WebhookSource extends EventSourceConfig {
  /**
   * Handles a request to the app's own server. The body of the request must not have been read. Never rejects. Responds
   * with 503 until a service has started the source.
   */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** The address of the listener; null while it is not listening. */
  readonly url: string | null;
}

/** The period from a start to the next stop. */
interface Attempt extends Pick<EventSourceContext, 'environment' | 'report'> {
  readonly emit: EmitEvent;
  readonly signal: AbortSignal;
}

/**
 * Creates a source of signed webhooks. Create one source for each service.
 * @throws {ConfigurationError} if an option is invalid
 */
export function webhookSource(options: WebhookSourceOptions): WebhookSource {
  return new Webhook(checkOptions(options));
}

class Webhook implements WebhookSource {
  readonly name: string;
  readonly #options: CheckedOptions;
  readonly #seen: ReplayGuard;
  readonly #rate: RateLimit;
  /** The keys of messages whose acceptance is still undecided. */
  readonly #undecided = new Set<string>();
  readonly #underWay = new Set<Promise<void>>();
  /** The places for bodies whose signature has not been verified. */
  readonly #unsigned: UnauthenticatedPlaces;
  /** The number of signed messages that are being accepted. */
  #taking = 0;
  #attempt: Attempt | null = null;
  #listener: Listener | null = null;
  #closing: Promise<void> = Promise.resolve();

  constructor(options: CheckedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#seen = new ReplayGuard(options.maxRemembered);
    this.#rate = new RateLimit(options.rate);
    this.#unsigned = new UnauthenticatedPlaces(options.maxConcurrent);
  }

  get url(): string | null {
    return this.#listener && `${this.#listener.origin}${this.#options.path}`;
  }

  readonly start: EventSourceConfig['start'] = async (emit, signal, context) => {
    if (this.#attempt)
      throw new ConfigurationError(
        'SOURCE_IN_USE',
        `${this.name}: expected a webhook source for each service, got one for two`,
      );
    const { environment, report } = context;
    this.#attempt = { emit, signal, environment, report };
    // This is not part of `stop`, which is also called when a start was refused.
    signal.addEventListener('abort', () => void (this.#closing = this.#close()), { once: true });
    const { listen: where } = this.#options;
    if (!where) return;
    const { name, maxConcurrent: maxBodies, bodyTimeoutMs } = this.#options;
    const listener = await listen({
      ...where,
      name,
      environment,
      maxBodies,
      bodyTimeoutMs,
      handler: this.#serve,
      report,
    });
    if (signal.aborted) await listener.close();
    else this.#listener = listener;
  };

  readonly stop = (): Promise<void> => this.#closing;

  async #close(): Promise<void> {
    this.#attempt = null;
    const listener = this.#listener;
    this.#listener = null;
    // The signal of the running requests has been aborted, so they will end soon.
    await Promise.allSettled(this.#underWay);
    await listener?.close();
  }

  readonly handler: WebhookSource['handler'] = (request, response) =>
    this.#serve(request, response, () => undefined);

  /** `admit` is called once the signature has been verified. */
  readonly #serve = (
    request: IncomingMessage,
    response: ServerResponse,
    admit: () => void,
  ): Promise<void> => {
    // Handles a sender that disconnects during the response. A `close` event follows.
    response.on('error', () => undefined);
    const answering = this.#handle(request, response, admit);
    this.#underWay.add(answering);
    return answering.finally(() => this.#underWay.delete(answering));
  };

  async #handle(
    request: IncomingMessage,
    response: ServerResponse,
    admit: () => void,
  ): Promise<void> {
    const attempt = this.#attempt;
    let answer: Answer;
    try {
      answer = attempt
        ? await this.#answer(attempt, request, admit)
        : unavailable('it is not started');
    } catch (error) {
      attempt?.report(error);
      answer = refuse(500, 'Internal error', messageOf(error));
    }
    if (answer.status >= 400) this.#tellRefused(answer, attempt);
    await send(response, answer, request.complete);
  }

  #tellRefused({ status, reason }: Answer, attempt: Attempt | null): void {
    try {
      const told: unknown = this.#options.onRefused({ status, reason });
      handleRejection(told, (error) => attempt?.report(error));
    } catch (error) {
      attempt?.report(error);
    }
  }

  async #answer(attempt: Attempt, request: IncomingMessage, admit: () => void): Promise<Answer> {
    const { maxConcurrent, scheme } = this.#options;
    const misshapen = this.#checkShape(request);
    if (misshapen) return misshapen;
    const claim = claimOf(scheme, request.headers);
    if (!claim) return unauthorized('a header of the signature is missing or malformed');
    // This is checked before the body is read, because an outdated message needs no place.
    const late = this.#checkTime(attempt, claim);
    if (late) return late;
    const body = await this.#read(attempt, request);
    if (!Buffer.isBuffer(body)) return body;
    const refused = this.#check(attempt, claim, body);
    if (refused) return refused;
    admit();
    if (this.#taking >= maxConcurrent) return unavailable('too many messages at once', 1);
    this.#taking += 1;
    try {
      return await this.#take(attempt, request, claim, body);
    } finally {
      this.#taking -= 1;
    }
  }

  /** Checks the request without its body. The response contains no details. */
  #checkShape({ url = '/', method, headers }: IncomingMessage): Answer | null {
    const { path, maxBytes } = this.#options;
    if (url.split('?', 1)[0] !== path) return refuse(404, 'Not found');
    if (method !== 'POST') return refuse(405, 'Expected POST', undefined, { allow: 'POST' });
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (!/^application\/(?:[\w.+-]+\+)?json$/i.test(type.trim()))
      return refuse(415, 'Expected content-type application/json');
    if ((headers['content-encoding'] ?? 'identity') !== 'identity')
      return refuse(415, 'Expected no content-encoding');
    if (Number(headers['content-length'] ?? 0) > maxBytes) return this.#tooLarge();
    return null;
  }

  #tooLarge(): Answer {
    return refuse(413, `Expected at most ${this.#options.maxBytes} bytes`);
  }

  #checkTime({ environment }: Attempt, { timestamp }: Claim): Answer | null {
    if (timestamp === null) return null;
    const apartMs = Math.abs(wallTime(environment.clock) - Number(timestamp) * 1000);
    return apartMs > this.#options.toleranceMs
      ? unauthorized('it was sent too long ago, or in the future')
      : null;
  }

  async #read(attempt: Attempt, request: IncomingMessage): Promise<Buffer | Answer> {
    const { maxBytes, bodyTimeoutMs } = this.#options;
    const shed = new AbortController();
    const release = this.#unsigned.take(request.socket.remoteAddress ?? '', () => shed.abort());
    const body = await readBody(request, {
      scheduler: attempt.environment.scheduler,
      maxBytes,
      timeoutMs: bodyTimeoutMs,
      signal: AbortSignal.any([attempt.signal, shed.signal]),
    });
    release();
    if (Buffer.isBuffer(body)) return body;
    switch (body) {
      case 'too_large':
        return this.#tooLarge();
      case 'too_late':
        return refuse(408, 'Expected the body sooner');
      case 'consumed':
        throw new ConfigurationError(
          'BODY_CONSUMED',
          `${this.name}: expected a request with an unread body: put the handler before any body parser`,
        );
      case 'aborted':
        return shed.signal.aborted
          ? unavailable('too many bodies at once, and this one was slow', 1)
          : unavailable('it is being stopped');
    }
  }

  /** Checks the signature, the time, repetition and the rate limit; returns null if the request is valid. */
  #check(attempt: Attempt, claim: Claim, body: Buffer): Answer | null {
    if (!isSigned(this.#options.keys, claim, body)) return unauthorized('the signature is wrong');
    const late = this.#checkTime(attempt, claim);
    if (late) return late;
    const now = attempt.environment.clock.now();
    const key = this.#keyOf(claim, body);
    if (this.#seen.has(key, now)) return duplicate;
    if (this.#undecided.has(key)) return unavailable('the same message is being taken', 1);
    return this.#rate.take(now)
      ? null
      : refuse(429, 'Too many requests', undefined, { 'retry-after': '1' });
  }

  async #take(
    attempt: Attempt,
    { headers }: IncomingMessage,
    claim: Claim,
    body: Buffer,
  ): Promise<Answer> {
    let json: unknown;
    try {
      json = JSON.parse(body.toString('utf8'));
    } catch {
      return refuse(400, 'Expected JSON');
    }
    let event: ExternalEvent | null;
    try {
      event = this.#options.toEvent({ body: json, headers, id: claim.id });
    } catch (error) {
      attempt.report(error);
      return refuse(422, 'Unprocessable', messageOf(error));
    }
    const key = this.#keyOf(claim, body);
    this.#undecided.add(key);
    try {
      const answer = event
        ? await this.#emit(attempt, event)
        : unused('toEvent made no event of it');
      // If a message was answered with an error, it may be sent again.
      if (answer.status < 400) this.#remember(key, claim, attempt);
      return answer;
    } finally {
      this.#undecided.delete(key);
    }
  }

  async #emit({ emit, report }: Attempt, event: ExternalEvent): Promise<Answer> {
    const receipt = await emit(event);
    if (receipt.accepted) return accepted;
    const { reason, message } = receipt;
    if (reason === 'ignored') return unused(message);
    if (reason === 'full' || reason === 'stopped') return unavailable(message);
    report(new ProtocolError('INVALID_EVENT', `${this.name}: ${message}`, { raw: event }));
    return refuse(422, 'Unprocessable', message);
  }

  #remember(key: string, { timestamp }: Claim, { environment }: Attempt): void {
    const now = environment.clock.now();
    const forMs = timestamp === null ? Number.POSITIVE_INFINITY : 2 * this.#options.toleranceMs;
    this.#seen.remember(key, now + forMs, now);
  }

  /** Returns the key of a message: its id if it is signed, otherwise a digest of the whole message. */
  #keyOf(claim: Claim, body: Buffer): string {
    const [key] = this.#options.keys;
    return claim.id ?? digestOf(key ?? Buffer.alloc(0), claim, body).toString('base64');
  }
}

/**
 * The response to a sender, which shows only whether to repeat the request. It does not reveal why a signature is wrong
 * or whether a message is outdated.
 */
interface Answer extends WebhookRefusal {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Accepted: the event is in the journal. */
const accepted: Answer = { status: 202, reason: 'accepted', body: { accepted: true } };

/** A valid message that causes no event. The sender should not repeat it. */
function unused(reason: string): Answer {
  return { status: 200, reason, body: { accepted: false } };
}

/** A sender repeats a message if the response was lost. This response stops the repetition. */
const duplicate: Answer = {
  status: 200,
  reason: 'a message that was taken already',
  body: { accepted: true, duplicate: true },
};

function refuse(
  status: number,
  error: string,
  reason = error,
  headers: Record<string, string> = {},
): Answer {
  return { status, reason, body: { error }, headers };
}

const unauthorized = (reason: string): Answer => refuse(401, 'Unauthorized', reason);

/** Unavailable: the sender should try again. */
function unavailable(reason: string, retryAfterSeconds = 5): Answer {
  return refuse(503, 'Try again later', reason, { 'retry-after': String(retryAfterSeconds) });
}

/**
 * Resolves when the response has been sent or the client has disconnected. `isRead`: whether the whole request has been
 * read, so that its connection can be reused.
 */
function send(response: ServerResponse, answer: Answer, isRead: boolean): Promise<void> {
  if (response.headersSent || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    response
      .once('close', resolve)
      .writeHead(answer.status, {
        ...answer.headers,
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        ...(isRead ? {} : { connection: 'close' }),
      })
      .end(`${JSON.stringify(answer.body)}\n`, () => resolve());
    // If earlier pipelined requests end the connection, this request receives no event.
    if (!response.socket) resolve();
  });
}

/** A separate server for a webhook. Any peer can reach it under any host name, so only the signature counts. */
interface Listener {
  /** An origin such as `http://127.0.0.1:8080`. */
  readonly origin: string;
  /** Resolves when the port is free. Also closes open connections. */
  close(): Promise<void>;
}

interface ListenerOptions {
  readonly name: string;
  readonly port: number;
  readonly host: string;
  readonly environment: Environment;
  /** The maximum number of bodies that are read at the same time. */
  readonly maxBodies: number;
  readonly bodyTimeoutMs: number;
  /** `admit` must be called once the signature has been verified. */
  readonly handler: (
    request: IncomingMessage,
    response: ServerResponse,
    admit: () => void,
  ) => Promise<void>;
  /** Called with later errors that do not stop the listener. */
  readonly report: (error: unknown) => void;
}

/** The time limit for a request's headers. */
const HEADERS_TIMEOUT_MS = 10_000;
/** The number of connections that are allowed in addition to those whose bodies are being read. */
const IDLE_CONNECTIONS = 64;

/** @throws {ConfigurationError} `LISTEN_FAILED` (the port is in use) */
async function listen(options: ListenerOptions): Promise<Listener> {
  const { name, port, host, environment, maxBodies, bodyTimeoutMs, handler, report } = options;
  const guard = await createGuard({
    name,
    environment,
    isHost: () => true,
    isOrigin: () => true,
    maxUnauthenticated: maxBodies + IDLE_CONNECTIONS,
    authenticationTimeoutMs: HEADERS_TIMEOUT_MS + bodyTimeoutMs,
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

/** Remembers keys until they expire. If the guard is full, it removes the oldest key. */
class ReplayGuard {
  readonly #max: number;
  /** The expiry of each key, oldest first. */
  readonly #until = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  has(key: string, now: number): boolean {
    const until = this.#until.get(key);
    return until !== undefined && until >= now;
  }

  remember(key: string, until: number, now: number): void {
    this.#until.delete(key);
    for (const [old, oldUntil] of this.#until) {
      if (oldUntil >= now && this.#until.size < this.#max) break;
      this.#until.delete(old);
    }
    this.#until.set(key, until);
  }
}
