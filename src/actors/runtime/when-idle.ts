// Waits until received events are written down, as far as the journal can.

import type { Scheduler } from '../ports/environment.ts';

/** The number of turns of the event loop for which a closing unit waits for its journal. */
const MAX_TURNS = 10_000;

export async function whenIdle(scheduler: Scheduler, isBusy: () => boolean): Promise<void> {
  for (let turns = 0; turns < MAX_TURNS && isBusy(); turns += 1)
    await new Promise<void>((resolve) => scheduler.yieldThen(resolve));
}
