// The entries so far, in order, and promises for later ones. Tests use it to wait for events, and never wait for time.

export interface EventLog<T> {
  readonly all: readonly T[];
  push(entry: T): void;
  /** Returns the first matching entry, past or future, that no earlier `next` with the same `name` has returned. */
  next<Match extends T>(name: string, matches: (entry: T) => entry is Match): Promise<Match>;
}

interface Waiter<T> {
  readonly take: (entry: T) => boolean;
}

export function createEventLog<T>(): EventLog<T> {
  const all: T[] = [];
  const taken = new Map<string, number>();
  let waiters: Waiter<T>[] = [];

  return {
    all,
    push(entry) {
      all.push(entry);
      waiters = waiters.filter((waiter) => !waiter.take(entry));
    },
    next<Match extends T>(name: string, matches: (entry: T) => entry is Match): Promise<Match> {
      for (let index = taken.get(name) ?? 0; index < all.length; index += 1) {
        const entry = all[index] as T;
        if (!matches(entry)) continue;
        taken.set(name, index + 1);
        return Promise.resolve(entry);
      }
      return new Promise((resolve) => {
        waiters.push({
          take: (entry) => {
            if (!matches(entry)) return false;
            taken.set(name, all.length);
            resolve(entry);
            return true;
          },
        });
      });
    },
  };
}
