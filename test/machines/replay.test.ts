// Replays the checked paths of each machine on real actors with real deadlines. The checks use XState's pure
// transition. The replay shows that running actors behave in the same way.

import { describe, expect, test } from 'vitest';
import type { QuestionSnapshot } from '../../src/machines/index.ts';
import { replay, type CheckReport } from '../../src/testing/check/index.ts';
import { checkInteraction } from './support/interaction-check.ts';
import { live, type LiveOptions } from './support/live.ts';
import { checkOutbox } from './support/outbox-check.ts';
import { checkQuestion, FOLLOWED_AT, HEARD_AT } from './support/question-check.ts';
import { checkSession } from './support/session-check.ts';
import { checkSubagent } from './support/subagent-check.ts';
import { checkToolCall } from './support/tool-call-check.ts';

interface Options extends LiveOptions {
  /** Replays only every n-th path. @defaultValue 1: replays every path */
  readonly every?: number;
}

/** Replays a shortest path to each transition of a check and expects the same states. */
async function agrees(report: unknown, { every = 1, ...options }: Options = {}): Promise<void> {
  const checked = report as CheckReport;
  const paths = [...checked.paths()].filter((_, index) => index % every === 0);
  const done = await replay(checked, { harness: live(checked, options), paths });
  console.info(
    `replayed ${checked.name}: ${done.paths} paths, ${done.steps} steps, ${done.skipped} impossible in real time`,
  );
  expect(done.paths).toBe(paths.length);
  expect(paths.length).toBeGreaterThan(10);
  // Several timers can run in a session, and two in a question. The check lets any of them fire first.
  expect(done.skipped).toBeLessThan(done.paths * 0.4);
}

describe('live actors on the checked paths', () => {
  test.each([
    ['calls', 3],
    ['messages', 13],
    ['budget', 13],
  ] as const)('subagent: %s', async (scope, every) => agrees(checkSubagent(scope), { every }));

  test('question', async () =>
    agrees(checkQuestion(), {
      every: 61,
      relative: ['question.followed', 'question.readBack'],
      // Converts the start of an utterance and the time at which the question was heard to times after the question
      // started to play.
      translate: (event, { context: { playingSince, ever } }: QuestionSnapshot, now) => {
        const { utteranceStartedAt, saidAt, channel, heardAt } = event;
        if (event.type === 'question.followed' || event['after'] === 'reply')
          return { ...event, at: FOLLOWED_AT + (playingSince ?? now) };
        if (event.type === 'question.readBack') return { ...event, at: now };
        if (typeof heardAt === 'number')
          return { ...event, heardAt: heardAt + (playingSince ?? now) };
        if (typeof utteranceStartedAt === 'number')
          return { ...event, utteranceStartedAt: utteranceStartedAt + (playingSince ?? 0) };
        if (typeof saidAt !== 'number') return event;
        const moments = channel === 'speech' ? [] : [ever?.shownAt];
        const [first = 0] = [...moments, ever?.playingSince]
          .filter((moment) => typeof moment === 'number')
          .toSorted((a, b) => a - b);
        const isAfterHearing = channel === 'speech' && saidAt === HEARD_AT;
        return {
          ...event,
          saidAt: Math.max(saidAt + first, isAfterHearing ? (ever?.heardAt ?? 0) : 0),
        };
      },
    }));

  test('interaction', async () => agrees(checkInteraction()));

  test('tool call', async () => agrees(checkToolCall(), { relative: ['call.talkedOver'] }));

  test('session', async () => agrees(checkSession(), { every: 7 }));

  // Ten thousand paths take too long for a test. A prime step selects some of each kind.
  test.each([
    ['two results and a question', 31],
    ['a result and the progress of one subagent', 7],
    ['notices that expire', 3],
  ])('outbox with %s', async (scope, every) => agrees(checkOutbox(undefined, scope), { every }));
});
