// The service of subagents outside a session: for a program, or for a program's AI SDK agent that has
// `createParentSubagentToolset({ service })`.
//
// Owns:     the options of a program's service, and its parts.
// Does not: begin or end it (owned-service.ts), or run anything (delegation.ts).

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
import { checkIsObject, readable } from '../../values/plain-checks.ts';
import { aModel } from '../model/model.ts';
import {
  outcomeChecks,
  splitOutcomeOptions,
  type OutcomeOptions,
} from '../../results/outcome-options.ts';
import { createHost } from '../runtime/host.ts';
import { journalOfPassing, type Runtime } from '../admission/runtime.ts';
import type { SubagentConfig, BudgetLimits } from '../contracts/config.ts';
import { sessionLimits, type SessionLimits } from '../admission/limits.ts';
import { OwnedDelegation, type OwnedSubagentService } from './owned-service.ts';
import { handlerChecks, ProgramPorts, type ProgramHandlers } from './program-ports.ts';
import { ServiceKeeping } from './service-keeping.ts';

export type { OwnedSubagentService, ServiceRecovery } from './owned-service.ts';
export type { SubagentService } from '../contracts/service-types.ts';

export interface SubagentServiceOptions extends ProgramHandlers, OutcomeOptions {
  readonly runtime: Runtime;
  /**
   * Id of the service in the journal: the next service with this id, in another process or after a crash,
   * continues its subagents; see `recover`. @defaultValue a new id, which no process continues
   */
  readonly id?: string;
  /**
   * Configurations by name, with which subagents continue after a crash. The tool that spawned a subagent
   * rebuilds the configuration itself.
   */
  readonly configs?: Readonly<Record<string, SubagentConfig>>;
  /** The model of configurations without a model of their own. */
  readonly model?: LanguageModel;
  /** The tools of the program, out of which a model that spawns may grant. @defaultValue none */
  readonly tools?: Readonly<Record<string, unknown>>;
  /** Limits as for a session, but without a bound on the total over its life, unless one is given. */
  readonly constraints?: Partial<SessionLimits>;
  /** The budget of all subagents together. */
  readonly budget?: BudgetLimits;
  /** Time that the descendants of an ended subagent may take to stop, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /** Receives errors that end no run: a throwing hook, a journal that is tried again. */
  readonly onError?: (error: unknown, where: string) => void;
}

const runtimeSchema = z.custom<Runtime>(
  (value) => typeof (value as Partial<Runtime> | null)?.supervisor === 'object',
  'expected `runtime` to be one of createRuntime(…)',
);

const schema = z.strictObject({
  ...handlerChecks,
  ...outcomeChecks,
  runtime: anObject('a runtime: createRuntime(…)'),
  // The following options are checked where they are used.
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
 * Creates a service of its own: its subagents are a scope of the runtime, as those of a session are.
 * @throws {ConfigurationError} for a constraint, a budget, a grace or an id that is unknown or out of range.
 */
export function createSubagentService(options: SubagentServiceOptions): OwnedSubagentService {
  const where = 'createSubagentService(options)';
  checkIsObject(where, options, 'createSubagentService({ runtime: createRuntime(), model })');
  const given = readable(where, options);
  check(where, schema, given);
  return ownedService(given);
}

/** Creates the service with the methods that only the runtime needs. */
export function ownedService(options: SubagentServiceOptions): OwnedDelegation {
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
  const { environment, inspect, supervisor, onUnfoldable } = check(
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
  const keeping =
    options.id === undefined
      ? null
      : new ServiceKeeping(id, runtime, onError, () => service.toSnapshot());
  const host =
    keeping?.host ??
    createHost({ environment, journal: journalOfPassing(runtime), inspect, onError, onUnfoldable });
  const ports = new ProgramPorts({
    host,
    model,
    handlers,
    outcomes,
    ...(tools ? { tools } : {}),
    ...(configs ? { configs } : {}),
    ...(keeping ? { ledger: keeping.ledger } : {}),
    answersBySend: true,
    tell: (subagentId, event) => service.get(subagentId)?.receive(event),
    answer: (...answer) => service.settleRequest(...answer),
  });
  const service = new OwnedDelegation(
    { id, supervisor, limits, budget, ports, ...(graceMs === undefined ? {} : { graceMs }) },
    ports,
    keeping,
  );
  supervisor.open(id, limits);
  return service;
}
