// The port for the times at which sessions that are not in memory must be loaded.

/** The wake time of sessions in memory: another process must load them as soon as their process dies. */
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
 * - There may be as many times as sessions; the implementation decides how many of them to keep in memory.
 * - Any process may set a time, which only says that some process must load the session; that process claims the
 *   session first.
 * - Scopes with the same time have a fixed order: by bytes or by code units.
 */
export interface WakeTimes {
  /** Sets the time at which the session must be loaded; null for never. The latest call replaces earlier ones. */
  set(scope: string, at: number | null): void | Promise<void>;
  /**
   * Returns the earliest times after `after`, ordered by time and then scope: `limit` of them, or all if there are
   * fewer. With `exceptClaimed`, the journal may omit scopes that, as far as it knows, a live process is writing, so
   * that a pool's search need not try them; it must not omit any other scope.
   */
  earliest(query: {
    /** @defaultValue from the earliest */
    readonly after?: WakeTime;
    readonly limit: number;
    /** @defaultValue false */
    readonly exceptClaimed?: boolean;
  }): readonly WakeTime[] | Promise<readonly WakeTime[]>;
  /**
   * Claims up to `limit` scopes whose time has come at `now` and that no live process writes, like `Journal.claim`, and
   * returns them: processes that call at the same time receive different scopes. The caller must release a scope that
   * it does not load. If absent, a pool claims the scopes from `earliest` one by one.
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

/** Creates wake times that are lost when the process ends, like `memoryJournal`. Each time takes a few hundred bytes. */
export function memoryWakeTimes(): WakeTimes {
  const times = new Map<string, number>();
  return {
    set(scope, at) {
      if (at === null) times.delete(scope);
      else times.set(scope, at);
    },
    earliest({ after, limit }) {
      // Does not sort all times: the caller wants a few of perhaps a hundred thousand.
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
