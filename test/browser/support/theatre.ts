// The setup for a test file of the demo: creates the parts that its tests share, and closes them after the tests.

import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { buildTheatre, type Stage, type Theatre } from './stage.ts';

/** A theatre for this file. Returns a function that opens a stage for one test and closes it after that test. */
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
