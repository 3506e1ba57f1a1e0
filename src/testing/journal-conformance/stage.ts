// The stage that the owner of a journal supplies for the suite.

import type { Journal } from '../../actors/ports/journal.ts';

/**
 * Capabilities of a journal beyond `append` and `read`.
 * - `scopes`, `trim`, `forget`: it has these methods.
 * - `wakeTimes`: it has this property.
 * - `claim`: it has `claim` and `release`, and its stages have `another` and `expire`.
 * - `reopen`: its stages have `reopen`.
 */
export type JournalFeature =
  | 'scopes'
  | 'readAfter'
  | 'trim'
  | 'forget'
  | 'claim'
  | 'reopen'
  | 'wakeTimes';

/** A fresh store for one case, with a process that writes to it. */
export interface JournalStage {
  readonly journal: Journal;
  /**
   * A crash: the process is gone, with all writes that it was about to make. Returns the journal of another
   * process that opens the same store. The old journal is not used any more.
   */
  reopen?(): Journal | Promise<Journal>;
  /** A second process on the same store, beside the first one. */
  another?(): Journal | Promise<Journal>;
  /**
   * Resolves when the first process's claims have expired because it has shown no sign of life. Until then it
   * may continue; it must not renew them any more.
   */
  expire?(): void | Promise<void>;
  /** Called at the end of each case, however it ends. */
  close?(): void | Promise<void>;
}

/** A journal to test. */
export interface JournalConformanceSetup {
  /** The name in the titles of the cases. */
  readonly name: string;
  readonly offers: readonly JournalFeature[];
  /** Sets a stage. The store is empty. */
  open(): JournalStage | Promise<JournalStage>;
}
