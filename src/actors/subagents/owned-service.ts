// A service of a program, from `recover` to `close` or `suspend`.
//
// Owns:     its scope at the supervisor and in the journal.
// Does not: run anything (delegation.ts), or put subagents back (restoration.ts).
//
// Invariants
//   OWNED-SERVICE-1. A recovery that failed has changed nothing, and has no claim: it can be tried again.
//   OWNED-SERVICE-2. Whoever leaves for another time tells nobody of an end, and what came in is written down.

import { ConfigurationError, isA, OffstageError, TimeoutError } from '../../values/errors.ts';
import { raceTime } from '../runtime/race-abort.ts';
import { rested } from '../runtime/rested.ts';
import { UnfoldableEntry, UNIT } from '../runtime/set-aside.ts';
import type { UnitEvent } from '../runtime/unit-body.ts';
import { Delegation } from './delegation.ts';
import { failure } from './delegation-failure.ts';
import { DEFAULT_GRACE_MS, type DelegationOptions } from './parts.ts';
import type { ProgramPorts } from './program-ports.ts';
import { restoredUnits } from './restoration.ts';
import { CLOSED, LEDGER_VERSION, ServiceHistory } from './service-history.ts';
import type { ServiceKeeping } from './service-keeping.ts';
import { argument } from './service-arguments.ts';
import type { SpawnReceipt, SpawnRequest, SubagentService } from '../contracts/service-types.ts';

/** What a service found in its journal. */
export interface ServiceRecovery {
  /** Subagents that go on. */
  readonly resumed: readonly string[];
  /** They have ended, and the program has not had their results: `await` and `check` give them. */
  readonly ended: readonly string[];
  /** Those that cannot go on; each has ended as `lost`. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
}

/** A service that somebody owns, and ends. */
export interface OwnedSubagentService extends SubagentService {
  /**
   * Takes in what the journal has of the service with this `id`, and goes on with it: the first thing
   * to do, also where there is nothing yet. Questions are asked again under their old ids, each with
   * its whole time. What was closed is over. Without an `id`: nothing to find. If it fails, nothing
   * has happened, and it can be called again.
   * @throws {OffstageError} for a journal that does not fit; whatever the journal throws.
   */
  recover(): Promise<ServiceRecovery>;
  /**
   * Writes down what came in and leaves all to the journal: nobody is told of an end, questions
   * are withdrawn from their handlers, and waits of the program are broken off (`CANCELLED`). It goes
   * on when a service with its `id` recovers, here or in another process.
   * @throws {ConfigurationError} `INVALID_STATE` for a service without an `id`.
   */
  suspend(): Promise<void>;
  /**
   * Cancels all, kills who is left after `graceMs`, and resolves when everybody has ended and
   * is disposed; then its `id` begins a new service. Safe to call twice. After `suspend` it does nothing.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for a reason that is no text (rejects).
   */
  close(reason?: string): Promise<void>;
}

export class OwnedDelegation extends Delegation implements OwnedSubagentService {
  readonly #options: DelegationOptions;
  readonly #ports: ProgramPorts;
  /** Null: nobody will go on with it. */
  readonly #kept: ServiceKeeping | null;
  #recovery: Promise<ServiceRecovery> | null = null;
  #isOpen: boolean;
  /** It is being closed or suspended, whichever was asked for first. */
  #leaving: Promise<void> | null = null;

  constructor(options: DelegationOptions, ports: ProgramPorts, kept: ServiceKeeping | null) {
    super({ ...options, ports });
    this.#options = options;
    this.#ports = ports;
    this.#kept = kept;
    this.#isOpen = kept === null;
  }

  override spawn(request: SpawnRequest): SpawnReceipt {
    if (this.#isOpen) return super.spawn(request);
    const error = this.#leaving
      ? failure('SESSION_CLOSED', `The service "${this.id}" was suspended or closed`)
      : failure('INVALID_STATE', `The service "${this.id}" accepts no subagent before \`recover\``);
    return { status: 'rejected', error };
  }

  recover(): Promise<ServiceRecovery> {
    return (this.#recovery ??= this.#recover().catch((error: unknown) => {
      // Nothing has begun: the journal may be there, or free, another time.
      this.#recovery = null;
      throw error;
    }));
  }

