// The opening lines of a test file of the demo: what its tests share is there before them, and ends after them.

import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { buildTheatre, type Stage, type Theatre } from './stage.ts';

/** A theatre for this file. Returns what opens a stage for one test, which closes it. */
export function theatreOfFile<S extends Stage = Stage>(
  build: () => Promise<Theatre<S>>,
): () => Promise<S>;
export function theatreOfFile(): () => Promise<Stage>;
export function theatreOfFile(build: () => Promise<Theatre> = buildTheatre): () => Promise<Stage> {
  let theatre: Theatre;
  beforeAll(async () => {
    theatre = await build();
  });
  afterAll(() => theatre.close());
  return async () => {
    const stage = await theatre.open();
    onTestFinished(() => stage.close());
    return stage;
  };
}
