// Random trees of subagents: chance decides what their models do, which outside events happen, how long everything
// takes and what fails. The promises hold in every case.
//
// 10,000 cases in three tests. TREE_RUNS and TREE_SEED set other values.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { play } from '../support/tree-play.ts';
import { storyOf, type Scene } from '../support/tree-story.ts';

const RUNS = Number(process.env['TREE_RUNS'] ?? 10_000);
const SEED = Number(process.env['TREE_SEED'] ?? 20_261_121);

/** How often each event must occur in a thousand cases. With fewer occurrences, the test proves nothing. */
const everywhere = {
  spawned: 500,
  'model calls': 1000,
  'tools ran': 20,
  'handed over': 40,
  waiting_for_input: 100,
  waiting_for_children: 100,
  'kept out': 50,
  checked: 5,
  killed: 5,
  reported: 20,
  waited: 50,
  'cycles refused': 5,
  'inputs answered': 5,
  'inputs expired': 20,
  'parents answered': 5,
  'message.applied': 20,
  'message.refused': 5,
  'interrupt sent': 10,
  'queue sent': 10,
  'steer sent': 10,
  cancelled: 10,
  hung: 10,
  'models failed': 20,
  'models hung': 20,
  'closed at work': 5,
  'journal broke': 20,
  'ended: completed': 200,
  'ended: cancelled': 50,
  'ended: failed': 100,
  'ended: timed_out': 20,
  'handed in at the last step': 20,
  'refused: SESSION_LIMIT': 10,
  'refused: DEPTH_EXCEEDED': 20,
  'refused: TOOL_NOT_ALLOWED': 10,
  'refused: BUDGET_EXCEEDED': 5,
};
const asked = {
  'questions asked': 100,
  'questions answered': 20,
  'questions expired': 20,
  'questions withdrawn': 10,
  'approvals asked': 20,
  'approved tools ran': 2,
  'clicks accepted': 5,
  'clicks refused': 20,
  detached: 20,
  utterances: 100,
};

const scenes: readonly [scene: Scene, share: number, happens: Readonly<Record<string, number>>][] =
  [
    ['text', 0.15, { ...everywhere, ...asked }],
    ['voice', 0.3, { ...everywhere, ...asked, 'barge-ins': 50 }],
    [
      'program',
      0.5,
      { ...everywhere, 'program asked': 100, 'approved tools ran': 10, informed: 10 },
    ],
  ];

test.each(scenes)(
  'P1, P2, P3, P5, P7, P8: keeps the promises for random trees, in %s',
  { timeout: 600_000 },
  async (scene, share, happens) => {
    const counts = new Map<string, number>();
    const numRuns = Math.ceil(RUNS * share);
    await fc.assert(
      fc.asyncProperty(storyOf(scene), (story) => play(story, scene, counts)),
      { numRuns, seed: SEED },
    );
    const tooSeldom = Object.entries(happens).flatMap(([what, often]) => {
      const least = Math.floor((often * numRuns) / 1000);
      const times = counts.get(what) ?? 0;
      return times < least ? [`${what}: ${times}, expected ${least}`] : [];
    });
    expect(tooSeldom).toEqual([]);
  },
);
