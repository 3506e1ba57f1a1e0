// A stream with subscribers from the app's code. If a subscriber throws, the error is reported and the subscriber stays
// subscribed. As with a hook, the error does not reach the session. (RxJS would rethrow the error in a separate task,
// which ends the process with all its sessions.)
//
// Invariants
//   GUARDED-STREAM-1. A subscriber that throws, or whose promise rejects, is reported, stays subscribed and does not
//       affect the others, even behind operators (`pipe`).
//   GUARDED-STREAM-2. If an operator throws, its subscription ends with the error. The error is reported if the
//       subscriber has no `error` handler.

import { Observable, Subscriber, type Observer, type Subscription } from 'rxjs';
import { callSafely, type Host } from './host.ts';

/** Guards a stream. Reports contain `name`, such as `events`. */
export function guarded<T>(
  source: Observable<T>,
  host: Pick<Host, 'report'>,
  name: string,
): Observable<T> {
  return new GuardedStream(source, host, `a subscriber of ${name}`);
}

class GuardedStream<T> extends Observable<T> {
  readonly #host: Pick<Host, 'report'>;
  readonly #where: string;

  constructor(inner: Observable<T>, host: Pick<Host, 'report'>, where: string) {
    super((subscriber) => inner.subscribe(subscriber));
    this.#host = host;
    this.#where = where;
  }

  override pipe(...operators: readonly unknown[]): Observable<never> {
    const piped: unknown = Reflect.apply(super.pipe, this, operators);
    // An operator may return anything.
    if (!(piped instanceof Observable) || piped === this) return piped as Observable<never>;
    return new GuardedStream(piped as Observable<never>, this.#host, this.#where);
  }

  override subscribe(...given: readonly unknown[]): Subscription {
    const [first, error, complete] = given as [
      (Partial<Observer<T>> | ((value: T) => void) | null)?,
      ((error: unknown) => void)?,
      (() => void)?,
    ];
    // Operators handle their errors themselves.
    if (first instanceof Subscriber) return super.subscribe(first);
    const observer: Partial<Observer<T>> =
      typeof first === 'function' || !first
        ? { ...(first && { next: first }), ...(error && { error }), ...(complete && { complete }) }
        : first;
    const safely = (call: () => unknown): void => callSafely(this.#host, this.#where, call);
    return super.subscribe({
      next: (value) => safely(() => observer.next?.(value)),
      error: (thrown: unknown) => {
        if (observer.error) safely(() => observer.error?.(thrown));
        else this.#host.report(thrown, this.#where);
      },
      complete: () => safely(() => observer.complete?.()),
    });
  }
}
