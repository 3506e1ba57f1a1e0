// What a check says.

import type { RunRecord } from '../log/log.ts';

/** A promise that was not kept. */
export interface Broken {
  /** `P1` to `P9`; `LIVE`: something never came to an end; or a name of an app's own. */
  readonly promise: string;
  /** A sentence. */
  readonly what: string;
}

/** Looks for what breaks a promise. */
export type PromiseCheck = (record: RunRecord) => Iterable<Broken>;
