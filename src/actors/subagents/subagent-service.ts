// The subagent service outside a session: for a program, or for a program's AI SDK agent with
// `createParentSubagentToolset({ service })`.
//
// Owns:     the options of a program's service, its scope at the supervisor and in the journal from `recover` to
//           `close` or `suspend`, and the service that the tools of one runtime share.
// Does not: run anything (subagent-tree.ts), or restore subagents (restoration.ts).
//
// Invariants
//   OWNED-SERVICE-1. A recovery that fails does not change anything and does not claim the id, so it can be repeated.
//   OWNED-SERVICE-2. A suspended service does not report the end of any subagent, but it writes every event that it has
//       accepted.

import type { LanguageModel } from 'ai';
import { z } from 'zod';
import {
  aFunction,
  anObject,
  check,
  checkEnvironment,
  scopeName,
  type ChecksOf,
} from '../../values/checks.ts';
import { ConfigurationError, isA, TimeoutError } from '../../values/errors.ts';
import { checkIsObject, readable } from '../../values/plain-checks.ts';
import {
  outcomeChecks,
  splitOutcomeOptions,
  type OutcomeOptions,
} from '../../results/outcome-processor.ts';
import { sessionLimits, type SessionLimits } from '../admission/limits.ts';
import { journalOfPassing, type Runtime } from '../admission/runtime.ts';
import type { BudgetLimits, SubagentConfig } from '../contracts/config.ts';
import { checkNeeds } from '../subagent/define-subagent.ts';
import type { SpawnReceipt, SpawnRequest, SubagentService } from '../contracts/service-types.ts';
import { aModel } from '../model/model.ts';
import { createHost } from '../runtime/host.ts';
import { raceTime } from '../../values/race-abort.ts';
import { UnfoldableEntry } from '../runtime/quarantine.ts';
import {
  handlerChecks,
  ProgramPorts,
  type ProgramHandlers,
  type ProgramPortsOptions,
} from './program-ports.ts';
import { failure, idReused, isOther } from './refusal.ts';
import { restoredUnits } from './restoration.ts';
import { argument } from './service-arguments.ts';
import {
  CLOSED,
  LEDGER_VERSION,
  readServiceHistory,
  ServiceLedger,
  type ServiceHistory,
} from './service-ledger.ts';
import { DEFAULT_GRACE_MS, type SubagentTreeOptions } from './subagent-host.ts';
import { SubagentTree } from './subagent-tree.ts';
import { reporter } from '../../values/reporter.ts';

export type { SubagentService } from '../contracts/service-types.ts';

