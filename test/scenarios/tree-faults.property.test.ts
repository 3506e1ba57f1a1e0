// The checks on random trees find each planted fault within a few hundred cases.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faults } from '../support/tree-faults.ts';
import { play } from '../support/tree-play.ts';
import { storyOf } from '../support/tree-story.ts';

/** The number of cases within which each fault is found. */
const MOST_CASES = 300;

test.each(faults.map((fault) => [fault.name, fault] as const))(
  'the checks find the planted fault: %s',
  { timeout: 120_000 },
  async (_, { scene, breaks, plant }) => {
    const takeOut = plant();
    try {
      const found = await fc.check(
        fc.asyncProperty(storyOf(scene), (story) => play(story, scene, new Map())),
        { numRuns: MOST_CASES, seed: 5, endOnFailure: true },
      );
      const { message } = (found.errorInstance ?? new Error('nothing was found')) as Error;
      expect(breaks).toContain(message.split(':')[0]);
    } finally {
      takeOut();
    }
  },
);
