// The conformance suite for journals: the properties that a session needs from any store.

import { z } from 'zod';
import { aFunction, check as checkSetup, type ChecksOf } from '../../values/checks.ts';
import type { ConformanceCase } from '../conformance/transport-conformance.ts';
import { check, scenesOf, type JournalScene } from './case.ts';
import { claimScenes, crashScenes } from './takeover-cases.ts';
import { followingScenes, scopeScenes } from './reader-cases.ts';
import { keepingScenes } from './keeping-cases.ts';
import { trimmingScenes } from './trimming-cases.ts';
import { deskScenes } from './desk-cases.ts';
import { wakeTimeScenes } from './wake-time-cases.ts';
import type { JournalConformanceSetup, JournalFeature, JournalStage } from './stage.ts';

const scenes = [
  ...keepingScenes,
  ...followingScenes,
  ...scopeScenes,
  ...trimmingScenes,
  ...crashScenes,
  ...claimScenes,
  ...wakeTimeScenes,
  ...deskScenes,
];

/**
 * Returns the cases that a journal must pass. Each case uses a new store and the journal's own clock.
 *
 * ```ts
 * for (const { name, skipped, run } of journalConformance(setup))
 *   test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid
 */
export function journalConformance(setup: JournalConformanceSetup): readonly ConformanceCase[] {
  checkSetup('journalConformance(setup)', setupSchema, setup);
  const offered = scenesOf([], {
    'it has the methods that it offers, and no others': ({ stage }) =>
      Promise.resolve(checkOffers(setup, stage)),
  });
  return [...offered, ...scenes].map((scene) => {
    const missing = scene.needs.filter((feature) => !setup.offers.includes(feature));
    return {
      name: scene.name,
      skipped: missing.length > 0 ? `${setup.name} does not offer ${missing.join(', ')}` : null,
      run: () => play(setup, scene),
    };
  });
}

const setupSchema = z.strictObject({
  name: z.string(),
  offers: z.array(
    z.enum(['scopes', 'readAfter', 'trim', 'forget', 'claim', 'reopen', 'wakeTimes', 'desk']),
  ),
  open: aFunction,
} satisfies ChecksOf<JournalConformanceSetup>);

async function play(setup: JournalConformanceSetup, scene: JournalScene): Promise<void> {
  const stage = await setup.open();
  try {
    await scene.play({
      journal: stage.journal,
      stage,
      another: async () => given(await stage.another?.(), setup, 'another'),
      reopen: async () => given(await stage.reopen?.(), setup, 'reopen'),
    });
  } finally {
    await stage.close?.();
  }
}

/** The methods that each feature adds to the journal or the stage. */
const methods: Readonly<Record<JournalFeature, (stage: JournalStage) => readonly unknown[]>> = {
  scopes: ({ journal }) => [journal.scopes],
  readAfter: ({ journal }) => [journal.readAfter],
  trim: ({ journal }) => [journal.trim],
  forget: ({ journal }) => [journal.forget],
  claim: ({ journal, another, expire }) => [journal.claim, journal.release, another, expire],
  reopen: ({ reopen }) => [reopen],
  wakeTimes: ({ journal }) => [journal.wakeTimes],
  desk: ({ journal }) => [journal.desk],
};

function checkOffers({ name, offers }: JournalConformanceSetup, stage: JournalStage): void {
  for (const [feature, found] of Object.entries(methods)) {
    const isOffered = offers.includes(feature as JournalFeature);
    check(
      found(stage).every((method) => (method !== undefined) === isOffered),
      () =>
        isOffered
          ? `${name} offers \`${feature}\`, and lacks a method of it`
          : `${name} has a method of \`${feature}\`, which it does not offer`,
    );
  }
}

function given<T>(value: T | undefined, { name }: JournalConformanceSetup, method: string): T {
  check(value !== undefined, () => `the stage of ${name} has no \`${method}\``);
  return value;
}
