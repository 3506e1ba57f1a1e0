// The port for the times at which sessions that are not in memory must be loaded.

/** The wake time of a session that is in memory: if its process dies, another process must load it immediately. */
export const AT_ONCE = 0;

/** The time at which a sleeping session must be loaded. */
export interface WakeTime {
  /** The id of the session. */
  readonly scope: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Stores the times at which sessions that are not in memory must be loaded.
 *
 * Duties of an implementation
 * - `set` returns (or resolves) only after the time is as durable as the sessions' entries.
 * - Every session may have a time, so the implementation decides how many times to hold in memory.
 * - Any process may set a time. The process that later loads the session claims it first.
 * - Scopes with the same time have a fixed order: by bytes or by code units.
 */
export interface WakeTimes {
  /** Sets the time at which the session must be loaded; null for never. The latest call replaces earlier ones. */
  set(scope: string, at: number | null): void | Promise<void>;
  /**
   * Returns the earliest times after `after`, ordered by time and then scope: `limit` of them, or all if there are
   * fewer. With `exceptClaimed`, the journal may omit scopes that it believes a live process is writing, so that a pool
   * does not try to load them. It must not omit any other scope.
   */
  earliest(query: {
    /** @defaultValue from the earliest */
    readonly after?: WakeTime;
    readonly limit: number;
    /** @defaultValue false */
    readonly exceptClaimed?: boolean;
  }): readonly WakeTime[] | Promise<readonly WakeTime[]>;
  /**
   * Claims, like `Journal.claim`, up to `limit` scopes whose time is not later than `now` and that no live process is
   * writing. Returns the claimed scopes. Concurrent callers receive different scopes. The caller must release a scope
   * that it does not load. Without this method, a pool claims the scopes from `earliest` one by one.
   */
  take?(query: {
    readonly now: number;
    readonly limit: number;
    /** The scopes to omit. */
    readonly except: readonly string[];
  }): Promise<readonly string[]>;
}

/** Compares two times in the order of `earliest`. */
export function inOrder(one: WakeTime, other: WakeTime): number {
  if (one.at !== other.at) return one.at - other.at;
  return one.scope < other.scope ? -1 : Number(one.scope > other.scope);
}

/** Creates wake times that are lost when the process ends, like `memoryJournal`. Each time uses a few hundred bytes. */
export function memoryWakeTimes(): WakeTimes {
  const times = new Map<string, number>();
  return {
    set(scope, at) {
      if (at === null) times.delete(scope);
      else times.set(scope, at);
    },
    earliest({ after, limit }) {
      // Sorting all times would be wasteful: there may be a hundred thousand, and the caller needs only a few.
      let found: WakeTime[] = [];
      for (const [scope, at] of times) {
        const time = { scope, at };
        if (after !== undefined && inOrder(time, after) <= 0) continue;
        found.push(time);
        if (found.length > 2 * limit) found = first(found, limit);
      }
      return first(found, limit);
    },
  };
}

function first(times: readonly WakeTime[], limit: number): WakeTime[] {
  return times.toSorted(inOrder).slice(0, limit);
}
