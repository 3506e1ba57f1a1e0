// Holds the changes of one step of a unit until the step's entry is in the journal. The step reads its own changes. All
// other readers see the earlier state until the changes are installed. A step that throws changes nothing.
//
// Owns:     the changes of the current step, or of the step whose entry is being written.
// Does not: interpret the steps (their unit does).
//
// Invariants
//   DRAFT-1. A step's cost depends on its changes, not on the size of the state.
//   DRAFT-2. A change outside a step takes effect immediately, even while a step is waiting for its entry.

/** A part of the state that is changed in steps. */
interface Part {
  install(): void;
  drop(): void;
}

export class Draft {
  /** True while a step is running. */
  isStepping = false;
  /** The changed parts; null if there are none, so that thousands of idle units need no array. */
  #parts: Part[] | null = null;
  #later: (() => void)[] | null = null;

  /**
   * Runs a step. Its changes take effect only with `install`. If the step throws, its changes are dropped and the error
   * is rethrown.
   */
  step<T>(run: () => T): T {
    this.isStepping = true;
    try {
      return run();
    } catch (error) {
      this.drop();
      throw error;
    } finally {
      this.isStepping = false;
    }
  }

  /** Runs `act` when the changes of the current step are installed, or immediately if no step is running. */
  later(act: () => void): void {
    if (this.isStepping) (this.#later ??= []).push(act);
    else act();
  }

  /** Installs the last step's changes. */
  install(): void {
    const [parts, later] = this.#taken();
    for (const part of parts) part.install();
    for (const act of later) act();
  }

  /** Drops the last step's changes. */
  drop(): void {
    for (const part of this.#taken()[0]) part.drop();
  }

  changed(part: Part): void {
    (this.#parts ??= []).push(part);
  }

  #taken(): [readonly Part[], readonly (() => void)[]] {
    const taken: [Part[], (() => void)[]] = [this.#parts ?? [], this.#later ?? []];
    this.#parts = null;
    this.#later = null;
    return taken;
  }
}

/** One value. */
export class Cell<T> implements Part {
  readonly #draft: Draft;
  #value: T;
  #next: { readonly value: T } | null = null;

  constructor(draft: Draft, value: T) {
    this.#draft = draft;
    this.#value = value;
  }

  get value(): T {
    return this.#draft.isStepping && this.#next ? this.#next.value : this.#value;
  }

  set value(value: T) {
    if (!this.#draft.isStepping) {
      this.#value = value;
      return;
    }
    if (!this.#next) this.#draft.changed(this);
    this.#next = { value };
  }

  install(): void {
    if (this.#next) this.#value = this.#next.value;
    this.#next = null;
  }

  drop(): void {
    this.#next = null;
  }
}

/** Values by id, in insertion order. */
export class Table<V> implements Part {
  readonly #draft: Draft;
  readonly #values = new Map<string, V>();
  /** The changes of the last step; undefined marks a deleted value. Null if there are no changes. */
  #next: Map<string, V | undefined> | null = null;

  constructor(draft: Draft) {
    this.#draft = draft;
  }

  /** The pending changes, which only the step itself can read; null outside a step. */
  get #own(): ReadonlyMap<string, V | undefined> | null {
    return this.#draft.isStepping ? this.#next : null;
  }

  get(id: string): V | undefined {
    const own = this.#own;
    return own?.has(id) ? own.get(id) : this.#values.get(id);
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  set(id: string, value: V): void {
    if (this.#draft.isStepping) this.#changes.set(id, value);
    else this.#values.set(id, value);
  }

  /** Changes fields of a value, or does nothing if the id is unknown. */
  change(id: string, fields: Partial<V>): void {
    const value = this.get(id);
    if (value !== undefined) this.set(id, { ...value, ...fields });
    // DRAFT-2
    const next = this.#draft.isStepping ? undefined : this.#next?.get(id);
    if (next !== undefined) this.#next?.set(id, { ...next, ...fields });
  }

  /** Deletes a value. Returns whether the value existed. */
  delete(id: string): boolean {
    const isKnown = this.has(id);
    if (!this.#draft.isStepping) {
      this.#values.delete(id);
      // DRAFT-2
      this.#next?.delete(id);
    } else if (isKnown) this.#changes.set(id, undefined);
    return isKnown;
  }

  clear(): void {
    for (const id of this.keys()) this.delete(id);
  }

  get size(): number {
    return this.#own ? [...this.keys()].length : this.#values.size;
  }

  *[Symbol.iterator](): IterableIterator<[id: string, value: V]> {
    const own = this.#own;
    for (const [id, value] of this.#values) {
      const seen = own?.has(id) ? own.get(id) : value;
      if (seen !== undefined) yield [id, seen];
    }
    for (const [id, value] of own ?? [])
      if (value !== undefined && !this.#values.has(id)) yield [id, value];
  }

  *keys(): IterableIterator<string> {
    for (const [id] of this) yield id;
  }

  *values(): IterableIterator<V> {
    for (const [, value] of this) yield value;
  }

  install(): void {
    for (const [id, value] of this.#next ?? [])
      if (value === undefined) this.#values.delete(id);
      else this.#values.set(id, value);
    this.#next = null;
  }

  drop(): void {
    this.#next = null;
  }

  get #changes(): Map<string, V | undefined> {
    if (!this.#next) this.#draft.changed(this);
    return (this.#next ??= new Map());
  }
}
