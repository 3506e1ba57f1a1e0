// Values that an author may return at once, or promise.

export type MaybePromise<T> = T | Promise<T>;

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/** Applies `change` at once where the value is there, so that nothing waits that need not. */
export function changed<T, U>(value: MaybePromise<T>, change: (value: T) => U): MaybePromise<U> {
  return isPromiseLike(value) ? Promise.resolve(value).then(change) : change(value);
}
