// Counts the steps that the code in `src` takes, as V8 counts them for coverage: each function that is called and each
// block that is entered. The counts are the same on every machine and at any load. They leave out native methods and
// regular expressions.

import { Session } from 'node:inspector/promises';

/** Runs `play` with a function that returns the number of steps that `work` takes. */
export async function withCountedSteps<Result>(
  play: (steps: (work: () => unknown) => Promise<number>) => Promise<Result>,
): Promise<Result> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const taken = async (): Promise<number> => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.includes('/src/') && !url.includes('/node_modules/'))
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
  };
  try {
    return await play(async (work) => {
      const counts: number[] = [];
      // V8 counts a function twice if it is recompiled while it is running, so the lower of two counts is the true one.
      for (let time = 0; time < 2; time += 1) {
        await taken();
        await work();
        counts.push(await taken());
      }
      return Math.min(...counts);
    });
  } finally {
    await session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}
