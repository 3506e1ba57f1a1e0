// A map with a maximum size, which removes its oldest entries. It is used for the items and responses of a
// conversation, which may last for hours.

export class BoundedMap<Key, Value> {
  readonly #maxSize: number;
  readonly #entries = new Map<Key, Value>();

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** Adds or replaces an entry. If the map is full, it removes the oldest entry first. */
  set(key: Key, value: Value): void {
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#maxSize) return;
    const oldest = this.#entries.keys().next();
    if (!oldest.done) this.#entries.delete(oldest.value);
  }

  values(): Iterable<Value> {
    return this.#entries.values();
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }
}
