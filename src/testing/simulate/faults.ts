// One run's faults. Only the seed, the fault point and the occurrence count decide whether a fault fires. Other
// decisions therefore stay the same if a step is removed from a script.
//
// Owns:     the occurrence counts, and the faults that have fired.
// Does not: know the effect of a fault (`fault-points` describes it, and the caller applies it).

import { chanceOf, type Chance } from '../doubles/chance.ts';
import type { FaultPlan, FaultPoint, FaultRule, Strike } from './log/fault-points.ts';

export class Faults {
  /** The faults that have fired so far, in order. */
  readonly struck: Strike[] = [];
  readonly #seed: number;
  readonly #decides: (point: FaultPoint, occurrence: number) => boolean;
  readonly #counts = new Map<FaultPoint, number>();
  readonly #onStrike: (strike: Strike) => void;
  #armed = true;

  /** `what`: a plan, or the faults that fired in the run that is being replayed. */
  constructor(
    seed: number,
    what: FaultPlan | readonly Strike[],
    onStrike: (strike: Strike) => void,
  ) {
    this.#seed = seed;
    this.#decides = isList(what) ? listed(what) : planned(seed, what, this.struck);
    this.#onStrike = onStrike;
  }

  /** Disables all faults from now on. */
  disarm(): void {
    this.#armed = false;
  }

  get isArmed(): boolean {
    return this.#armed;
  }

  /**
   * Decides whether a fault fires at this point now. Returns a random stream for the details of the fault, or null if
   * none fires.
   */
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
