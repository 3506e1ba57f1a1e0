// The result of a check.

import type { RunRecord } from '../log/log.ts';

/** A promise that was not kept. */
export interface Broken {
  /** `P1` to `P10`; `LIVE`: some work never ended; or the name of an app promise. */
  readonly promise: string;
  /** A sentence. */
  readonly what: string;
}

/** Finds a promise's violations. */
export type PromiseCheck = (record: RunRecord) => Iterable<Broken>;
