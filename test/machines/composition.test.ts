// Checks the machines together, under every interleaving of the possible events.

import { describe, expect, test } from 'vitest';
import { checkQuestions, type QuestionsOptions } from './support/questions-system.ts';
import { checkSpeech, type SpeechOptions } from './support/speech-system.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

const patience = { timeout: 120_000 };

describe(
  'subagents, questions and interaction keep their properties in separate transactions',
  patience,
  () => {
    const scopes: readonly (readonly [name: string, options: QuestionsOptions])[] = [
      ['two subagents, in full', { subagents: { a: 1, b: 1 } }],
      [
        'two subagents, one asks again, 2 messages in flight',
        { subagents: { a: 2, b: 1 }, maxInFlight: 2 },
      ],
      [
        'two subagents whose messages may arrive twice, 3 in flight',
        { subagents: { a: 1, b: 1 }, maxInFlight: 3, duplicates: true },
      ],
      [
        'two subagents that messages interrupt, 2 messages in flight',
        { subagents: { a: 1, b: 1 }, maxInFlight: 2, interrupted: true },
      ],
      [
        'two subagents, one asks beside the floor, 2 messages in flight',
        { subagents: { a: 1, b: 1 }, maxInFlight: 2, beside: ['a'] },
      ],
      [
        'three subagents, 2 messages in flight',
        { subagents: { a: 1, b: 1, c: 1 }, maxInFlight: 2 },
      ],
    ];

    test.each(scopes)('%s', (_name, options) => {
      const report = checkQuestions(options);
      announce(report);
      // One owner at a time, in the order of the requests; the right answer to the right question; a single end.
      holds(report, 'P1');
      holds(report, 'P2');
      holds(report, 'P3');
      // No subagent starves, and no machine hangs.
      holds(report, 'an end can always be reached');
      holds(report, 'no deadlock');
      holdsThroughout(report);
      // Some messages were sent to an actor that had ended, and none was accepted.
      expect(report.untaken.some(({ outcome }) => outcome === 'ended')).toBe(true);
    });
  },
);

describe(
  'outbox and session preserve their properties with a question, tool calls and a lead agent',
  patience,
  () => {
    const scopes: readonly (readonly [name: string, options: SpeechOptions])[] = [
      [
        '2 results, 1 question, 1 barge-in, 1 detach',
        { together: 'unit', mishaps: ['bargeIn', 'detach'] },
      ],
      [
        '2 results, 1 question, each said at once, 1 barge-in, 1 detach',
        { together: 'unit', quietMs: 0, mishaps: ['bargeIn', 'detach'] },
      ],
      [
        '1 result, 1 question, the lead agent speaks of something else, 1 barge-in, 1 detach',
        { together: 'unit', results: 1, mishaps: ['reply', 'bargeIn', 'detach'] },
      ],
      [
        '2 results, 1 barge-in, something urgent, a failed response',
        { together: 'unit', asks: false, mishaps: ['bargeIn', 'urgent', 'failure'] },
      ],
      [
        '1 result, a lost connection, a detach, something urgent, a failure, a timeout',
        {
          together: 'unit',
          results: 1,
          asks: false,
          mishaps: ['loss', 'detach', 'urgent', 'failure', 'timeout'],
        },
      ],
      [
        '2 results of one batch, 1 barge-in, 1 detach',
        { together: 'unit', asks: false, consolidates: true, mishaps: ['bargeIn', 'detach'] },
      ],
      [
        '2 results of one batch, something urgent, a failure, a timeout',
        {
          together: 'unit',
          asks: false,
          consolidates: true,
          mishaps: ['urgent', 'failure', 'timeout'],
        },
      ],
      [
        'no two in one transaction: 1 result, 1 barge-in, 1 detach',
        {
          together: 'spread',
          maxInFlight: 2,
          results: 1,
          asks: false,
          mishaps: ['bargeIn', 'detach'],
        },
      ],
      [
        'no two in one transaction: 1 result, said at once, 1 barge-in, something urgent, a failure',
        {
          together: 'spread',
          maxInFlight: 2,
          results: 1,
          asks: false,
          quietMs: 0,
          mishaps: ['bargeIn', 'urgent', 'failure'],
        },
      ],
      [
        'no two in one transaction: 1 result, 1 barge-in, something urgent, a failed response',
        {
          together: 'spread',
          maxInFlight: 2,
          results: 1,
          asks: false,
          mishaps: ['bargeIn', 'urgent', 'failure'],
        },
      ],
    ];

    test.each(scopes)('%s', (_name, options) => {
      const report = checkSpeech(options);
      announce(report);
      // An utterance answers the last question. No delivery is lost. Deliveries come one at a time, from an open gate.
      // An item that has been heard was spoken in this attempt.
      holds(report, 'P3');
      holds(report, 'P4');
      holds(report, 'OUTBOX-1');
      holds(report, 'OUTBOX-2');
      holds(report, 'OUTBOX-3');
      holds(report, 'OUTBOX-6');
      holds(report, 'SESSION-UNIT-2');
      // Everything can still be spoken from every state.
      holds(report, 'an end can always be reached');
      holdsThroughout(report);
    });
  },
);
