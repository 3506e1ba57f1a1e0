// The heap of a subagent that waits for the user. It includes everything that exists because of the subagent: 100
// subagents share a session, its records, calls, questions, outbox and store.

import { createRuntime } from '../../src/index.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { askingModel, openDesk, parkBare } from '../lib/desk.ts';
import { heapBytes } from '../lib/process.ts';

const PER_SESSION = 100;
const WARM_UP = 1000;
const kept: unknown[] = [];

/** Returns the heap that `park` adds for each of `n`, after one-time allocations. */
async function heapPerSubagent(
  n: number,
  park: (count: number) => Promise<unknown>,
): Promise<Numbers> {
  // The warm-up compiles the code and fills the journal: a thousand more make neither larger.
  kept.push(await park(WARM_UP));
  const before = await heapBytes();
  kept.push(await park(n));
  return { bytes: ((await heapBytes()) - before) / n };
}

function offstage(n: number): Promise<Numbers> {
  const runtime = createRuntime();
  const model = askingModel(() => {});
  return heapPerSubagent(n, async (count) => {
    const desks: unknown[] = [];
    for (let parked = 0; parked < count; parked += PER_SESSION) {
      const desk = await openDesk(runtime, model, PER_SESSION);
      await desk.start(PER_SESSION);
      desks.push(desk);
    }
    return desks;
  });
}

const floor = (n: number): Promise<Numbers> =>
  heapPerSubagent(n, (count) =>
    parkBare(
      askingModel(() => {}),
      count,
    ),
  );

export const parkedHeap: Measurement = {
  contenders: { offstage, floor },
  sizes: [1000, 10_000],
  repetitions: 3,
  lines: [
    {
      figure: 'parked_heap',
      unit: 'bytes',
      number: 'bytes',
      floor: 'floor',
      goal: { value: 4 * 1024 },
    },
  ],
};