/** The options of `createSubagentService`. */
export interface SubagentServiceOptions extends ProgramHandlers, OutcomeOptions {
  /** The runtime that the subagents belong to. */
  readonly runtime: Runtime;
  /**
   * The service's id in the journal. The next service with this id, in another process or after a crash, continues its
   * subagents by calling `recover`. @defaultValue a new id, which no process continues
   */
  readonly id?: string;
  /**
   * Configurations by name, which subagents need to continue after a crash. If a tool spawned the subagent, the tool
   * restores the configuration.
   */
  readonly configs?: Readonly<Record<string, SubagentConfig>>;
  /** The model for configurations that do not specify one. */
  readonly model?: LanguageModel;
  /** The program's tools, which a model may grant to the subagents that it spawns. @defaultValue none */
  readonly tools?: Readonly<Record<string, unknown>>;
  /** Limits, as for a session. @defaultValue the limits of a session, without a limit on the total number */
  readonly constraints?: Partial<SessionLimits>;
  /** The budget that all subagents share. */
  readonly budget?: BudgetLimits;
  /** How long the descendants of a subagent that has ended may take to stop, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** Receives errors that do not end a run, such as a hook that throws an error or a journal append that is retried. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** The result of a recovery. */
export interface ServiceRecovery {
  /** The ids of subagents that continue. */
  readonly resumed: readonly string[];
  /** The ids of ended subagents whose results the program has not received: `await` and `check` return them. */
  readonly ended: readonly string[];
  /** Subagents that cannot continue. Each has ended as `lost`. */
  readonly lost: readonly { readonly subagentId: string; readonly reason: string }[];
}

/** A service that its owner must close or suspend. */
export interface OwnedSubagentService extends SubagentService {
  /**
   * Restores the service with this `id` from the journal and resumes it. This must be the first call, even if the
   * journal does not contain the service yet. Open questions are asked again with the same ids and their full time
   * limits. A closed service is not restored. Without an `id`, there is nothing to restore. A recovery that fails does
   * not change anything and can be repeated.
   * @throws {OffstageError} if the journal cannot be folded; the errors of the journal.
   */
  recover(): Promise<ServiceRecovery>;
  /**
   * Writes all accepted events and suspends all subagents: their ends are not reported, the signals of pending
   * questions abort, and the program's waits end (`CANCELLED`). The service resumes when a service with its `id`
   * recovers, in this or another process.
   * @throws {ConfigurationError} `INVALID_STATE` if the service has no `id`.
   */
  suspend(): Promise<void>;
  /**
   * Cancels all subagents, kills those that are still running after `graceMs`, and resolves when all have ended and
   * been disposed. After that, a new service may use the `id`. Further calls have no effect, and neither does a call
   * after `suspend`.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if the reason is not a string (rejects).
   */
  close(reason?: string): Promise<void>;
}

const runtimeSchema = z.custom<Runtime>(
  (value) => typeof (value as Partial<Runtime> | null)?.supervisor === 'object',
  'expected `runtime` to be one of createRuntime(…)',
);

const schema = z.strictObject({
  ...handlerChecks,
  ...outcomeChecks,
  runtime: anObject('a runtime: createRuntime(…)'),
  // The options that follow are validated by other functions.
  id: z.unknown().optional(),
  constraints: z.unknown().optional(),
  budget: z.unknown().optional(),
  graceMs: z.unknown().optional(),
  configs: anObject('configurations by their names').optional(),
  model: aModel.optional(),
  tools: anObject('tools by their names').optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<SubagentServiceOptions>);

/**
 * Creates a service. The service's subagents form a separate scope of the runtime, as a session's subagents do.
 * @throws {ConfigurationError} if a constraint, a budget, a grace period or an id is unknown or out of range.
 */
export function createSubagentService(options: SubagentServiceOptions): OwnedSubagentService {
  const where = 'createSubagentService(options)';
  checkIsObject(where, options, 'createSubagentService({ runtime: createRuntime(), model })');
  const given = readable(where, options);
  check(where, schema, given);
  const { model, runtime, configs = {} } = given;
  const { jobs, price } = runtime;
  for (const [key, config] of Object.entries(configs))
    checkNeeds(`configs.${key}`, config, { model, jobs, price });
  return ownedService(given);
}

/**
 * Creates the service, including the methods that only the runtime needs. `own`: see `ProgramPortsOptions`. `digest`:
 * the digest of the service's only request, if the service's id identifies a request.
 */
export function ownedService(
  options: SubagentServiceOptions,
  own: Pick<ProgramPortsOptions, 'askedAt' | 'terms' | 'onNews'> = {},
  digest?: string,
): OwnedSubagentTree {
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
  const { environment, inspect, price, supervisor, onUnfoldable } = check(
    'createSubagentService',
    runtimeSchema,
    runtime,
  );
  checkEnvironment('createSubagentService: `runtime.environment`', environment);
  check('createSubagentService: `graceMs`', z.number().nonnegative().optional(), graceMs);
  check('createSubagentService: `id`', scopeName.optional(), options.id);
  const limits = sessionLimits({
    maxTotalPerSession: Number.MAX_SAFE_INTEGER,
    ...readable('constraints', constraints),
  });
  const { id = environment.ids.next('scope') } = options;
  const ledger =
    options.id === undefined
      ? null
      : new ServiceLedger(id, runtime, reporter(onError), {
          toSnapshot: () => service.toSnapshot(),
          get isTakenOver() {
            return service.isTakenOver;
          },
        });
  const host =
    ledger?.host ??
    createHost({
      environment,
      journal: journalOfPassing(runtime),
      price,
      inspect,
      onError: reporter(onError),
      onUnfoldable,
    });
  const ports = new ProgramPorts({
    host,
    model,
    handlers,
    outcomes,
    tools,
    configs,
    ledger: ledger ?? undefined,
    ...own,
    answersBySend: true,
    tree: () => service,
  });
  const service = new OwnedSubagentTree(
    { id, supervisor, limits, budget, ports, graceMs, digest },
    ports,
    ledger,
  );
  supervisor.open(id, limits);
  return service;
}

type OwnedTreeOptions = SubagentTreeOptions & { readonly digest: string | undefined };

export class OwnedSubagentTree extends SubagentTree implements OwnedSubagentService {
  readonly #options: OwnedTreeOptions;
  readonly #ports: ProgramPorts;
  /** Null for a service without an id, which no process continues. */
  readonly #ledger: ServiceLedger | null;
  #recovery: Promise<ServiceRecovery> | null = null;
  #isOpen: boolean;
  /** The promise that the first `close` or `suspend` returned. */
  #leaving: Promise<void> | null = null;

  constructor(options: OwnedTreeOptions, ports: ProgramPorts, ledger: ServiceLedger | null) {
    super({ ...options, ports });
    this.#options = options;
    this.#ports = ports;
    this.#ledger = ledger;
    this.#isOpen = ledger === null;
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
      // Nothing has been started, so the next attempt may succeed if the journal is reachable then or the claim has
      // been released.
      this.#recovery = null;
      throw error;
    }));
  }

  async #recover(): Promise<ServiceRecovery> {
    const nothing = { resumed: [], ended: [], lost: [] };
    const ledger = this.#ledger;
    if (!ledger || this.#leaving) return nothing;
    const { journal, host, unit } = ledger;
    const entries = await journal.open(this.id, host);
    // `close` and `suspend` release the claim.
    if (this.#leaving) return nothing;
    try {
      return this.#continue(readServiceHistory(entries, this.id), ledger);
    } catch (error) {
      if (!isA(error, UnfoldableEntry) || host.onUnfoldable !== 'lose') {
        void journal.releaseSafely(this.id, host);
        throw error;
      }
      const { seq, event, reason } = error.entry;
      const closed = { type: CLOSED, lostBy: { seq, event, reason } };
      unit.dispose();
      const lost = { id: this.id, host, version: LEDGER_VERSION };
      throw await journal.lose(lost, 'service', closed, error);
    }
  }

  /** Synchronous, so that `close` or `suspend` cannot be called in between. */
  #continue(history: ServiceHistory, ledger: ServiceLedger): ServiceRecovery {
    const { isNew, folded, awakeMs, units, hasUnreadable } = history;
    const { digest = '' } = this.#options;
    // Subagents of another request are not continued.
    for (const { birth } of restoredUnits(units, history.known?.subagents).values())
      if (birth.idempotencyKey === this.id && isOther(birth.requestDigest, digest))
        throw idReused(this.id);
    ledger.refold(history);
    if (hasUnreadable) ledger.snapshots.keepAll();
    const known = history.known && ledger.complete(history.known);
    const { gone = [], histories = {} } = known ?? {};
    const restored = this.restore(restoredUnits(units, known?.subagents), [this.#ports], {
      gone,
      histories,
      awakeMs,
    });
    ledger.journal.found(folded);
    ledger.open(isNew);
    this.#isOpen = true;
    this.resume(restored);
    const { live, pending, unread, lost } = restored;
    this.repeatEnds(unread);
    return {
      resumed: live.map((record) => record.id),
      ended: [...unread, ...pending].map((record) => record.id),
      lost: lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
    };
  }

  async close(reason?: string): Promise<void> {
    const why = argument('reason', 'close(reason)', reason) ?? 'the service was closed';
    await (this.#leaving ??= this.#close(why));
  }

  async suspend(): Promise<void> {
    if (!this.#ledger)
      throw new ConfigurationError(
        'INVALID_STATE',
        'Expected a service with an `id`: no later process could continue this one',
      );
    await (this.#leaving ??= this.#suspend(this.#ledger));
  }

  /** Leaves the service like `suspend` but takes no snapshot, because the journal contains all entries. */
  async leave(): Promise<void> {
    await (this.#leaving ??= this.#ledger ? this.#suspend(this.#ledger, false) : Promise.resolve());
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
    const ledger = this.#ledger;
    if (!ledger) return;
    await this.#briefly('recovery', () => this.#recovered());
    // A service that was never opened can be continued later.
    if (this.#isOpen) await this.#briefly('close', () => ledger.close());
    await this.#briefly('release', () => ledger.journal.releaseSafely(this.id, ledger.host));
  }

  async #suspend(ledger: ServiceLedger, isTaken = true): Promise<void> {
    const { snapshots } = ledger;
    await this.#recovered();
    if (this.#isOpen && isTaken) await snapshots.takeLast(() => ledger.unit.isBusy || this.isBusy);
    this.#isOpen = false;
    this.release();
    this.#ports.suspend();
    ledger.unit.dispose();
    this.#options.supervisor.close(this.id);
    await snapshots.whenTrimmed();
    await ledger.journal.releaseSafely(this.id, ledger.host);
  }

  /** An unresponsive journal can delay a `close` by at most the grace period. */
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

  /** Waits for a recovery that is in progress, and then releases its claim. */
  async #recovered(): Promise<void> {
    await this.#recovery?.catch(() => {});
  }

  get isTakenOver(): boolean {
    return this.#leaving !== null && this.#options.supervisor.isOpen(this.id);
  }
}

/** The options that determine which subagent service is used outside a session. */
export interface ProgramOptions {
  /** A service with its own limits, which its owner closes: `createSubagentService(…)`. */
  readonly service?: SubagentService;
  /** An alternative to a service: all tools with this runtime share one service, which ends with the process. */
  readonly runtime?: Runtime;
  /** The model for subagents that do not specify one. */
  readonly model?: LanguageModel;
}

export const programChecks = {
  service: anObject('a service: createSubagentService(…)', 'spawn').optional(),
  runtime: anObject('a runtime: createRuntime(…)').optional(),
  model: aModel.optional(),
} satisfies ChecksOf<ProgramOptions>;

const shared = new WeakMap<Runtime, SubagentService>();

/** Returns the service. If the program has not passed one, returns undefined, and the tool works only in a session. */
export function programService({ service, runtime }: ProgramOptions): SubagentService | undefined {
  if (service || !runtime) return service;
  const known = shared.get(runtime);
  if (known) return known;
  const created = createSubagentService({ runtime });
  shared.set(runtime, created);
  return created;
}
