// The port to when sessions that are not in memory must be looked at.

export interface WakeTime {
  /** The id of the session. */
  readonly scope: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Duties of an implementation
 * - `set` returns (or resolves) only when it is kept as safely as the entries of the sessions are.
 * - Times of as many sessions as there are; what is in memory of them is the implementation's choice.
 * - Whoever may set a time is not asked: it says only that somebody must look, and who looks claims first.
 * - Scopes of the same time are in one order, always: that of their bytes or of their code units.
 */
export interface WakeTimes {
  /** The session must be looked at then; null: never. The latest word counts. */
  set(scope: string, at: number | null): void | Promise<void>;
  /**
   * The earliest ones behind `after`, in the order of their times, and of their scopes: as many as `limit`, or all
   * that there are. With `exceptClaimed` those that some process writes at the moment may be left out, as
   * far as the journal knows who shows signs of life: whoever looks for sessions that nobody sees to need
   * not try them. Never any other.
   */
  earliest(query: {
    /** @defaultValue from the first one on */
    readonly after?: WakeTime;
    readonly limit: number;
    /** @defaultValue false */
    readonly exceptClaimed?: boolean;
  }): readonly WakeTime[] | Promise<readonly WakeTime[]>;
}

/** The order in which `earliest` gives them. */
export function inOrder(one: WakeTime, other: WakeTime): number {
  if (one.at !== other.at) return one.at - other.at;
  return one.scope < other.scope ? -1 : Number(one.scope > other.scope);
}

/** Times that end with the process, as `memoryJournal` does. Some hundred bytes for each session that has one. */
export function memoryWakeTimes(): WakeTimes {
  const times = new Map<string, number>();
  return {
    set(scope, at) {
      if (at === null) times.delete(scope);
      else times.set(scope, at);
    },
    earliest({ after, limit }) {
      // Not all are sorted: of a hundred thousand a few are asked for.
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
