// Runs the cases of the conformance suite as vitest tests.

import { describe, test } from 'vitest';
import { transportConformance, type ConformanceSetup } from '../../../../src/testing/index.ts';

export function runConformance(setup: ConformanceSetup): void {
  describe(`on ${setup.name}`, () => {
    for (const { name, skipped, run } of transportConformance(setup))
      test.skipIf(skipped !== null)(`case: ${name}`, run);
  });
}
