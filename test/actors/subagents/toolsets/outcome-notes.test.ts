import { describe, expect, test } from 'vitest';
import { outcomeNotes } from '../../../../src/actors/subagents/toolsets/parent-views.ts';
import type { Outcome } from '../../../../src/actors/contracts/outcome.ts';

const outcome: Outcome = {
  status: 'completed',
  output: 'x',
  text: 'x',
  steps: 1,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  toolLedger: [],
};

describe('the notes that a parent’s model gets with a result', { tags: ['R27', 'R32'] }, () => {
  test('stay empty if there is nothing to report', () => {
    expect(outcomeNotes(null)).toEqual({});
    expect(outcomeNotes(outcome)).toEqual({});
    const verification = {
      verified: true,
      claims: ['I sent it.'],
      unverified: [],
      incomplete: false,
    };
    expect(outcomeNotes({ ...outcome, notes: [], verification })).toEqual({});
  });

  test(
    'name unconfirmed claims, an unfinished end, and the keys of further results',
    { tags: ['R33'] },
    () => {
      expect(
        outcomeNotes({
          ...outcome,
          notes: ['subagent/a/table'],
          verification: {
            verified: false,
            claims: ['I sent it.', 'I saved it.'],
            unverified: [
              { claim: 'I sent it.', reason: 'no_call' },
              { claim: 'I saved it.', reason: 'failed', toolName: 'save' },
            ],
            incomplete: true,
          },
        }),
      ).toEqual({
        caveats: [
          'The subagent says "I sent it."; the runtime has no record of it.',
          'The subagent says "I saved it."; its call of save did not succeed.',
          'It ends where work was about to begin: the work may not be finished.',
        ],
        workingMemory: ['subagent/a/table'],
      });
    },
  );
});
