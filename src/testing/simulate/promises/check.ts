// Checks the promises on the record of a finished run.

import type { RunRecord } from '../log/log.ts';
import { asShown } from './as-shown.ts';
import { authority } from './authority.ts';
import { bounded } from './bounded.ts';
import type { Broken, PromiseCheck } from './broken.ts';
import { deliveries, heldUp, toldOnce } from './deliveries.ts';
import { endings } from './endings.ts';
import { families } from './families.ts';
import { interruptions } from './interruptions.ts';
import { keeping } from './keeping.ts';
import { liveness } from './liveness.ts';
import { nothingTwice } from './nothing-twice.ts';
import { questions } from './questions.ts';
import { services } from './services.ts';

const checks: readonly PromiseCheck[] = [
  endings,
  families,
  questions,
  deliveries,
  toldOnce,
  heldUp,
  services,
  interruptions,
  nothingTwice,
  bounded,
  authority,
  keeping,
  liveness,
];

/** Returns the promises that were broken in this run; empty: none. */
export function brokenPromises(
  record: RunRecord,
  more: readonly PromiseCheck[] = [],
): readonly Broken[] {
  const shown = { ...record, log: asShown(record.log) };
  return [...checks, ...more].flatMap((check) => [...check(shown)]);
}
