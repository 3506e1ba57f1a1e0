// The error of the suite when a promise is not kept.

import { OffstageError } from '../../values/errors.ts';

/**
 * The transport, or the session on it, breaks a promise; the message names the promise and the events that
 * led to it.
 */
export class ConformanceError extends OffstageError {
  constructor(message: string) {
    super('NOT_CONFORMANT', message);
  }
}
