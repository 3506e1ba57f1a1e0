// The data and delays of the demo's tools.

import type { Environment } from 'offstage';
import { pause } from './pause.ts';
import type { World } from './world.ts';

export interface Workshop {
  readonly environment: Environment;
  readonly world: World;
  /** Waits about `durationMs`, or less if the demo is sped up. */
  work(durationMs: number, signal?: AbortSignal): Promise<void>;
}

/** @param pace multiplies every duration; 0 removes all waits. */
export function createWorkshop(environment: Environment, world: World, pace = 1): Workshop {
  return {
    environment,
    world,
    work: (durationMs, signal) => pause(environment, durationMs * pace, signal),
  };
}
