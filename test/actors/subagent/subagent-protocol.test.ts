import { expect, test } from 'vitest';
import type { SubagentUnitEvent } from '../../../src/actors/subagent/subagent-events.ts';

test('types each subagent event with its own fields', () => {
  const events: readonly SubagentUnitEvent[] = [
    { type: 'question.expired', requestId: 'q' },
    { type: 'subagent.cancel', reason: 'no longer wanted' },
    // @ts-expect-error: an event that does not exist.
    { type: 'question.expird', requestId: 'q' },
    // @ts-expect-error: an event of a session.
    { type: 'session.close' },
    // @ts-expect-error: the log keeps an outcome, which the machine does not read.
    { type: 'tool.settled', step: 1, callId: 'c' },
    // @ts-expect-error: a field has another type.
    { type: 'subagent.cancel', reason: 1 },
    // @ts-expect-error: a field that the event does not have.
    { type: 'question.expired', requestId: 'q', answer: null },
  ];
  expect(events).toHaveLength(7);
});
