// The port for the desk: an index, over all sessions of a store, of the things that wait.

/** A thing that waits in a session. */
export interface DeskRow {
  /** Selects rows in `find`. */
  readonly kind: string;
  /** Identifies the row within its scope, whatever its kind. */
  readonly id: string;
  /** Since when it has been waiting, in milliseconds since 1970. It never changes. */
  readonly since: number;
  /** The identities that may answer; null if any identity may. */
  readonly answerableBy: readonly string[] | null;
  /** The rest, as JSON. `encryptedJournal` encrypts it, and the identities. */
  readonly body: string;
}

/** A row that was found. */
export type FoundDeskRow = Pick<DeskRow, 'id' | 'since' | 'body'> & { readonly scope: string };

/** The rows that `find` selects, and how many it returns. */
export interface DeskQuery {
  /** Selects the rows of these kinds. */
  readonly kinds: readonly string[];
  /** Selects the rows that at least one of these identities may answer. @defaultValue all rows */
  readonly answerableBy?: readonly string[];
  /** @defaultValue from the row that has been waiting longest */
  readonly after?: Omit<FoundDeskRow, 'body'>;
  /** The largest number of rows that `find` returns, at least 1. */
  readonly limit: number;
}

/**
 * Stores what waits in each session. The sessions' entries contain the same data, so a pool writes the rows of a
 * session again whenever it loads the session.
 *
 * Duties of an implementation
 * - `set` returns (or resolves) only after the rows are as durable as the sessions' entries. It replaces all rows of the
 *   scope or, if it fails, none.
 * - If `claim` exists, a process that is not the scope's writer is refused (`FENCED`). Such a process may remove the
 *   rows of a scope that no process is writing.
 * - `find` reads only about as many rows as it returns, however many there are.
 * - `forget` deletes the rows of the scope.
 */
export interface Desk {
  /** Replaces the rows of a scope. */
  set(scope: string, rows: readonly DeskRow[]): void | Promise<void>;
  /**
   * Returns the rows after `after`, ordered by `since`, then scope, then id: `limit` of them, or all if there are fewer.
   * Scopes and ids have a fixed order: by bytes or by code units.
   */
  find(query: DeskQuery): readonly FoundDeskRow[] | Promise<readonly FoundDeskRow[]>;
}

type Place = NonNullable<DeskQuery['after']>;

function inOrder(one: Place, other: Place): number {
  if (one.since !== other.since) return one.since - other.since;
  if (one.scope !== other.scope) return one.scope < other.scope ? -1 : 1;
  return one.id < other.id ? -1 : Number(one.id > other.id);
}

/** Creates a desk that is lost when the process ends, like `memoryJournal`. */
export function memoryDesk(): Desk {
  const scopes = new Map<string, readonly (FoundDeskRow & DeskRow)[]>();
  return {
    set(scope, rows) {
      if (rows.length === 0) scopes.delete(scope);
      else
        scopes.set(
          scope,
          rows.map((row) => ({ ...row, scope })),
        );
    },
    find: ({ kinds, answerableBy, after, limit }) =>
      [...scopes.values()]
        .flat()
        .filter(
          (row) =>
            kinds.includes(row.kind) &&
            (after === undefined || inOrder(row, after) > 0) &&
            (answerableBy === undefined ||
              row.answerableBy === null ||
              row.answerableBy.some((name) => answerableBy.includes(name))),
        )
        .toSorted(inOrder)
        .slice(0, limit)
        .map(({ scope, id, since, body }) => ({ scope, id, since, body })),
  };
}
