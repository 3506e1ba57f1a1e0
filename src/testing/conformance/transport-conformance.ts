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

/** One conversation. Cases are independent of each other, and may be run in any order. */
export interface ConformanceCase {
  /** The title of a test. */
  readonly name: string;
  /** Why it cannot run on this stage: the stage cannot show a fault that it needs. Null: it can. */
  readonly skipped: string | null;
  /**
   * Has the conversation, on a stage of its own; takes almost no real time.
   * @throws {ConformanceError} when a promise is not kept, with the events that led to it
   */
  run(): Promise<void>;
}

/** Returns why a case is left out: the stage does not show the faults that it needs. Null: it is not. */
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
 * The cases that a transport must pass. Each is a whole `VoiceSession` on the stage, with tools and
 * scripted subagents, in simulated time. Besides what each is about, the promises of a session (P1 to P6, P10)
 * and the duties of a transport are checked on everything that happened.
 *
 * ```ts
 * for (const { name, skipped, run } of transportConformance(setup))
 *   test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` for a setup that is none.
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
