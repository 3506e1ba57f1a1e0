// The account of one resource of a budget (tokens, steps or agents): the granted, held and spent amounts.
//
// Owns:     the count. Every operation is atomic: no amount is read now and taken later.
// Does not: know the counted resource, or its owner.
//
// Invariants
//   BUDGET-ACCOUNT-1. Held and spent amounts together never exceed the grant, unless a call cost more than was held
//       for it; then nothing more can be taken.
//   BUDGET-ACCOUNT-2. A held amount is settled once: the used part is spent, the rest is free again.
//   BUDGET-ACCOUNT-3. An account cut from another returns its unused amount once, when it is closed; amounts held at
//       that time are settled in the parent.
//   BUDGET-ACCOUNT-4. A refused request changes nothing.
//   BUDGET-ACCOUNT-12. A used amount is never negative: a provider's count that is negative or not a number gives
//        nothing back.

/** An amount that is held until its cost is known. */
export interface Reservation {
  readonly amount: number;
  /** Settles the held amount; repeated calls have no effect. `used` may exceed the held amount. */
  settle(used: number): void;
}

export class BudgetAccount {
  readonly granted: number;
  readonly #above: Reservation | null;
  readonly #parent: BudgetAccount | null;
  #spent = 0;
  #held = 0;
  #isClosed = false;

  /** @param above The amount that the parent holds for this account. */
  constructor(
    granted: number,
    parent: BudgetAccount | null = null,
    above: Reservation | null = null,
  ) {
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

  /** Holds an amount; returns null if not enough is left. */
  take(amount: number): Reservation | null {
    if (amount > this.left) return null;
    this.#held += amount;
    return this.#hold(amount);
  }

  /** Counts an amount that was used without a request: it is spent, whatever is left. */
  charge(used: number): void {
    if (this.#isClosed) this.#parent?.charge(used);
    else this.#spent += amountOf(used);
  }

  /** Cuts a child account from this one; returns null if not enough is left. */
  cut(amount: number): BudgetAccount | null {
    const above = this.take(amount);
    return above && new BudgetAccount(amount, this, above);
  }

  /** Returns the unused amount to the parent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#above?.settle(this.#spent);
    // Amounts that are still held stay held in the parent, and are settled there.
    if (this.#parent) this.#parent.#keepHeld(this.#held);
  }

  #keepHeld(amount: number): void {
    if (this.#isClosed && this.#parent) this.#parent.#keepHeld(amount);
    else this.#held += amount;
  }

  #hold(amount: number): Reservation {
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

/** BUDGET-ACCOUNT-12 */
function amountOf(used: number): number {
  return used > 0 ? used : 0;
}
