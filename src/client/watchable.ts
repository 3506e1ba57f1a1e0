// Small observable values for a page's listeners, such as a client's `events` and `status`.

/** A subscription that can be cancelled. */
export interface Subscription {
  /** Ends the subscription. */
  unsubscribe(): void;
}

/** A function that receives each value, or an object with such a function as `next`. */
export type Listener<T> = ((value: T) => void) | { readonly next?: (value: T) => void };

/** A stream that a page can subscribe to; RxJS accepts it in `from(...)`. */
export interface Watchable<T> {
  /** Calls the listener with each value from now on. */
  subscribe(listener: Listener<T>): Subscription;
}

/** An observable that stores its latest value. */
export interface WatchableValue<T> extends Watchable<T> {
  /** Returns the current value. */
  get(): T;
}

export class Emitter<T> implements Watchable<T> {
  readonly #listeners = new Set<{ readonly listener: Listener<T> }>();
  readonly #threw: (error: unknown) => void;

  /** `threw` is called with errors that listeners throw. The other listeners are still called. */
  constructor(threw: (error: unknown) => void) {
    this.#threw = threw;
  }

  subscribe(listener: Listener<T>): Subscription {
    const entry = { listener };
    this.#listeners.add(entry);
    return { unsubscribe: () => void this.#listeners.delete(entry) };
  }

  /** `isStale` returns whether a listener has already sent a newer value to the other listeners. */
  emit(value: T, isStale = (): boolean => false): void {
    for (const { listener } of this.#listeners) {
      if (isStale()) return;
      try {
        if (typeof listener === 'function') listener(value);
        else listener.next?.(value);
      } catch (error) {
        this.#threw(error);
      }
    }
  }
}

export class Value<T> extends Emitter<T> implements WatchableValue<T> {
  #value: T;
  #changes = 0;

  constructor(value: T, threw: (error: unknown) => void) {
    super(threw);
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    const change = ++this.#changes;
    this.emit(value, () => change !== this.#changes);
  }
}

/** Selects a part of a value. Its listeners are called when `isSame` returns false. */
export function selectionOf<T, Part>(
  whole: WatchableValue<T>,
  select: (value: T) => Part,
  isSame: (before: Part, after: Part) => boolean,
): WatchableValue<Part> {
  const get = (): Part => select(whole.get());
  return {
    get,
    subscribe(listener) {
      let before = get();
      return whole.subscribe(() => {
        const after = get();
        if (isSame(before, after)) return;
        before = after;
        if (typeof listener === 'function') listener(after);
        else listener.next?.(after);
      });
    },
  };
}
