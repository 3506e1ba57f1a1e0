// The code that HTTP relays share: requests with the app's headers, opening a session within a time limit, and the
// session id for resuming.
//
// Invariants
//   REMOTE-AGENT-1. Requests are sent only to the origin of `url` and to origins that the app allows. Only the origin
//       of `url` receives the app's headers. Redirects are not followed.
//   REMOTE-AGENT-2. The part of a response that is buffered has a maximum size. If a body or a stream event is larger,
//       its request ends.

import type { RelayStart } from '../../actors/ports/relay.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { clip } from '../../values/clip.ts';
import { messageOf, OffstageError, TimeoutError } from '../../values/errors.ts';

type HeaderValues = Readonly<Record<string, string>>;

interface Origin {
  readonly url: string;
  /** Additional allowed origins. */
  readonly origins?: readonly string[];
  readonly headers?: HeaderValues | (() => HeaderValues | Promise<HeaderValues>);
  readonly fetch?: typeof globalThis.fetch;
  /** The value of the header `traceparent`, unless `headers` contains one. */
  readonly traceparent?: () => string | undefined;
}

/** Creates the `fetch` of one session. The requests of the session end when `over` is aborted. REMOTE-AGENT-1 */
export function originFetch(options: Origin, over: AbortSignal): typeof globalThis.fetch {
  const { headers = {}, fetch = globalThis.fetch, traceparent } = options;
  const { origin } = new URL(options.url);
  const allowed = new Set(options.origins?.map((one) => new URL(one).origin)).add(origin);
  return async (input, init) => {
    const address = input instanceof Request ? input.url : input;
    const all = new Headers(init?.headers);
    const { origin: target } = new URL(address);
    if (!allowed.has(target))
      throw new OffstageError(
        'RELAY_FAILED',
        `expected an address of ${[...allowed].join(' or ')}, the agent named one of ${target}: \`origins\` allows others`,
      );
    if (target === origin) {
      const own = typeof headers === 'function' ? await headers() : headers;
      const traced = traceparent?.();
      if (traced !== undefined) all.set('traceparent', traced);
      for (const [header, value] of Object.entries(own)) all.set(header, value);
    }
    const signals = init?.signal ? [init.signal, over] : [over];
    const response = await fetch(input, {
      ...init,
      headers: all,
      redirect: 'error',
      signal: AbortSignal.any(signals),
    });
    return bounded(response);
  };
}

const MAX_BYTES = 16 * 1024 * 1024;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** REMOTE-AGENT-2 */
function bounded(response: Response): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  let size = 0;
  let isLineEmpty = false;
  /** Counts the bytes since the last blank line, because a blank line ends an event. */
  const countEvents = (chunk: Uint8Array): void => {
    for (const byte of chunk) {
      size += 1;
      if (byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && isLineEmpty) size = 0;
      isLineEmpty = byte === LINE_FEED;
    }
  };
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (isStream) countEvents(chunk);
      else size += chunk.length;
      if (size <= MAX_BYTES) controller.enqueue(chunk);
      else controller.error(new Error(`it sent more than ${MAX_BYTES} bytes at once`));
    },
  });
  return new Response(body.pipeThrough(counted), { status, statusText, headers });
}

interface Opening {
  /** The agent's name in errors. */
  readonly name: string;
  readonly start: RelayStart;
  readonly timeoutMs: number;
}

/**
 * Opens a session within the time limit. If the time limit is exceeded or the start is aborted, `over` is aborted.
 * @throws {OffstageError} `RELAY_FAILED`, {@link TimeoutError}, or the abort reason
 */
export async function openInTime<T>(
  { name, start, timeoutMs }: Opening,
  open: (over: AbortController) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const late = new TimeoutError(`${name} did not answer within ${timeoutMs} ms`);
  const cancelTimer = start.scheduler.schedule(() => over.abort(late), timeoutMs);
  const abort = (): void => over.abort(start.signal.reason);
  start.signal.addEventListener('abort', abort, { once: true });
  try {
    start.signal.throwIfAborted();
    return await raceAbort(open(over), over.signal);
  } catch (error) {
    const reason: unknown = over.signal.aborted ? over.signal.reason : error;
    over.abort(reason);
    if (start.signal.aborted || reason instanceof OffstageError) throw reason;
    throw new OffstageError('RELAY_FAILED', `${name} opened no session: ${messageOf(error)}`, {
      cause: error,
    });
  } finally {
    cancelTimer();
    start.signal.removeEventListener('abort', abort);
  }
}

/** Returns the id of a session, which consists of the id of its conversation and that of its current task, if any. */
export function writeSessionId(
  scheme: string,
  conversation: string,
  taskId: string | null,
): string {
  const task = taskId === null ? '' : `/${encodeURIComponent(taskId)}`;
  return `${scheme}:${encodeURIComponent(conversation)}${task}`;
}

export function readSessionId(
  scheme: string,
  id: string,
): { readonly conversation: string; readonly taskId: string | null } | null {
  const [, found, conversation, task] = /^([^:]+):([^/]+)(?:\/([^/]+))?$/.exec(id) ?? [];
  if (found !== scheme || conversation === undefined) return null;
  try {
    return {
      conversation: decodeURIComponent(conversation),
      taskId: task === undefined ? null : decodeURIComponent(task),
    };
  } catch {
    return null;
  }
}

export function unknownSession(name: string, id: string): OffstageError {
  return new OffstageError(
    'RELAY_FAILED',
    `${name}: expected the id of a session, got ${JSON.stringify(clip(id, 200))}`,
  );
}
