// Each report is created once, and each test checks one invariant in it.

import { expect } from 'vitest';
import { ViolationError, type CheckReport } from '../../../src/testing/check/index.ts';

/** The properties of every check. */
const always = [
  'no actor fails',
  'no deadlock',
  'nothing leaves a final state',
  'an end can always be reached',
] as const;

/** How a violation is handled: the test of a fault needs the first violation, and the other tests need all. */
export type OnViolation = 'throw' | 'collect';

type AnyReport = Pick<CheckReport, 'checked' | 'violations'>;

function propertiesOf({ checked: { system } }: AnyReport): readonly string[] {
  const { invariants, steps, waits, reachable } = system;
  return [invariants, steps, waits, reachable].flatMap((named) => Object.keys(named ?? {}));
}

/**
 * Expects that the report has properties with this name or with the prefix `name:`, and that none of them is violated.
 * Shows a violation with its trace.
 */
export function holds(report: AnyReport, name: string): void {
  const isNamed = (property: string): boolean =>
    property === name || property.startsWith(`${name}:`);
  const named = [...propertiesOf(report), ...always].filter(isNamed);
  expect(named, `the properties named "${name}"`).not.toEqual([]);
  const broken = report.violations.filter(({ property }) => isNamed(property));
  expect(broken.map(String)).toEqual([]);
}

/** Expects no violation at all. */
export function holdsThroughout(report: AnyReport): void {
  expect(report.violations.map(String)).toEqual([]);
}

/** Prints one line that shows how much was explored. */
export function announce(report: { toString(): string }): void {
  console.info(report.toString().split('\n', 1)[0]);
}

/** Expects that the check finds this violation first. */
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

/** Expects this violation among the findings. */
export function finds({ violations }: AnyReport, property: string): void {
  expect(violations.map((violation) => violation.property)).toContain(property);
}
