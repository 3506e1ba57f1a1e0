// Runs the cases of the journal conformance suite as vitest tests.

import { describe, test } from 'vitest';
import { journalConformance, type JournalConformanceSetup } from '../../../../src/testing/index.ts';

export function runJournalConformance(setup: JournalConformanceSetup): void {
  describe(`on ${setup.name}`, () => {
    for (const { name, skipped, run } of journalConformance(setup))
      test.skipIf(skipped !== null)(`case: ${name}`, run);
  });
}
