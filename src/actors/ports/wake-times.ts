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
 */
export interface WakeTimes {
  /** The session must be looked at then; null: never. The latest word counts. */
  set(scope: string, at: number | null): void | Promise<void>;
  /** The earliest ones behind `after`, at most `limit`; in the order of their times, and of their scopes. */
  earliest(query: {
    /** @defaultValue from the first one on */
    readonly after?: WakeTime;
    readonly limit: number;
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
    earliest: ({ after, limit }) =>
      [...times]
        .map(([scope, at]) => ({ scope, at }))
        .filter((time) => after === undefined || inOrder(time, after) > 0)
        .sort(inOrder)
        .slice(0, limit),
  };
}