  async #recover(): Promise<ServiceRecovery> {
    const nothing = { resumed: [], ended: [], lost: [] };
    if (!this.#kept || this.#leaving) return nothing;
    const { journal } = this.#kept;
    await journal.claim(this.id);
    try {
      const entries = await journal.read({ scope: this.id });
      // Whoever leaves gives the claim back.
      if (this.#leaving) return nothing;
      return this.#goOn(new ServiceHistory(entries, this.id), this.#kept);
    } catch (error) {
      if (isA(error, UnfoldableEntry) && this.#kept.host.onUnfoldable === 'lose')
        throw await this.#lost(this.#kept, error);
      await this.#release(this.#kept);
      throw error;
    }
  }

  /** The journal has an entry that cannot be taken in, and the app wants the service lost for that. */
  async #lost({ ledger, journal, host }: ServiceKeeping, error: UnfoldableEntry) {
    const entries = await journal.read({ scope: this.id });
    const { seq, event, reason } = error.entry;
    await journal.append({
      scope: this.id,
      unit: this.id,
      seq: (entries.findLast(({ unit }) => unit === this.id)?.seq ?? 0) + 1,
      at: host.environment.clock.now(),
      actor: UNIT,
      definitionVersion: LEDGER_VERSION,
      event: { type: CLOSED, lostBy: { seq, event, reason } } as UnitEvent,
    });
    ledger.unit.dispose();
    return new OffstageError('SERVICE_LOST', `The service "${this.id}" is lost: ${error.message}`, {
      cause: error,
    });
  }

  /** In one go: nobody can leave meanwhile. */
  #goOn(history: ServiceHistory, { ledger, journal, snapshots }: ServiceKeeping): ServiceRecovery {
    const { isNew, folded, awakeMs, units, hasUnreadable } = history;
    ledger.refold(history);
    if (hasUnreadable) snapshots.keepAll();
    const known = history.known && ledger.complete(history.known);
    const { gone = [], histories = {} } = known ?? {};
    const restored = this.restore(restoredUnits(units, known?.subagents), [this.#ports], {
      gone,
      histories,
      awakeMs,
    });
    journal.found(folded);
    ledger.open(isNew);
    this.#isOpen = true;
    this.resume(restored);
    const { live, untold, unread, lost } = restored;
    this.tellAgain(unread);
    return {
      resumed: live.map((record) => record.id),
      ended: [...unread, ...untold].map((record) => record.id),
      lost: lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
    };
  }

  async close(reason?: string): Promise<void> {
    const why = argument('reason', 'close(reason)', reason) ?? 'the service was closed';
    await (this.#leaving ??= this.#close(why));
  }

  async suspend(): Promise<void> {
    if (!this.#kept)
      throw new ConfigurationError(
        'INVALID_STATE',
        'Expected a service with an `id`: no later process could continue this one',
      );
    await (this.#leaving ??= this.#suspend(this.#kept));
  }

  async #close(reason: string): Promise<void> {
    const { id, supervisor, graceMs = DEFAULT_GRACE_MS } = this.#options;
    const { scheduler } = this.#ports.host.environment;
    await new Promise<void>((resolve) => {
      const stopClock = scheduler.schedule(() => this.kill(reason), graceMs);
      this.stop(reason);
      this.whenEnded(() => {
        stopClock();
        this.dispose();
        supervisor.close(id);
        resolve();
      });
    });
    const kept = this.#kept;
    if (!kept) return;
    await this.#briefly('recovery', () => this.#recovered());
    // A service that was never opened goes on another time.
    if (this.#isOpen) await this.#briefly('close', () => kept.ledger.close());
    await this.#briefly('release', () => this.#release(kept));
  }

  async #suspend(kept: ServiceKeeping): Promise<void> {
    const { ledger, snapshots } = kept;
    const { scheduler } = this.#ports.host.environment;
    const isBusy = (): boolean => ledger.unit.isBusy || this.isBusy;
    await this.#recovered();
    if (this.#isOpen) {
      await rested(scheduler, isBusy);
      if (snapshots.takeLast(false)) await rested(scheduler, isBusy);
    }
    this.#isOpen = false;
    this.letGo();
    this.#ports.suspend();
    ledger.unit.dispose();
    this.#options.supervisor.close(this.id);
    await snapshots.whenTrimmed();
    await this.#release(kept);
  }

  /** A journal that answers nothing holds up nobody who closes for longer than the grace. */
  async #briefly(what: string, work: () => Promise<unknown>): Promise<void> {
    const { graceMs: timeoutMs = DEFAULT_GRACE_MS, id } = this.#options;
    const { report, environment } = this.#ports.host;
    const where = `${what} of the journal of ${id}`;
    const late = (): Error =>
      new TimeoutError(`Expected ${where} to be done within ${timeoutMs} ms: it is not waited for`);
    await raceTime(work, { timeoutMs, scheduler: environment.scheduler, late }).catch(
      (error: unknown) => report(error, where),
    );
  }

  /** A claim that is on its way is there before it is given back. */
  async #recovered(): Promise<void> {
    await this.#recovery?.catch(() => {});
  }

  async #release({ journal }: ServiceKeeping): Promise<void> {
    // A later service with its id goes on under the same claim.
    if (this.#leaving && this.#options.supervisor.isOpen(this.id)) return;
    try {
      await journal.release(this.id);
    } catch (error) {
      this.#ports.host.report(error, `journal of ${this.id}`);
    }
  }
}
