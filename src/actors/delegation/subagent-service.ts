// The service of subagents outside a session: for a program, or for an AI SDK agent of one
// that is given `createParentSubagentToolset({ service })`.

import type { LanguageModel } from 'ai';
import { ConfigurationError } from '../../errors.ts';
import { splitOutcomeOptions, type OutcomeOptions } from '../outcomes/outcome-options.ts';
import { createHost } from '../runtime/host.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { BudgetLimits } from '../supervisor/budget-limits.ts';
import { sessionLimits, type SessionLimits } from '../supervisor/limits.ts';
import { Delegation } from './delegation.ts';
import { DEFAULT_GRACE_MS, type DelegationOptions } from './parts.ts';
import { ProgramPorts, type ProgramHandlers } from './program-ports.ts';
import type { SubagentService } from './service-types.ts';

export type { SubagentService } from './service-types.ts';

export interface SubagentServiceOptions extends ProgramHandlers, OutcomeOptions {
  readonly runtime: Runtime;
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

/** A service that somebody owns, and ends. */
export interface OwnedSubagentService extends SubagentService {
  /**
   * Cancels all, kills who is left after `graceMs`, and resolves when everybody has ended and
   * is disposed. Never rejects; safe to call twice.
   */
  close(reason?: string): Promise<void>;
}

/**
 * A service of its own: its subagents are a scope of the runtime, as those of a session are.
 * @throws {ConfigurationError} for a constraint, a budget or a grace that is unknown or out of range.
 */
export function createSubagentService(options: SubagentServiceOptions): OwnedSubagentService {
  const { runtime, model, budget, graceMs, onError, tools, constraints = {}, ...rest } = options;
  const [outcomes, handlers] = splitOutcomeOptions(rest);
  const { environment, journal, inspect, supervisor } = runtime;
  if (graceMs !== undefined && !(graceMs >= 0))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected graceMs to be at least 0, got ${graceMs}`,
    );
  const limits = sessionLimits({ maxTotalPerSession: Number.MAX_SAFE_INTEGER, ...constraints });
  const id = environment.ids.next('scope');
  const host = createHost({ environment, journal, inspect, onError });
  const ports = new ProgramPorts({
    host,
    model,
    handlers,
    outcomes,
    ...(tools ? { tools } : {}),
    answersBySend: true,
    tell: (subagentId, event) => service.get(subagentId)?.receive(event),
    answer: (...answer) => service.settleRequest(...answer),
  });
  const service = new OwnedDelegation({
    id,
    supervisor,
    limits,
    budget,
    ports,
    ...(graceMs === undefined ? {} : { graceMs }),
  });
  supervisor.open(id, limits);
  return service;
}

class OwnedDelegation extends Delegation implements OwnedSubagentService {
  readonly #options: DelegationOptions;
  #closed: Promise<void> | null = null;

  constructor(options: DelegationOptions) {
    super(options);
    this.#options = options;
  }

  close(reason = 'the service was closed'): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      const { id, supervisor, ports, graceMs = DEFAULT_GRACE_MS } = this.#options;
      const stopClock = ports.host.environment.scheduler.schedule(() => this.kill(reason), graceMs);
      this.stop(reason);
      this.whenEnded(() => {
        stopClock();
        this.dispose();
        supervisor.close(id);
        resolve();
      });
    });
    return this.#closed;
  }
}
