// A report is made once; each test asks it about one invariant.

import { expect } from 'vitest';
import { ViolationError, type CheckReport } from '../../../src/testing/check/index.ts';

/** What every check looks for without being asked. */
const always = [
  'no actor fails',
  'no deadlock',
  'nothing leaves a final state',
  'an end can always be reached',
] as const;

/** What a check does with a violation: a test of a fault wants the first, the others all. */
export type OnViolation = 'throw' | 'collect';

type AnyReport = Pick<CheckReport, 'checked' | 'violations'>;

function propertiesOf({ checked: { system } }: AnyReport): readonly string[] {
  const { invariants, steps, waits, reachable } = system;
  return [invariants, steps, waits, reachable].flatMap((named) => Object.keys(named ?? {}));
}

/**
 * Expects that the report has properties of this name, or that begin with `name:`, and that none
 * is violated. A violation is shown with its trace.
 */
export function holds(report: AnyReport, name: string): void {
  const isNamed = (property: string): boolean =>
    property === name || property.startsWith(`${name}:`);
  const named = [...propertiesOf(report), ...always].filter(isNamed);
  expect(named, `the properties named "${name}"`).not.toEqual([]);
  const broken = report.violations.filter(({ property }) => isNamed(property));
  expect(broken.map(String)).toEqual([]);
}

/** Expects that nothing at all is violated. */
export function holdsThroughout(report: AnyReport): void {
  expect(report.violations.map(String)).toEqual([]);
}

/** One line: how much was explored. */
export function announce(report: { toString(): string }): void {
  console.info(report.toString().split('\n', 1)[0]);
}

/** Expects that the check finds this first of all. */
export function catches(check: (onViolation: OnViolation) => unknown, property: string): void {
  let found: string | undefined;
  try {
    check('throw');
  } catch (error) {
    if (!(error instanceof ViolationError)) throw error;
    found = error.violation.property;
  }
  expect(found).toBe(property);
}

/** Expects that this is among what was found. */
export function finds({ violations }: AnyReport, property: string): void {
  expect(violations.map((violation) => violation.property)).toContain(property);
}
