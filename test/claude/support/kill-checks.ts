// The checks after random kills of Claude Code, or of the program that it works for.

import { join } from 'node:path';
import { expect } from 'vitest';
import { sweep } from '../../../src/adapters/agent-process/agent-process.ts';
import { count, linesOf, processesIn, type Played } from '../../support/relay-kills.ts';
import type { MessagesEndpoint } from './messages-endpoint.ts';

/** The end of a program that asked for two permissions and a question, however often it and Claude were killed. */
export function expectHeld(
  { folder, told, outcome }: Played,
  { results }: MessagesEndpoint,
  marks: string,
): void {
  expect(outcome).toMatchObject({
    status: 'completed',
    // In the end Claude was asked for everything, and the user was.
    text: expect.stringMatching(/^denied\. Done\.$/) as string,
  });
  // Nobody but the user gives a permission, and each is used once.
  const done = linesOf(join(folder, 'agent.log'));
  expect(done.filter(({ detail }) => detail !== '{"path":"a"}')).toEqual([]);
  expect(done.length).toBeLessThanOrEqual(count(told, 'approved'));
  // Each answer went to its question.
  const answers = results.filter((result) => result.startsWith('answer: '));
  expect(new Set(answers)).toEqual(new Set(['answer: about Which one?. ']));
  expect(results.filter((result) => result.startsWith('unexpected'))).toEqual([]);
  // Nothing is left running.
  sweep(marks);
  expect(processesIn(marks)).toEqual([]);
}
