// The checks after random kills of Claude Code, or of the program that uses it.

import { join } from 'node:path';
import { expect } from 'vitest';
import { sweep } from '../../../src/adapters/agent-process/agent-process.ts';
import { count, linesOf, processesIn, type Played } from '../../support/relay-kills.ts';
import type { MessagesEndpoint } from './messages-endpoint.ts';

/** Checks the outcome of a program that asked for two permissions and a question, after any number of kills. */
export function expectHeld(
  { folder, told, outcome }: Played,
  { results }: MessagesEndpoint,
  marks: string,
): void {
  expect(outcome).toMatchObject({
    status: 'completed',
    // By the end, Claude has performed every act, and the user has answered every question.
    text: expect.stringMatching(/^denied\. Done\.$/) as string,
  });
  // Only the user gives permissions, and each permission is used once.
  const done = linesOf(join(folder, 'agent.log'));
  expect(done.filter(({ detail }) => detail !== '{"path":"a"}')).toEqual([]);
  expect(done.length).toBeLessThanOrEqual(count(told, 'approved'));
  // Each answer reached its question.
  const answers = results.filter((result) => result.startsWith('answer: '));
  expect(new Set(answers)).toEqual(new Set(['answer: about Which one?. ']));
  expect(results.filter((result) => result.startsWith('unexpected'))).toEqual([]);
  // No process is still running.
  sweep(marks);
  expect(processesIn(marks)).toEqual([]);
}
