// The views of one kind for screens, in the order in which they came: all open ones, and the latest of those
// that are over.
//
// Owns:     the views, and the choice of those that are kept.
// Does not: know their content, or their readers.
//
// Invariants
//   KEPT-VIEWS-1. An open view is always kept. Of those that are over, the latest are kept, up to a limit.
//   KEPT-VIEWS-2. The cost of a change does not depend on their number. A list is built only after a change.
//   KEPT-VIEWS-3. Views and lists are frozen: the session reads them, too, and a screen must not change them.

export class KeptViews<T> {
  readonly #kept: number;
  readonly #isOver: (view: T) => boolean;
  readonly #views = new Map<string, T>();
  /** Ids of views that are over, the oldest end first. */
  readonly #over = new Set<string>();
  #list: readonly T[] | null = null;

  /** `kept`: number of kept views for which `isOver` holds. */
  constructor(kept: number, isOver: (view: T) => boolean) {
    this.#kept = kept;
    this.#isOver = isOver;
  }

  /** The list of views: the same array until something changes. */
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
