// One resource of a budget (tokens, steps or agents): what was granted, and what became of it.
//
// Owns:     the count. Everything happens at once: nothing is read now and taken later.
// Does not: know what is counted, or whose it is.
//
// Invariants
//   PURSE-1. Held and spent together never exceed what was granted, unless a call cost more than
//       was held for it; then nothing more can be taken.
//   PURSE-2. What is held is settled once: the used part is spent, the rest is free again.
//   PURSE-3. A purse that was cut from another gives back what it did not use, once, when it is
//       closed; what is still held then is settled above.
//   PURSE-4. What cannot be taken changes nothing.
//   PURSE-12. What was used is never less than nothing: a provider's count that is no number, or a
//        negative one, gives nothing back.

/** Something taken from a purse, until it is known what it cost. */
export interface Hold {
  readonly amount: number;
  /** Settles it; doing it twice does nothing. `used` may be more than was held: it happened. */
  settle(used: number): void;
}

export class Purse {
  readonly granted: number;
  readonly #above: Hold | null;
  readonly #parent: Purse | null;
  #spent = 0;
  #held = 0;
  #isClosed = false;

  /** `above`: what the parent holds for this one. */
  constructor(granted: number, parent: Purse | null = null, above: Hold | null = null) {
    this.granted = granted;
    this.#parent = parent;
    this.#above = above;
  }

  get spent(): number {
    return this.#spent;
  }

  get held(): number {
    return this.#held;
  }

  get left(): number {
    return this.#isClosed ? 0 : Math.max(0, this.granted - this.#spent - this.#held);
  }

  /** Holds an amount; null if so much is not left. */
  take(amount: number): Hold | null {
    if (amount > this.left) return null;
    this.#held += amount;
    return this.#hold(amount);
  }

  /** Counts what was used without having been asked for: it is spent, whatever is left. */
  charge(used: number): void {
    if (this.#isClosed) this.#parent?.charge(used);
    else this.#spent += amountOf(used);
  }

  /** A purse of its own within this one; null if so much is not left. */
  cut(amount: number): Purse | null {
    const above = this.take(amount);
    return above && new Purse(amount, this, above);
  }

  /** Gives back what was not used. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#above?.settle(this.#spent);
    // What is still held stays held above, and is settled there.
    if (this.#parent) this.#parent.#keepHeld(this.#held);
  }

  #keepHeld(amount: number): void {
    if (this.#isClosed && this.#parent) this.#parent.#keepHeld(amount);
    else this.#held += amount;
  }

  #hold(amount: number): Hold {
    let isSettled = false;
    return {
      amount,
      settle: (used) => {
        if (isSettled) return;
        isSettled = true;
        this.#settle(amount, used);
      },
    };
  }

  #settle(amount: number, used: number): void {
    if (this.#isClosed && this.#parent) {
      this.#parent.#settle(amount, used);
      return;
    }
    this.#held -= amount;
    this.#spent += amountOf(used);
  }
}

/** PURSE-12 */
function amountOf(used: number): number {
  return used > 0 ? used : 0;
}
