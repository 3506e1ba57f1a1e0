// A journal that several processes share, in simulated time. A claim is held while its process lives, and for the
// duration of a lease after that.

import { JournalError, type JournalEntry } from '../../../src/entries/journal.ts';
import { CapacityError, memoryJournal, type Journal } from '../../../src/index.ts';
import type { SimulatedEnvironment } from '../../../src/testing/index.ts';
import type { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';

export interface SharedJournalOptions {
  readonly leaseMs: number;
  /** The journal reports which scopes have no claim, as the PostgreSQL journal does. @defaultValue true */
  readonly knowsClaims?: boolean;
  /**
   * The journal assigns different due sessions to each process, as the PostgreSQL journal does. @defaultValue false
   */
  readonly gives?: boolean;
}

interface Claim {
  readonly holder: SimulatedProcess;
  /** The time of the holder's last activity; null if the holder is alive. */
  diedAt: number | null;
}

export class SharedJournal {
  readonly store = memoryJournal({ keep: Infinity });
  /** The refused claims, with times and scopes. */
  readonly refused: { readonly at: number; readonly scope: string; readonly by: number }[] = [];
  /** Each query for wake times, starting with the first one. */
  readonly rounds: { readonly at: number; readonly by: number }[] = [];
  /** Setting wake times fails. */
  isBroken: Error | null = null;
  readonly #environment: SimulatedEnvironment;
  readonly #options: SharedJournalOptions;
  readonly #claims = new Map<string, Claim>();

  constructor(environment: SimulatedEnvironment, options: SharedJournalOptions) {
    this.#environment = environment;
    this.#options = options;
  }

  /** Returns the process that is known to write the scope. */
  holderOf(scope: string): number | null {
    const claim = this.#claims.get(scope);
    return claim && this.#holds(claim) ? claim.holder.number : null;
  }

  kill(process: SimulatedProcess): void {
    process.kill();
    for (const claim of this.#claims.values())
      if (claim.holder === process) claim.diedAt ??= this.#environment.clock.now();
  }

  of(process: SimulatedProcess): Journal {
    const { store } = this;
    const never = new Promise<never>(() => {});
    /** A call by a dead process never settles. */
    const alive = async <T>(work: () => T | Promise<T>): Promise<T> =>
      process.isAlive ? work() : never;
    const checkOurs = (scope: string): void => {
      if (this.#claims.get(scope)?.holder !== process)
        throw new JournalError('FENCED', scope, { retryable: false });
    };
    return {
      append: (entry: JournalEntry) =>
        alive(() => {
          checkOurs(entry.scope);
          return store.append(entry);
        }),
      read: (query) => alive(() => store.read(query)),
      trim: (entry) =>
        alive(() => {
          checkOurs(entry.scope);
          return store.trim?.(entry);
        }),
      claim: (scope) => alive(() => this.#claim(scope, process)),
      release: (scope) =>
        alive(() => {
          if (this.#claims.get(scope)?.holder === process) this.#claims.delete(scope);
        }),
      scopes: () => alive(() => store.scopes()),
      desk: {
        set: (scope, rows) =>
          alive(() => {
            if (rows.length > 0 || this.#claims.has(scope)) checkOurs(scope);
            return store.desk.set(scope, rows);
          }),
        find: (query) => alive(() => store.desk.find(query)),
      },
      wakeTimes: {
        set: (scope, at) =>
          alive(() => {
            if (this.isBroken) throw this.isBroken;
            return store.wakeTimes.set(scope, at);
          }),
        earliest: ({ after, limit, exceptClaimed = false }) =>
          alive(async () => {
            if (!after) this.rounds.push({ at: this.#environment.clock.now(), by: process.number });
            const isHidden = exceptClaimed && this.#options.knowsClaims !== false;
            const all = await store.wakeTimes.earliest({ ...(after && { after }), limit: 1e6 });
            return all
              .filter(({ scope }) => !isHidden || this.holderOf(scope) === null)
              .slice(0, limit);
          }),
        ...(this.#options.gives === true && {
          take: ({ now, limit, except }) =>
            alive(async () => {
              this.rounds.push({ at: this.#environment.clock.now(), by: process.number });
              const all = await store.wakeTimes.earliest({ limit: 1e6 });
              const taken = all
                .filter(({ scope, at }) => at <= now && !except.includes(scope))
                .map(({ scope }) => scope)
                .filter((scope) => this.holderOf(scope) === null)
                .slice(0, limit);
              for (const scope of taken) this.#claim(scope, process);
              return taken;
            }),
        }),
      },
    };
  }

  #claim(scope: string, process: SimulatedProcess): void {
    const claim = this.#claims.get(scope);
    if (claim && claim.holder !== process && this.#holds(claim)) {
      this.refused.push({ at: this.#environment.clock.now(), scope, by: process.number });
      throw new CapacityError('SCOPE_IN_USE', `${scope} is in use by ${claim.holder.number}`);
    }
    this.#claims.set(scope, { holder: process, diedAt: null });
  }

  #holds({ diedAt }: Claim): boolean {
    return diedAt === null || this.#environment.clock.now() < diedAt + this.#options.leaseMs;
  }
}
