// The service of subagents outside a session: for a program, or for an AI SDK agent of one
// that is given `createParentSubagentToolset({ service })`.
//
// Owns:     its scope at the supervisor and in the journal, from `recover` to `close`.
// Does not: run anything (delegation.ts), or put subagents back (restoration.ts).

import type { LanguageModel } from 'ai';
import { ConfigurationError } from '../../errors.ts';
import { splitOutcomeOptions, type OutcomeOptions } from '../outcomes/outcome-options.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { journalOfPassing, type Runtime } from '../runtime/runtime.ts';
import type { BudgetLimits } from '../supervisor/budget-limits.ts';
import { sessionLimits, type SessionLimits } from '../supervisor/limits.ts';
import { Delegation } from './delegation.ts';
import { failure } from './delegation-failure.ts';
import { DEFAULT_GRACE_MS, type DelegationOptions } from './parts.ts';
import { ProgramPorts, type ProgramHandlers } from './program-ports.ts';
import { byUnit, type JournalEntry } from '../ports/journal.ts';
import type { SubagentConfig } from '../subagent/config.ts';
import { restoredUnits } from './restoration.ts';
import { ServiceLedger } from './service-ledger.ts';
import type { SpawnReceipt, SpawnRequest, SubagentService } from './service-types.ts';

export type { SubagentService } from './service-types.ts';

export interface SubagentServiceOptions extends ProgramHandlers, OutcomeOptions {
  readonly runtime: Runtime;
  /**
   * Of the service in the journal: the next service with this id, in another process or after a
   * crash, goes on with its subagents; see `recover`. @defaultValue a new one, which nobody goes on with
   */
  readonly id?: string;
  /** By their names: what subagents go on with after a crash. Those that a tool had spawned are made again by it. */
  readonly configs?: Readonly<Record<string, SubagentConfig>>;
  /** For configurations without a model of their own. */
  readonly model?: LanguageModel;
  /** The tools of the program, out of which a model that spawns may grant. @defaultValue none */
  readonly tools?: Readonly<Record<string, unknown>>;
  /** As for a session, but without a bound on the total over its life, unless one is given. */
  readonly constraints?: Partial<SessionLimits>;
  /** What all subagents may use together. */
  readonly budget?: BudgetLimits;
  /** Those below one that has ended may take so long to stop, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** Learns of what went wrong without ending a run: a throwing hook, a journal that is tried again. */
  readonly onError?: (error: unknown, where: string) => void;
}

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
   * its whole time. What was closed is over. Without an `id`: nothing to find.
   * @throws {OffstageError} for a journal that does not fit; whatever the journal throws.
   */
  recover(): Promise<ServiceRecovery>;
  /**
   * Cancels all, kills who is left after `graceMs`, and resolves when everybody has ended and
   * is disposed; then its `id` begins a new service. Never rejects; safe to call twice.
   */
  close(reason?: string): Promise<void>;
}

/**
 * A service of its own: its subagents are a scope of the runtime, as those of a session are.
 * @throws {ConfigurationError} for a constraint, a budget, a grace or an id that is unknown or out of range.
 */
export function createSubagentService(options: SubagentServiceOptions): OwnedSubagentService {
  const {
    runtime,
    model,
    budget,
    graceMs,
    onError,
    tools,
    configs,
    constraints = {},
    ...rest
  } = options;
  const [outcomes, handlers] = splitOutcomeOptions(rest);
  const { environment, inspect, supervisor } = runtime;
  if (graceMs !== undefined && !(graceMs >= 0))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected graceMs to be at least 0, got ${graceMs}`,
    );
  if (options.id === '')
    throw new ConfigurationError('INVALID_OPTION', 'Expected `id` to be a name, got an empty one');
  const limits = sessionLimits({ maxTotalPerSession: Number.MAX_SAFE_INTEGER, ...constraints });
  const id = options.id ?? environment.ids.next('scope');
  const journal = options.id === undefined ? journalOfPassing(runtime) : runtime.journal;
  const host = createHost({ environment, journal, inspect, onError });
  const ledger = options.id === undefined ? null : new ServiceLedger(id, host);
  const ports = new ProgramPorts({
    host,
    model,
    handlers,
    outcomes,
    ...(tools ? { tools } : {}),
    ...(configs ? { configs } : {}),
    ...(ledger ? { ledger } : {}),
    answersBySend: true,
    tell: (subagentId, event) => service.get(subagentId)?.receive(event),
    answer: (...answer) => service.settleRequest(...answer),
  });
  const service = new OwnedDelegation(
    { id, supervisor, limits, budget, ports, ...(graceMs === undefined ? {} : { graceMs }) },
    ledger,
  );
  supervisor.open(id, limits);
  return service;
}

class OwnedDelegation extends Delegation implements OwnedSubagentService {
  readonly #options: DelegationOptions;
  /** Null: nobody will go on with it. */
  readonly #ledger: ServiceLedger | null;
  #recovery: Promise<ServiceRecovery> | null = null;
  #isOpen: boolean;
  #closed: Promise<void> | null = null;

  constructor(options: DelegationOptions, ledger: ServiceLedger | null) {
    super(options);
    this.#options = options;
    this.#ledger = ledger;
    this.#isOpen = ledger === null;
  }

  override spawn(request: SpawnRequest): SpawnReceipt {
    if (this.#isOpen) return super.spawn(request);
    const message = `The service "${this.id}" takes nobody in before \`recover\``;
    return { status: 'rejected', error: failure('INVALID_STATE', message) };
  }

  recover(): Promise<ServiceRecovery> {
    return (this.#recovery ??= this.#recover());
  }

  async #recover(): Promise<ServiceRecovery> {
    const ledger = this.#ledger;
    const nothing = { resumed: [], ended: [], lost: [] };
    if (!ledger) return nothing;
    const { id, ports } = this.#options;
    const { journal } = ports.host;
    await journal.claim?.(id);
    const entries = await journal.read({ scope: id });
    if (this.#closed) return nothing;
    const begins = ServiceLedger.beginning(id, entries);
    const isOwn = ({ unit }: JournalEntry): boolean => unit === id;
    const units = byUnit(entries.slice(begins));
    ledger.refold(units.get(id) ?? [], entries.slice(0, begins).filter(isOwn).length);
    const restored = this.restore(restoredUnits(units), [ports]);
    ledger.open();
    this.#isOpen = true;
    this.resume(restored);
    const { live, untold, lost } = restored;
    return {
      resumed: live.map((record) => record.id),
      ended: untold.map((record) => record.id),
      lost: lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
    };
  }

  close(reason = 'the service was closed'): Promise<void> {
    return (this.#closed ??= this.#close(reason));
  }

  async #close(reason: string): Promise<void> {
    const { id, supervisor, ports, graceMs = DEFAULT_GRACE_MS } = this.#options;
    const { scheduler } = ports.host.environment;
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
    const ledger = this.#ledger;
    if (!ledger) return;
    // A service that was never opened goes on another time. A journal that takes nothing holds up nobody.
    if (this.#isOpen)
      await new Promise<void>((resolve) => {
        const stopClock = scheduler.schedule(resolve, graceMs);
        void ledger.close().then(() => {
          stopClock();
          resolve();
        });
      });
    await journalReleased(ports.host, id);
  }
}

async function journalReleased(host: Host, id: string): Promise<void> {
  try {
    await host.journal.release?.(id);
  } catch (error) {
    host.report(error, `journal of ${id}`);
  }
}
