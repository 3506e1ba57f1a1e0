// The stage that the author of a journal supplies for the suite.

import type { Journal } from '../../actors/ports/journal.ts';

/**
 * A journal's capabilities beyond `append` and `read`.
 * - `scopes`, `trim`, `forget`: the journal has these methods.
 * - `wakeTimes`, `desk`: the journal has this property.
 * - `claim`: the journal has `claim` and `release`, and its stages have `another` and `expire`.
 * - `reopen`: the journal's stages have `reopen`.
 */
export type JournalFeature =
  | 'scopes'
  | 'readAfter'
  | 'trim'
  | 'forget'
  | 'claim'
  | 'reopen'
  | 'wakeTimes'
  | 'desk';

/** A new store for one case, with a process that writes to it. */
export interface JournalStage {
  /** The journal under test. */
  readonly journal: Journal;
  /**
   * Simulates a crash: the process and its pending writes are gone. Returns the journal of another process that opens
   * the same store. The old journal is not used any more.
   */
  reopen?(): Journal | Promise<Journal>;
  /** Opens a second process on the same store while the first one keeps running. */
  another?(): Journal | Promise<Journal>;
  /**
   * Resolves when the claims of the first process have expired because it showed no activity. The process may keep
   * running until then, but must no longer renew its claims.
   */
  expire?(): void | Promise<void>;
  /** Called at the end of each case, whatever its outcome. */
  close?(): void | Promise<void>;
}

/** A journal to test. */
export interface JournalConformanceSetup {
  /** The name of the journal, which appears in the titles of the cases. */
  readonly name: string;
  /** The journal's optional features. */
  readonly offers: readonly JournalFeature[];
  /** Creates a stage with an empty store. */
  open(): JournalStage | Promise<JournalStage>;
}
