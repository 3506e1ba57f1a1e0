// What the checker found wrong, and the shortest way there.

import { OffstageError } from '../../values/errors.ts';
import type { Trace } from './trace.ts';

/** Which promise was broken. */
export type ViolationKind =
  | 'invariant'
  | 'step'
  | 'error'
  | 'deadlock'
  | 'finality'
  | 'end'
  | 'wait'
  | 'queue'
  | 'unhandled'
  | 'reachable'
  | 'replay';

/** A property that does not hold. */
export class Violation {
  readonly kind: ViolationKind;
  /** The name of the property, as the user gave it. */
  readonly property: string;
  /** One sentence. */
  readonly reason: string;
  /** A shortest path to it. Empty where none exists: nothing leads to what is not reachable. */
  readonly trace: Trace;
  readonly cause: unknown;

  constructor(
    kind: ViolationKind,
    property: string,
    reason: string,
    trace: Trace,
    cause?: unknown,
  ) {
    this.kind = kind;
    this.property = property;
    this.reason = reason;
    this.trace = trace;
    this.cause = cause;
  }

  toString(): string {
    const path = this.trace.steps.length === 0 ? '' : `\n${this.trace.toString()}`;
    const steps = this.trace.length === 1 ? '1 step' : `${this.trace.length} steps`;
    return `${this.property}: ${this.reason}${path === '' ? '' : ` (${steps})`}${path}`;
  }
}

/** Thrown for the first violation; its message is the whole trace. */
export class ViolationError extends OffstageError {
  declare readonly violation: Violation;

  constructor(name: string, violation: Violation) {
    super('PROPERTY_VIOLATED', `${name}: ${violation.toString()}`, { cause: violation.cause });
    // Not enumerable: whoever prints the error wants its message, not each world of the trace.
    Object.defineProperty(this, 'violation', { value: violation });
  }
}
