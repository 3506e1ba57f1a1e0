// The views of one kind that screens see, in the order in which they came: all that goes on,
// and the latest of what is over.
//
// Owns:     the views, and which of them are kept.
// Does not: know what they show, or when anybody looks.
//
// Invariants
//   KEPT-VIEWS-1. What goes on is always kept. Of what is over, so many are kept as were over last.
//   KEPT-VIEWS-2. A change costs the same however many there are. A list is made only when there was one
//       since the last.
//   KEPT-VIEWS-3. Views and lists are frozen: the session looks at them, too, and a screen must not change them for it.

export class KeptViews<T> {
  readonly #kept: number;
  readonly #isOver: (view: T) => boolean;
  readonly #views = new Map<string, T>();
  /** Ids of what is over; what has been so for longest comes first. */
  readonly #over = new Set<string>();
  #list: readonly T[] | null = null;

  /** Of those for which `isOver` holds, `kept` are kept. */
  constructor(kept: number, isOver: (view: T) => boolean) {
    this.#kept = kept;
    this.#isOver = isOver;
  }

  /** The same array until something changes. */
  get list(): readonly T[] {
    return (this.#list ??= Object.freeze([...this.#views.values()]));
  }

  get(id: string): T | undefined {
    return this.#views.get(id);
  }

  set(id: string, view: T): void {
    this.#views.set(id, Object.freeze(view));
    this.#list = null;
    if (this.#isOver(view)) this.#over.add(id);
    else this.#over.delete(id);
    for (const oldest of this.#over) {
      if (this.#over.size <= this.#kept) return;
      this.#over.delete(oldest);
      this.#views.delete(oldest);
    }
  }
}
