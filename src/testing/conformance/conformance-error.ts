// The error of the suite for a promise that is not kept.

import { OffstageError } from '../../values/errors.ts';

/** The transport, or the session on it, breaks a promise; the message names the promise and the events before. */
export class ConformanceError extends OffstageError {
  constructor(message: string) {
    super('NOT_CONFORMANT', message);
  }
}
