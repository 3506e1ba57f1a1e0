// A service of a program, from `recover` to `close` or `suspend`.
//
// Owns:     its scope at the supervisor and in the journal.
// Does not: run anything (delegation.ts), or restore subagents (restoration.ts).
//
// Invariants
//   OWNED-SERVICE-1. A recovery that failed has changed nothing, and holds no claim: it can be tried again.
//   OWNED-SERVICE-2. A suspended service reports no end, and writes down every accepted event.

import { ConfigurationError, isA, OffstageError, TimeoutError } from '../../values/errors.ts';
import { raceTime } from '../runtime/race-abort.ts';
import { whenIdle } from '../runtime/when-idle.ts';
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

/** The result of a recovery. */
export interface ServiceRecovery {
  /** Ids of subagents that continue. */
  readonly resumed: readonly string[];
  /** Ids of ended subagents whose results the program has not had: `await` and `check` return them. */
  readonly ended: readonly string[];
  /** Subagents that cannot continue; each has ended as `lost`. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
}

/** A service whose owner ends it. */
export interface OwnedSubagentService extends SubagentService {
  /**
   * Restores the service with this `id` from the journal and continues it: the first call, also where the
   * journal holds nothing yet. Questions are asked again under their old ids, each with its whole time. A
   * service that was closed stays closed. Without an `id` there is nothing to restore. A failed recovery has
   * changed nothing, and can be repeated.
   * @throws {OffstageError} for a journal that does not fit; the errors of the journal.
   */
  recover(): Promise<ServiceRecovery>;
  /**
   * Writes down accepted events and leaves all subagents to the journal: no end is reported, questions are
   * withdrawn from their handlers, and waits of the program are broken off (`CANCELLED`). The service
   * continues when a service with its `id` recovers, here or in another process.
   * @throws {ConfigurationError} `INVALID_STATE` for a service without an `id`.
   */
  suspend(): Promise<void>;
  /**
   * Cancels all subagents, kills the remaining ones after `graceMs`, and resolves when all have ended and are
   * disposed; then its `id` begins a new service. Safe to call twice. After `suspend` it does nothing.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for a reason that is no text (rejects).
   */
  close(reason?: string): Promise<void>;
}

export class OwnedDelegation extends Delegation implements OwnedSubagentService {
  readonly #options: DelegationOptions;
  readonly #ports: ProgramPorts;
  /** Null for a service without an id: no process continues it. */
  readonly #kept: ServiceKeeping | null;
  #recovery: Promise<ServiceRecovery> | null = null;
  #isOpen: boolean;
  /** The promise of the first `close` or `suspend`. */
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
      // Nothing has begun: the journal may be reachable, or unclaimed, at the next attempt.
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
      // `close` and `suspend` give the claim back.
      if (this.#leaving) return nothing;
      return this.#goOn(new ServiceHistory(entries, this.id), this.#kept);
    } catch (error) {
      if (isA(error, UnfoldableEntry) && this.#kept.host.onUnfoldable === 'lose')
        throw await this.#lost(this.#kept, error);
      await this.#release(this.#kept);
      throw error;
    }
  }

  /** The journal has an entry that cannot be applied, and the app chose to give the service up as lost. */
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

  /** Synchronous: no `close` or `suspend` can intervene. */
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
    // A service that was never opened continues another time.
    if (this.#isOpen) await this.#briefly('close', () => kept.ledger.close());
    await this.#briefly('release', () => this.#release(kept));
  }

  async #suspend(kept: ServiceKeeping): Promise<void> {
    const { ledger, snapshots } = kept;
    const { scheduler } = this.#ports.host.environment;
    const isBusy = (): boolean => ledger.unit.isBusy || this.isBusy;
    await this.#recovered();
    if (this.#isOpen) {
      await whenIdle(scheduler, isBusy);
      if (snapshots.takeLast(false)) await whenIdle(scheduler, isBusy);
    }
    this.#isOpen = false;
    this.release();
    this.#ports.suspend();
    ledger.unit.dispose();
    this.#options.supervisor.close(this.id);
    await snapshots.whenTrimmed();
    await this.#release(kept);
  }

  /** Limits the time for which an unresponsive journal delays a `close` to the grace. */
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

  /** Waits for a claim that is on its way before it is given back. */
  async #recovered(): Promise<void> {
    await this.#recovery?.catch(() => {});
  }

  async #release({ journal }: ServiceKeeping): Promise<void> {
    // A later service with its id continues under the same claim.
    if (this.#leaving && this.#options.supervisor.isOpen(this.id)) return;
    try {
      await journal.release(this.id);
    } catch (error) {
      this.#ports.host.report(error, `journal of ${this.id}`);
    }
  }
}
