// From the user's answer to the next model step of the subagent that asked: once when it is the only one, and once
// when 1,000 others of its session wait for their turn to ask.

import { createRuntime } from '../../src/index.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { askingModel, openDesk, parkBare } from '../lib/desk.ts';
import { settled, until } from '../lib/process.ts';
import { p50p99 } from '../lib/statistics.ts';

const WARM_UP = 50;
const SAMPLES = 300;

/** Repeatedly measures the time from `answer` to the model's second step. */
async function latency(answer: () => void, stepped: () => number | null): Promise<number> {
  await settled();
  const begin = performance.now();
  answer();
  await until(() => stepped() !== null, 'the next model step');
  return (stepped() ?? NaN) - begin;
}

async function offstage(n: number): Promise<Numbers> {
  const runtime = createRuntime({ maxTotalActive: 1000 });
  let steppedAt: number | null = null;
  const model = askingModel((done) => {
    if (done === 1) steppedAt = performance.now();
  });
  const desk = await openDesk(runtime, model, 2000);
  // More subagents wait at the beginning, so that `n` still wait at the end.
  if (n > 1) await desk.start(n + WARM_UP + SAMPLES);
  const samples: number[] = [];
  for (let round = 0; round < WARM_UP + SAMPLES; round += 1) {
    if (n === 1) await desk.start(1);
    await until(() => desk.open() !== undefined, 'an open question');
    const requestId = desk.open()?.requestId ?? '';
    steppedAt = null;
    const taken = await latency(
      () => void desk.session.answer(requestId, { optionId: 'second' }),
      () => steppedAt,
    );
    if (round >= WARM_UP) samples.push(taken * 1000);
    await until(() => desk.told() === round + 1, 'the result is told');
  }
  return p50p99(samples);
}

async function floor(n: number): Promise<Numbers> {
  let steppedAt: number | null = null;
  const model = askingModel((done) => {
    if (done === 1) steppedAt = performance.now();
  });
  const runs = n > 1 ? await parkBare(model, n + WARM_UP + SAMPLES) : [];
  const samples: number[] = [];
  for (let round = 0; round < WARM_UP + SAMPLES; round += 1) {
    const run = runs[round] ?? (await parkBare(model, 1))[0];
    steppedAt = null;
    const taken = await latency(
      () => run?.answer(),
      () => steppedAt,
    );
    if (round >= WARM_UP) samples.push(taken * 1000);
  }
  return p50p99(samples);
}

export const answerLatency: Measurement = {
  contenders: { offstage, floor },
  sizes: [1, 1000],
  repetitions: 5,
  lines: [
    {
      figure: 'answer_latency_p50',
      unit: 'us',
      number: 'p50',
      floor: 'floor',
      goal: { ratio: 1.5 },
    },
    { figure: 'answer_latency_p99', unit: 'us', number: 'p99', floor: 'floor', goal: null },
  ],
};
