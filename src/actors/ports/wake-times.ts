// The port for the times at which sessions that are not in memory must be loaded.

/** The time of sessions in memory: they must be loaded as soon as the process that has them dies. */
export const AT_ONCE = 0;

/** The time at which a sleeping session is to be awake. */
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
 * - `set` returns (or resolves) only when the time is as durable as the entries of the sessions.
 * - There may be as many times as sessions; the implementation decides how many of them are in memory.
 * - Setting a time needs no permission: it only says that some process must load the session, which claims it
 *   first.
 * - Scopes with the same time have one fixed order: that of their bytes or of their code units.
 */
export interface WakeTimes {
  /** Sets the time at which the session must be loaded; null: never. The latest call counts. */
  set(scope: string, at: number | null): void | Promise<void>;
  /**
   * Returns the earliest times after `after`, ordered by time and then scope: `limit` of them, or all that
   * there are. With `exceptClaimed` the journal may omit scopes that a live process writes at the moment, as
   * far as it knows, so that a pool in search of unattended sessions need not try them; it must not omit any
   * other.
   */
  earliest(query: {
    /** @defaultValue from the earliest */
    readonly after?: WakeTime;
    readonly limit: number;
    /** @defaultValue false */
    readonly exceptClaimed?: boolean;
  }): readonly WakeTime[] | Promise<readonly WakeTime[]>;
  /**
   * Claims up to `limit` of the scopes whose time has come at `now` and that no live process writes, as
   * `Journal.claim` does, and returns them: of several processes that ask at the same time each gets others. A
   * scope that is not loaded then must be released. Absent: a pool claims what `earliest` finds, one by one.
   */
  take?(query: {
    readonly now: number;
    readonly limit: number;
    /** The scopes to pass over. */
    readonly except: readonly string[];
  }): Promise<readonly string[]>;
}

/** Compares two times in the order of `earliest`. */
export function inOrder(one: WakeTime, other: WakeTime): number {
  if (one.at !== other.at) return one.at - other.at;
  return one.scope < other.scope ? -1 : Number(one.scope > other.scope);
}

/**
 * Creates times that end with the process, as `memoryJournal` does. Some hundred bytes per session with a
 * time.
 */
export function memoryWakeTimes(): WakeTimes {
  const times = new Map<string, number>();
  return {
    set(scope, at) {
      if (at === null) times.delete(scope);
      else times.set(scope, at);
    },
    earliest({ after, limit }) {
      // Avoids sorting all: a few of a hundred thousand are requested.
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
