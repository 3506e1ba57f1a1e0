// What the suite throws when a promise is not kept.

import { OffstageError } from '../../values/errors.ts';

/** The transport, or the session on it, does not keep what is promised; the message says what, and how it came about. */
export class ConformanceError extends OffstageError {
  constructor(message: string) {
    super('NOT_CONFORMANT', message);
  }
}
