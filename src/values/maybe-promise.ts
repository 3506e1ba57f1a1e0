// Values that a callback returns directly or as a promise.

export type MaybePromise<T> = T | Promise<T>;

export function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/** Applies `change`, synchronously if the value is not a promise. */
export function changed<T, U>(value: MaybePromise<T>, change: (value: T) => U): MaybePromise<U> {
  return isPromiseLike(value) ? Promise.resolve(value).then(change) : change(value);
}
