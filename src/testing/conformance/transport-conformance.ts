// The conformance suite for transports: conversations that a session must be able to have with any voice model over any
// transport.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { callScenes } from './call-cases.ts';
import { connectionScenes } from './connection-cases.ts';
import { questionScenes } from './question-cases.ts';
import { resultScenes } from './result-cases.ts';
import { speakingScenes } from './speaking-cases.ts';
import { play } from './case.ts';
import type { ConformanceSetup } from './stage.ts';

/** One conversation. The cases are independent of each other and can run in any order. */
export interface ConformanceCase {
  /** The test title. */
  readonly name: string;
  /** Names the faults that the case needs but the stage does not simulate. Null if it can run. */
  readonly skipped: string | null;
  /**
   * Runs the conversation on a new stage. This takes almost no real time.
   * @throws {ConformanceError} if a promise is broken. The error contains the events before it
   */
  run(): Promise<void>;
}

/** Returns why a case is skipped: it needs faults that the stage does not simulate. Null if the case is not skipped. */
export function skippedFor(
  name: string,
  shows: readonly string[],
  faults: readonly string[],
): string | null {
  const missing = faults.filter((fault) => !shows.includes(fault));
  return missing.length > 0 ? `${name} does not show ${missing.join(', ')}` : null;
}

const scenes = [
  ...speakingScenes,
  ...resultScenes,
  ...questionScenes,
  ...callScenes,
  ...connectionScenes,
];

const setupSchema = z.strictObject({
  name: z.string(),
  shows: z.array(z.string()),
  open: aFunction,
} satisfies ChecksOf<ConformanceSetup>);

/**
 * Returns the cases that a transport must pass. Each case is a complete `VoiceSession` on the stage, with tools and
 * scripted subagents, in simulated time. Each case also checks all events against the promises of a session (P1 to P6,
 * P10) and the duties of a transport.
 *
 * ```ts
 * for (const { name, skipped, run } of transportConformance(setup))
 *   test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid
 */
export function transportConformance(setup: ConformanceSetup): readonly ConformanceCase[] {
  check('transportConformance(setup)', setupSchema, setup);
  return scenes.map((makeScene) => {
    const { name, needs = [] } = makeScene();
    return {
      name,
      skipped: skippedFor(setup.name, setup.shows, needs),
      run: () => play(setup, makeScene),
    };
  });
}
