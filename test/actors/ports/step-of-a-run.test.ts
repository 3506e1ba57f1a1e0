// A worker refuses a step of a whole run. The step was not started and does not count as lost.

import { expect, test } from 'vitest';
import { doStep, type Job, type JobHandler } from '../../../src/actors/ports/jobs.ts';

const refuses: JobHandler = {
  do: () =>
    Promise.resolve({ refused: { code: 'NOT_RECOVERABLE', message: 'no tool "pay" here' } }),
};
const step = (once: boolean): Job => ({ key: 'run/1/0', name: 'pay', once, body: '{}' });
const { signal } = new AbortController();

test('JOBS-8: rejects with a retryable error, so that another worker can run the step', async () => {
  await expect(doStep(refuses, step(false), signal)).rejects.toMatchObject({
    code: 'NOT_RECOVERABLE',
    message: 'no tool "pay" here',
    retryable: true,
  });
});

test("JOBS-8: fails with the worker's reason if the step must not be repeated", async () => {
  expect(await doStep(refuses, step(true), signal)).toEqual({
    failed: { code: 'NOT_RECOVERABLE', message: 'no tool "pay" here', retryable: false },
  });
});

test("returns the handler's result", async () => {
  const ends: JobHandler = { do: () => Promise.resolve({ done: '1' }) };
  expect(await doStep(ends, step(true), signal)).toEqual({ done: '1' });
});
