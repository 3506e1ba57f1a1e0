// The result of a check.

import type { RunRecord } from '../log/log.ts';

/** A promise that was broken. */
export interface Broken {
  /** `P1` to `P10`, `LIVE` if some work never ended, or the name of one of the app's own promises. */
  readonly promise: string;
  /** A sentence. */
  readonly what: string;
}

/** Finds the violations of a promise. */
export type PromiseCheck = (record: RunRecord) => Iterable<Broken>;
