// How late a 20 ms audio tick is while 200 runs keep the event loop busy: with a model that takes no time, and with
// one that takes 150 to 350 ms. In the second case the garbage collector causes most of the lateness; its pause
// grows with the young generation, so the measurement is repeated with a small one.

import { tickLateness } from '../lib/audio-tick.ts';
import { bareCrowd, pacedModel, subagentCrowd, type Crowd } from '../lib/crowd.ts';
import type { Line, Measurement, Numbers } from '../lib/measurement.ts';
import { p50p99 } from '../lib/statistics.ts';
import { tripModel, type Model } from '../lib/workload.ts';

const WARM_UP_MS = 2000;
const MEASURED_MS = 8000;

async function lateness(crowd: Crowd): Promise<Numbers> {
  await tickLateness(WARM_UP_MS);
  const before = crowd.ended();
  const late = await tickLateness(MEASURED_MS);
  const runs = crowd.ended() - before;
  if (runs === 0) throw new Error('Nobody was at work');
  return { ...p50p99(late), runs_per_s: (runs * 1000) / MEASURED_MS };
}

const lines = (figure: string, goal: Line['goal']): Line[] => [
  { figure: `${figure}_p50`, unit: 'ms', number: 'p50', floor: 'floor', goal: null },
  {
    figure: `${figure}_p99`,
    unit: 'ms',
    number: 'p99',
    floor: 'floor',
    goal,
  },
];

const smallYoungGeneration = ['--max-semi-space-size=4'];

const measurement = (
  figure: string,
  model: Model,
  goal: Line['goal'],
  nodeOptions: readonly string[] = [],
): Measurement => ({
  contenders: {
    offstage: (n) => lateness(subagentCrowd(n, model)),
    floor: (n) => lateness(bareCrowd(n, model)),
  },
  sizes: [200],
  nodeOptions,
  repetitions: 3,
  lines: lines(figure, goal),
});

export const frameLateness = measurement('frame_lateness', tripModel, { value: 5 });
export const frameLatenessPaced = measurement('frame_lateness_paced', pacedModel, { ratio: 1 });
export const frameLatenessSmall = measurement(
  'frame_lateness_small_young',
  tripModel,
  { value: 5 },
  smallYoungGeneration,
);
export const frameLatenessPacedSmall = measurement(
  'frame_lateness_paced_small_young',
  pacedModel,
  { ratio: 1 },
  smallYoungGeneration,
);
