// The port to what outlives a process. What a commit unit accepts is appended
// before anything that follows from it is released.

/** One accepted input, completion, deadline or message of a commit unit. Plain JSON. */
export interface JournalEntry {
  /** Counts from 1 within the unit, without gaps. */
  readonly seq: number;
  /** When it was accepted; milliseconds since 1970. */
  readonly at: number;
  /** The session or subagent that accepted it. */
  readonly unit: string;
  /** Which actor of the unit it is for. */
  readonly actor: string;
  /** The version of the machine that accepted it; entries are never refolded across versions. */
  readonly definitionVersion: number;
  readonly event: { readonly type: string };
}

/**
 * Duties of an implementation: `append` returns (or resolves) only when the entry is
 * kept, and throws (or rejects) when it is not; entries of one unit keep their order.
 * Guarantee to it: a unit never has two appends under way, and tries a failed one again.
 */
export interface Journal {
  append(entry: JournalEntry): void | Promise<void>;
  /** The entries that are still kept, of one unit or of all, oldest first. */
  read(unit?: string): readonly JournalEntry[] | Promise<readonly JournalEntry[]>;
}
