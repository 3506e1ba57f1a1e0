// The suite's error for a broken promise.

import { OffstageError } from '../../values/errors.ts';

/** The transport, or the session on it, breaks a promise; the message names the promise and the preceding events. */
export class ConformanceError extends OffstageError {
  constructor(message: string) {
    super('NOT_CONFORMANT', message);
  }
}
