// An event source that polls. The service controls restarts. A failed poll ends the attempt, and the next attempt
// starts with a poll after the backoff.
//
// Owns:     the cursor, the keys of emitted events, and the events still to be emitted; all of them outlive an attempt.
// Does not: preserve state across restarts of the process (pass a stored value as `cursor`).
//
// Invariants
//   POLLING-SOURCE-1. Only one poll runs at a time, even across attempts. If a poll ignores its signal, all attempts
//       fail until the poll has ended.
//   POLLING-SOURCE-2. Each event of a poll is emitted once, in order. If the service has no room for an event, the
//       event is offered again before the next poll. An event whose key has already been seen is omitted.
//   POLLING-SOURCE-3. The cursor advances only after a successful poll.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';
import { ConfigurationError, ProviderError } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import { pause } from '../runtime/pause.ts';
import type { EmitEvent, EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';

/** The result of a poll. */
export interface Polled<Cursor> {
  /** The events of the poll, oldest first. */
  readonly events: readonly ExternalEvent[];
  /** The cursor for the next poll. @defaultValue the cursor of this poll */
  readonly cursor?: Cursor;
}

/** The options of `pollingSource`. */
export interface PollingSourceOptions<Cursor = unknown> {
  /** The name of the source. @defaultValue 'polling' */
  readonly name?: string;
  /** The time from the end of a poll to the next one, in milliseconds. */
  readonly intervalMs: number;
  /**
   * Polls once. The signal aborts after `timeoutMs`, or when the service stops. `cursor` is the cursor that the last
   * poll returned or, for the first poll, the option `cursor`.
   */
  readonly poll: (
    signal: AbortSignal,
    cursor: Cursor | undefined,
  ) => Promise<Polled<Cursor> | readonly ExternalEvent[]>;
  /** The cursor of the first poll. */
  readonly cursor?: Cursor;
  /** Returns an event's key. Events with the same key count as the same event. @defaultValue no event is omitted */
  readonly keyOf?: (event: ExternalEvent) => string;
  /** The maximum number of keys to remember; the oldest are forgotten. @defaultValue 10000 */
  readonly maxKeys?: number;
  /** The maximum fraction by which the interval randomly varies. @defaultValue 0.1 */
  readonly jitter?: number;
  /** The time limit of one poll, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

const milliseconds = z.number().positive();
const schema = z.strictObject({
  name: z.string().min(1),
  intervalMs: milliseconds,
  poll: z.custom((value) => typeof value === 'function', { error: 'expected a function' }),
  maxKeys: z.number().int().min(1),
  jitter: z.number().min(0).max(1),
  timeoutMs: milliseconds,
  cursor: z.unknown().optional(),
  keyOf: aFunction.optional(),
} satisfies ChecksOf<PollingSourceOptions>);

/**
 * Creates a source that polls at an interval, on the session's clock. Create a separate source for each service.
 * @throws {ConfigurationError} if an option is out of range.
 */
export function pollingSource<Cursor = unknown>(
  options: PollingSourceOptions<Cursor>,
): EventSourceConfig {
  const checked = { ...defaults, ...withoutUndefined(readable('pollingSource(options)', options)) };
  check('pollingSource(options)', schema, checked);
  const polling = new Polling<Cursor>(checked);
  return {
    name: checked.name,
    start: (emit, signal, { environment }) => polling.run(emit, signal, environment),
  };
}

const defaults = { name: 'polling', maxKeys: 10_000, jitter: 0.1, timeoutMs: 30_000 } as const;

type Options<Cursor> = PollingSourceOptions<Cursor> &
  Required<Pick<PollingSourceOptions, 'name' | 'maxKeys' | 'jitter' | 'timeoutMs'>>;

class Polling<Cursor> {
  readonly #options: Options<Cursor>;
  readonly #keys = new Set<string>();
  /** Events that were found, but not yet emitted. */
  #found: readonly ExternalEvent[] = [];
  #cursor: Cursor | undefined;
  #isPolling = false;

  constructor(options: Options<Cursor>) {
    this.#options = options;
    this.#cursor = options.cursor;
  }

  /** Polls until the signal aborts. Rejects with the error of a failed poll. */
  async run(emit: EmitEvent, signal: AbortSignal, environment: Environment): Promise<void> {
    const { intervalMs, jitter } = this.#options;
    while (!signal.aborted) {
      if (this.#found.length === 0) await this.#poll(signal, environment);
      await this.#handOver(emit, signal);
      const spread = 1 + jitter * (2 * environment.random.next() - 1);
      await pause(environment.scheduler, intervalMs * spread, signal).catch(() => {});
    }
  }

  async #poll(signal: AbortSignal, environment: Environment): Promise<void> {
    const { name, poll, timeoutMs } = this.#options;
    if (this.#isPolling)
      throw new ProviderError('POLL_STUCK', `${name}: a poll that was given up has not ended yet`);
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const disarm = environment.scheduler.schedule(
      () =>
        controller.abort(
          new ProviderError('POLL_TIMEOUT', `${name}: no end of the poll after ${timeoutMs} ms`),
        ),
      timeoutMs,
    );
    this.#isPolling = true;
    const polling = (async () => {
      try {
        return await poll(controller.signal, this.#cursor);
      } finally {
        this.#isPolling = false;
      }
    })();
    try {
      this.#keep(await raceAbort(polling, controller.signal));
    } catch (error) {
      // An error caused by the abort is not reported.
      if (!signal.aborted) throw error;
    } finally {
      disarm();
      signal.removeEventListener('abort', stop);
    }
  }

  #keep(polled: Polled<Cursor> | readonly ExternalEvent[]): void {
    const { name, keyOf, maxKeys } = this.#options;
    const { events, cursor } = Array.isArray(polled)
      ? { events: polled as readonly ExternalEvent[], cursor: undefined }
      : ((polled ?? {}) as Polled<Cursor>);
    if (!Array.isArray(events))
      throw new ConfigurationError(
        'INVALID_POLL',
        `${name}: expected poll() to resolve to events, or to { events, cursor }, got ${typeof events}`,
      );
    // All keys are computed before any is recorded, so that an error in one key does not lose the earlier events.
    const keys = keyOf && events.map((event) => keyOf(event));
    this.#found = keys ? events.filter((_, n) => this.#isNew(keys[n] ?? '')) : events;
    for (const key of this.#keys) {
      if (this.#keys.size <= maxKeys) break;
      this.#keys.delete(key);
    }
    if (cursor !== undefined) this.#cursor = cursor;
  }

  #isNew(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    return true;
  }

  /**
   * Emits events in order. If there is no room for an event, or the attempt has ended, the event is emitted again
   * later.
   */
  async #handOver(emit: EmitEvent, signal: AbortSignal): Promise<void> {
    for (let [event] = this.#found; event && !signal.aborted; [event] = this.#found) {
      const receipt = await emit(event);
      if (!receipt.accepted && (receipt.reason === 'full' || receipt.reason === 'stopped')) return;
      this.#found = this.#found.slice(1);
    }
  }
}
