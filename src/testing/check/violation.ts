// A violation that the checker has found, and the shortest trace to it.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { OffstageError } from '../../values/errors.ts';
import type { Trace } from './trace.ts';

/** The kind of property that was violated. */
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
  /** The violation's kind. */
  readonly kind: ViolationKind;
  /** The name of the property, as given in the check. */
  readonly property: string;
  /** The reason, in one sentence. */
  readonly reason: string;
  /** A shortest path to the violation. Empty if no path leads there, for example for an unreachable state. */
  readonly trace: Trace;
  /** The error that the machine, a check or the implementation threw; undefined if none was thrown. */
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

  /** Returns the violation and its trace as text. */
  toString(): string {
    const path = this.trace.steps.length === 0 ? '' : `\n${this.trace.toString()}`;
    const steps = this.trace.length === 1 ? '1 step' : `${this.trace.length} steps`;
    return `${this.property}: ${this.reason}${path === '' ? '' : ` (${steps})`}${path}`;
  }
}

const argumentsSchema = z.tuple([
  z.string(),
  z.custom<Violation>(
    (value) =>
      value instanceof Violation && Array.isArray((value.trace as Trace | undefined)?.steps),
    'expected a Violation with a trace',
  ),
]);

/** Thrown for the first violation. The message contains the whole trace. */
export class ViolationError extends OffstageError {
  /** The violated property, with the path that leads to the violation. */
  declare readonly violation: Violation;

  /** @throws {ConfigurationError} `INVALID_ARGUMENT` */
  constructor(name: string, violation: Violation) {
    check(
      'new ViolationError(name, violation)',
      argumentsSchema,
      [name, violation],
      'INVALID_ARGUMENT',
    );
    super('PROPERTY_VIOLATED', `${name}: ${violation.toString()}`, { cause: violation.cause });
    // Not enumerable, so that a printed error shows its message instead of each world in the trace.
    Object.defineProperty(this, 'violation', { value: violation });
  }
}
