// A settlement takes effect in the session once per call, even if the call is repeated after a crash.

import { expect, test } from 'vitest';
import {
  LATER_MS,
  questionSettled,
} from '../../../../src/actors/session/questions/settle-question.ts';
import { SessionRecords } from '../../../../src/actors/session/state/session-records.ts';
import type { SessionUnit } from '../../../../src/actors/session/unit/session-unit.ts';

test('SETTLE-3: does not postpone a question again when the settling call is repeated', () => {
  const records = new SessionRecords('lead');
  records.fold({
    kind: 'questions',
    id: '',
    event: {
      type: 'question.asked',
      requestId: 'q1',
      subagentId: 's1',
      subagentName: 'ride',
      kind: 'question',
      question: 'Which ride?',
      options: [],
      timeoutMs: 1000,
      at: 0,
    },
  });
  const posted: string[] = [];
  const unit = {
    post: (name: string) => posted.push(name),
    questions: { stateOf: () => ({ value: 'open', context: {}, done: false }) },
  };
  const settle = (callId: string, at: number) =>
    questionSettled(records, unit as unknown as SessionUnit, {
      type: 'question.settled',
      callId,
      utteranceId: 'u1',
      requestId: 'q1',
      action: 'later',
      quote: 'later',
      at,
    });
  const actor = 'question:q1';
  expect(settle('c1', 1000)).toEqual([
    { actor, event: { type: 'question.hold', remindAt: 1000 + LATER_MS } },
  ]);
  expect(settle('c1', 9000)).toEqual([]);
  expect(settle('c2', 9000)).toHaveLength(1);
  // The repeated call is also answered.
  expect(posted).toHaveLength(3);
});
