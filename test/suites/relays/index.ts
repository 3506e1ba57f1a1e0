// The conformance suite for relays: what a subagent relies on, whatever protocol its agent speaks.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../src/values/checks.ts';
import {
  skippedFor,
  type ConformanceCase,
} from '../../../src/testing/conformance/transport-conformance.ts';
import type { RelayCapabilities } from '../../../src/actors/ports/relay.ts';
import { relayScenes } from './cases.ts';
import { RelayBench, type RelayScene } from './scene.ts';
import type { RelayConformanceSetup } from './stage.ts';

export type { RelayConformanceSetup } from './stage.ts';

const setupSchema = z.strictObject({
  name: z.string(),
  shows: z.array(z.enum(['die', 'deaf', 'garbage'])),
  graceMs: z.number().min(0),
  patience: z.number().int().min(1).optional(),
  pollMs: z.number().min(1).optional(),
  open: aFunction,
} satisfies ChecksOf<RelayConformanceSetup>);

/**
 * The cases that a relay must pass. Each case has its own stage, whose agent performs the acts in its prompts. Time is
 * simulated.
 *
 * ```ts
 * for (const { name, run } of relayConformance(setup)) test(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid.
 */
export function relayConformance(setup: RelayConformanceSetup): readonly ConformanceCase[] {
  check('relayConformance(setup)', setupSchema, setup);
  return relayScenes.map((scene) => ({
    name: scene.name,
    skipped: skippedFor(setup.name, setup.shows, (scene.needs ?? []).filter(isFault)),
    run: () => play(setup, scene),
  }));
}

function isFault(need: string): need is RelayConformanceSetup['shows'][number] {
  return need === 'die' || need === 'deaf' || need === 'garbage';
}

/** Passes a case at once if the relay does not declare an ability that the case requires. */
async function play(setup: RelayConformanceSetup, { needs = [], play: plot }: RelayScene) {
  const stage = await setup.open();
  try {
    const { capabilities } = stage.relay;
    const abilities = needs.filter((need) => !isFault(need)) as (keyof RelayCapabilities)[];
    if (!abilities.every((ability) => capabilities[ability])) return;
    const bench = new RelayBench(setup, stage);
    await plot(bench);
    await bench.end();
  } finally {
    await stage.close?.();
  }
}
