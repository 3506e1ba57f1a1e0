// A host for units that are only looked at: time stands still, nothing is waited for, nothing
// is written down, and nobody carries out what their effects would be.

import type { UnitBody } from '../runtime/commit-unit.ts';
import { createHost, type Host } from '../runtime/host.ts';

/** `at`: when what is looked at begins; the times after that are those of its entries. */
export function replayHost(at: number): Host {
  return createHost({
    environment: {
      clock: { now: () => at },
      scheduler: { schedule: () => () => {}, yieldThen: () => {} },
      ids: { next: (prefix) => `${prefix}_replay` },
      random: { next: () => 0 },
    },
    journal: { append() {}, read: () => [] },
  });
}

/** What a unit that is only looked at does with what follows: nothing. */
export const nothingFollows = {
  release() {},
  crashed() {},
  journalRefused() {},
} satisfies Partial<UnitBody>;
