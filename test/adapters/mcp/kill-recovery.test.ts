// A subagent on an MCP server's tool, whose program is killed at random (RELAY-LOOP-1..3, MCP-RELAY-1). The task
// continues at the server and is found again by its id. No permission is given without the user, and no answer reaches
// another question.

import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { count, KILL_TIMEOUT_MS, playKills, SEEDS } from '../../support/relay-kills.ts';
import { actingServer } from './support/acting-server.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

describe.each(['2025-11-25', '2026-07-28'] as const)('MCP %s', (protocol) => {
  test.each(SEEDS)(
    'completes a run despite random kills (seed %i)',
    { timeout: KILL_TIMEOUT_MS },
    async (seed) => {
      const server = await actingServer({ protocol });
      onTestFinished(() => server.close());
      await playKills(
        { seed, program: PROGRAM, args: [server.url, protocol] },
        ({ told, outcome }) => {
          expect(outcome).toMatchObject({ status: 'completed' });
          expect(outcome.text).toMatch(/denied\. Done\.$/);
          // Only the user gives permissions, and each is used once.
          const given = server.answers.filter((answer) => answer.includes('"allow":true'));
          expect(given.every((answer) => answer.startsWith('Pay => '))).toBe(true);
          expect(given.length).toBeLessThanOrEqual(count(told, 'approved'));
          // Each answer reached its question.
          const answered = server.answers.filter((answer) => answer.includes('"answer":'));
          for (const answer of answered) {
            const [question = '', result = ''] = answer.split(' => ');
            expect(JSON.parse(result)).toMatchObject({ content: { answer: `about ${question}` } });
          }
          if (protocol === '2025-11-25') {
            expect(answered.length).toBeGreaterThanOrEqual(2);
            return;
          }
          // There is one task, unless its id was lost with the process, and each answer arrived once.
          expect(server.answers.slice(-4)).toEqual([
            'Pay => {"action":"accept","content":{"allow":true}}',
            'First question? => {"action":"accept","content":{"answer":"about First question?"}}',
            'Second question? => {"action":"accept","content":{"answer":"about Second question?"}}',
            'Share => {"action":"accept","content":{"allow":false}}',
          ]);
          expect(server.answers).toHaveLength(4);
        },
      );
    },
  );
});
