// The suite's error for a broken promise.

import { OffstageError } from '../../values/errors.ts';

/** The transport, or the session on it, has broken a promise; the message names the promise and earlier events. */
export class ConformanceError extends OffstageError {
  constructor(message: string) {
    super('NOT_CONFORMANT', message);
  }
}
