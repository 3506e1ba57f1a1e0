// Which faults strike in one run. Each occurrence of a fault point is decided by the seed, the
// point and the count of the occurrence, and by nothing else: leaving out one thing while a
// script is made smaller changes no other decision.
//
// Owns:     the counts of occurrences, and what has struck.
// Does not: know what a fault does (fault-points says it, whoever asks does it).

import { chanceOf, type Chance } from '../doubles/chance.ts';
import type { FaultPlan, FaultPoint, FaultRule, Strike } from './log/fault-points.ts';

export class Faults {
  /** What has struck, in order. */
  readonly struck: Strike[] = [];
  readonly #seed: number;
  readonly #decides: (point: FaultPoint, occurrence: number) => boolean;
  readonly #counts = new Map<FaultPoint, number>();
  readonly #onStrike: (strike: Strike) => void;
  #armed = true;

  /** `what`: a plan, or the strikes of a run that is played again. */
  constructor(
    seed: number,
    what: FaultPlan | readonly Strike[],
    onStrike: (strike: Strike) => void,
  ) {
    this.#seed = seed;
    this.#decides = isList(what) ? listed(what) : planned(seed, what, this.struck);
    this.#onStrike = onStrike;
  }

  /** From now on everybody behaves. */
  disarm(): void {
    this.#armed = false;
  }

  get isArmed(): boolean {
    return this.#armed;
  }

  /** This point is reached: does it strike? What it needs to know more is chance of its own; null: it does not. */
  strikes(point: FaultPoint): Chance | null {
    if (!this.#armed) return null;
    const occurrence = (this.#counts.get(point) ?? 0) + 1;
    this.#counts.set(point, occurrence);
    if (!this.#decides(point, occurrence)) return null;
    const strike = { point, occurrence };
    this.struck.push(strike);
    this.#onStrike(strike);
    return chanceOf(this.#seed, 'fault', point, occurrence, 'how');
  }
}

function isList(what: FaultPlan | readonly Strike[]): what is readonly Strike[] {
  return Array.isArray(what);
}

function listed(strikes: readonly Strike[]): (point: FaultPoint, occurrence: number) => boolean {
  const wanted = new Set(strikes.map(({ point, occurrence }) => `${point}/${occurrence}`));
  return (point, occurrence) => wanted.has(`${point}/${occurrence}`);
}

function planned(
  seed: number,
  plan: FaultPlan,
  struck: readonly Strike[],
): (point: FaultPoint, occurrence: number) => boolean {
  return (point, occurrence) => {
    const rule = plan[point];
    if (rule === undefined) return false;
    const {
      probability = 0,
      at = [],
      most = Infinity,
    }: FaultRule = typeof rule === 'number' ? { probability: rule } : rule;
    if (at.includes(occurrence)) return true;
    if (!chanceOf(seed, 'fault', point, occurrence).happens(probability)) return false;
    return struck.filter((strike) => strike.point === point).length < most;
  };
}
