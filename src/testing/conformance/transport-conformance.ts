// The conformance suite for transports: conversations that a session must be able to have with any voice
// model, on any wire.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { callScenes } from './call-cases.ts';
import { connectionScenes } from './connection-cases.ts';
import { questionScenes } from './question-cases.ts';
import { resultScenes } from './result-cases.ts';
import { speakingScenes } from './speaking-cases.ts';
import { play } from './case.ts';
import type { ConformanceSetup } from './stage.ts';

/** One conversation. Cases are independent of each other, and run in any order. */
export interface ConformanceCase {
  /** The title of a test. */
  readonly name: string;
  /** Why the case cannot run on this stage, which does not show a fault that the case needs. Null: it can run. */
  readonly skipped: string | null;
  /**
   * Has the conversation on a new stage; takes almost no real time.
   * @throws {ConformanceError} if a promise is not kept, with the events that led to it
   */
  run(): Promise<void>;
}

/** Returns why a case is skipped: the stage does not show the faults that it needs. Null: the case is not skipped. */
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
 * Returns the cases that a transport must pass. Each is a whole `VoiceSession` on the stage, with tools and scripted
 * subagents, in simulated time. Besides its subject, each case checks the promises of a session (P1 to P6, P10) and
 * the duties of a transport on all events.
 *
 * ```ts
 * for (const { name, skipped, run } of transportConformance(setup))
 *   test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` for an invalid setup.
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
