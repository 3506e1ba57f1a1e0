// Companions: long-lived subagents that their parent talks to repeatedly.
//
// Owns:     the schemas of these tools, the companions' names and owners, and the choice of whether a message goes to
//           the current run or starts the next one.
// Does not: keep history or run anything. Each companion has its own configuration with `lifetime: 'session'`, so the
//           service keeps its history between runs until `companion__terminateChild` removes the companion.
//
// Invariants
//   COMPANIONS-1. A companion works on one task at a time. A message that arrives during a run is read by that run. A
//       message that the run did not read, or that arrives after the run, starts the next run, which knows the history
//       of all earlier runs. If a companion is asking a question, a message to the companion is the answer.
//   COMPANIONS-2. An agent sees only the companions that it spawned itself.
//   COMPANIONS-3. After a crash, an agent still has its companions and their history. An interrupted call is repeated
//       unless it sends a message, because the companion would then read the message twice.
//   COMPANIONS-4. When an agent ends, its companions are removed, because no other agent could reach them.
//   COMPANIONS-5. After a crash, an agent's companions are restored from their runs. Their names and the number of
//       companions of each type are restored too. A companion that was dismissed while it was idle reappears, however.

import type { Toolset } from '../actors/contracts/task.ts';
import { tool, zodSchema } from 'ai';
import { filter, firstValueFrom } from 'rxjs';
import { z } from 'zod';
import { check } from '../values/checks.ts';
import { readable } from '../values/plain-checks.ts';
import { ConfigurationError } from '../values/errors.ts';
import { type SubagentConfig } from '../actors/contracts/config.ts';
import { awaitEnd, inScope, type ToolScope } from '../actors/subagents/toolsets/toolset-scope.ts';
import {
  AT_ITS_SESSION,
  DELEGATES,
  marked,
  recipeOf,
  reconfigures,
} from '../actors/model/tool-flags.ts';
import { checkView, USER_SPOKE } from '../actors/subagents/toolsets/parent-views.ts';
import {
  programChecks,
  programService,
  type ProgramOptions,
} from '../actors/subagents/subagent-service.ts';
import {
  THE_LEAD,
  type Requester,
  type SubagentChunk,
  type SubagentReport,
  type SubagentService,
} from '../actors/contracts/service-types.ts';
import { IS_WANTED } from '../actors/subagents/session-instances.ts';
import { checkSubagentConfig } from '../actors/subagent/config.ts';
import { toolFailure, type ToolFailure } from '../actors/model/tool-results.ts';

/** A type of companion. */
export interface CompanionAgent {
  /** The companion's configuration. */
  readonly agent: SubagentConfig;
  /**
   * `blocking`: an agent that spawns the companion or sends it a message waits for its result. `background`: the
   * companion works while its parent continues. @defaultValue 'background'
   */
  readonly mode?: 'blocking' | 'background';
}

const agentIdSchema = z
  .string()
  .min(1)
  .max(200)
  .describe('The agentId that companion__spawnAgent gave');
const words = z.string().trim().min(1).max(100_000);

/** The values from which a companion's configuration is restored. */
const recipe = z.object({ agentType: z.string(), agentId: z.string() });
const RECIPE = 'companion';

interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
}

/** The tools of an agent that has companions. */
export type CompanionTools = Toolset<
  | 'companion__spawnAgent'
  | 'companion__sendMessage'
  | 'companion__listChildren'
  | 'companion__getChildStatus'
  | 'companion__terminateChild'
> &
  /** Present if any companion is `blocking`. */
  Partial<Toolset<'companion__waitForResult'>>;

const agentsSchema = z.array(
  z.custom<CompanionAgent>(
    (value) => typeof (value as Partial<CompanionAgent> | null)?.agent?.name === 'string',
    'expected `{ agent }`, a subagent with a name',
  ),
);

/**
 * Creates AI SDK tools that let an agent spawn and use companions of these types. `companion__waitForResult` exists if
 * any type is `blocking`.
 * @throws {ConfigurationError} if there are no agents, if two have the same name, or if one is invalid.
 */
export function companions(
  agents: readonly CompanionAgent[],
  options: ProgramOptions = {},
): CompanionTools {
  check('companions(agents)', agentsSchema, agents);
  const given = readable('companions(agents, options)', options);
  check('companions(agents, options)', z.strictObject(programChecks), given);
  const { model } = given;
  const types = new Map(
    agents.map(({ agent, mode }): [string, CompanionAgent] => [
      agent.name,
      { agent: model ? { model, ...agent } : agent, ...(mode && { mode }) },
    ]),
  );
  if (types.size !== agents.length || agents.length === 0)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `companions: expected agents with names of their own, got ${JSON.stringify(agents.map(({ agent }) => agent.name))}`,
    );
  for (const { agent } of agents) checkSubagentConfig(agent, `companions.${agent.name}`);
  /** The configurations of an earlier process's companions. All runs of a companion share one configuration object. */
  const recalled = new Map<string, SubagentConfig>();
  const configOf = (agentType: string, id: string): SubagentConfig => {
    const known = recalled.get(id);
    if (known) return known;
    const { agent } = types.get(agentType) as CompanionAgent;
    const config = companionConfig(agent, id);
    recalled.set(id, config);
    return config;
  };
  const answer = <T>(call: CallOptions, work: (scope: ToolScope) => T | Promise<T>) =>
    inScope(call, programService(options), (scope) => {
      recallCompanions(scope.service, scope.requester, types, configOf);
      return work(scope);
    });
  const tools = {
    companion__spawnAgent: marked(
      tool({
        description: `Start a companion and tell it what to do. Types: ${describe(agents)}. A blocking one answers with what it found; any other works in the background.`,
        inputSchema: zodSchema(
          z.object({
            agentType: z.enum([...types.keys()] as [string, ...string[]]),
            message: words,
          }),
        ),
        execute: ({ agentType, message }, call: CallOptions) =>
          answer(call, (scope) => {
            const type = types.get(agentType) as CompanionAgent;
            return begin(scope, makeCompanion(scope.service, type), message, call);
          }),
      }),
      {
        [DELEGATES]: true as const,
        ...reconfigures(RECIPE, recipe, ({ agentType, agentId: id }) =>
          types.has(agentType) ? configOf(agentType, id) : null,
        ),
      },
    ),
    companion__sendMessage: marked(
      tool({
        description: 'Tell a companion something more. It remembers what it did before.',
        inputSchema: zodSchema(z.object({ agentId: agentIdSchema, message: words })),
        execute: ({ agentId: id, message }, call: CallOptions) =>
          answer(call, (scope) =>
            withCompanion(scope, id, (companion) => tell(scope, companion, message, call)),
          ),
      }),
      { [DELEGATES]: true as const, idempotent: false },
    ),
    companion__listChildren: marked(
      tool({
        description: 'Your companions and how they are.',
        inputSchema: zodSchema(z.object({})),
        execute: (_, call: CallOptions) =>
          answer(call, (scope) => ({
            children: companionsOf(scope.service, scope.requester).map((companion) => ({
              ...nameOf(companion),
              status: isWorking(scope, companion) ? ('running' as const) : ('idle' as const),
            })),
          })),
      }),
      { ...AT_ITS_SESSION, idempotent: true },
    ),
    companion__getChildStatus: marked(
      tool({
        description: 'How a companion is: its status, progress, and its latest result.',
        inputSchema: zodSchema(z.object({ agentId: agentIdSchema })),
        execute: ({ agentId: id }, call: CallOptions) =>
          answer(call, (scope) =>
            withCompanion(scope, id, (companion) => {
              const checked = scope.service.check(companion.subagentId, scope.requester);
              return checked.ok
                ? { ...checkView(scope.service, checked.report), ...nameOf(companion) }
                : { ...nameOf(companion), status: 'idle' as const };
            }),
          ),
      }),
      { ...AT_ITS_SESSION, idempotent: true },
    ),
    companion__terminateChild: marked(
      tool({
        description: 'End a companion for good.',
        inputSchema: zodSchema(z.object({ agentId: agentIdSchema, reason: words.optional() })),
        execute: ({ agentId: id, reason = 'Terminated by parent' }, call: CallOptions) =>
          answer(call, (scope) =>
            withCompanion(scope, id, ({ subagentId }) => {
              forgetCompanion(scope.service, scope.requester, id);
              scope.service.cancel(subagentId, scope.requester, reason);
              return { terminated: true };
            }),
          ),
      }),
      { ...AT_ITS_SESSION, idempotent: true },
    ),
  };
  if (!agents.some(({ mode }) => mode === 'blocking')) return tools;
  return {
    ...tools,
    companion__waitForResult: marked(
      tool({
        description: 'Wait for the result of a companion.',
        inputSchema: zodSchema(z.object({ agentId: agentIdSchema })),
        execute: ({ agentId: id }, call: CallOptions) =>
          answer(call, (scope) =>
            withCompanion(scope, id, (companion) => finding(scope, companion, call)),
          ),
      }),
      { [DELEGATES]: true as const },
    ),
  };
}

/** Starts a run of a companion. If the companion is blocking, waits for its result. */
async function begin(
  scope: ToolScope,
  companion: NewCompanion,
  message: string,
  call: CallOptions,
): Promise<unknown> {
  const { service, requester, idempotencyKey } = scope;
  const { config, agentType } = companion;
  const receipt = service.spawn({
    config,
    task: { toolName: agentType, args: {}, description: message },
    caller: requester,
    callId: call.toolCallId,
    recipe: recipeOf(RECIPE, { agentType, agentId: companion.agentId }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  if (receipt.status === 'rejected') return toolFailure(receipt.error.code, receipt.error.message);
  const { subagentId } = receipt;
  // A repeated call refers to the companion that the first call started.
  const known = receipt.isRepeat
    ? companionsOf(service, requester).find((own) => own.subagentId === subagentId)
    : undefined;
  const begun: Companion = known ?? { ...companion, subagentId };
  keepCompanion(service, requester, begun);
  return begun.isBlocking ? finding(scope, begun, call) : { ...nameOf(begun), status: 'running' };
}

async function tell(
  scope: ToolScope,
  companion: Companion,
  message: string,
  call: CallOptions,
): Promise<unknown> {
  const { service, requester } = scope;
  const { agentId: id, subagentId, isBlocking } = companion;
  const request = reportOf(scope, companion)?.pendingRequest;
  const how = request ? { inResponseTo: request.requestId } : { mode: 'queue' as const };
  const sent = service.send(subagentId, { content: message, ...how }, requester);
  // The companion's run has ended, perhaps long ago.
  if (!sent.ok) return begin(scope, companion, message, call);
  let isUnread = false;
  const settled = sent.receipt.then(({ applied }) => {
    isUnread = !applied;
  });
  const again = () => withCompanion(scope, id, (own) => tell(scope, own, message, call));
  if (!isBlocking) {
    void settled.then(async () => {
      if (isUnread) await hasEnded(scope, companion).then(again);
    });
    return { ...nameOf(companion), status: 'running' };
  }
  const found = await finding(scope, companion, call);
  return isUnread && !isWorking(scope, companion) ? again() : found;
}

async function finding(
  { service, requester }: ToolScope,
  companion: Companion,
  { abortSignal: signal }: CallOptions,
): Promise<unknown> {
  const { subagentId } = companion;
  const ended = await awaitEnd(service, subagentId, requester, {
    questions: 'return',
    signal,
    heedsUser: true,
  });
  if (!ended.ok) return toolFailure(ended.error.code, ended.error.message);
  const { report } = ended;
  // The run has neither ended nor asked a question. The wait ended because the user spoke.
  const works = report.endedAt === null && !report.pendingRequest;
  return { ...checkView(service, report), ...nameOf(companion), ...(works ? USER_SPOKE : {}) };
}

function withCompanion<T>(
  { service, requester }: ToolScope,
  id: string,
  work: (companion: Companion) => T,
): T | ToolFailure {
  const companion = companionsOf(service, requester).find((own) => own.agentId === id);
  return companion ? work(companion) : toolFailure('NOT_FOUND', `You have no companion "${id}"`);
}

function nameOf({ agentId: id, agentType, isBlocking }: Companion) {
  return { agentId: id, agentType, mode: isBlocking ? 'blocking' : 'background' } as const;
}

function isWorking(scope: ToolScope, companion: Companion): boolean {
  return reportOf(scope, companion)?.endedAt === null;
}

async function hasEnded(scope: ToolScope, companion: Companion): Promise<void> {
  if (!isWorking(scope, companion)) return;
  const isEnd = ({ type, subagentId }: SubagentChunk): boolean =>
    type === 'ended' && subagentId === companion.subagentId;
  await firstValueFrom(scope.service.events.pipe(filter(isEnd)), { defaultValue: null });
}

/**
 * Returns the report on the companion's latest run, as long as the service keeps that run. Listing a result does not
 * mark it as delivered.
 */
function reportOf(
  { service, requester }: ToolScope,
  { subagentId }: Companion,
): SubagentReport | undefined {
  return service.list(requester, { includeEnded: true }).find(({ id }) => id === subagentId);
}

function describe(agents: readonly CompanionAgent[]): string {
  return agents.map(({ agent, mode = 'background' }) => `${agent.name} (${mode})`).join(', ');
}

// Each agent's companions, by service.

interface Companion {
  /** The name by which the parent knows the companion: `<type>-<n>`. */
  readonly agentId: string;
  readonly agentType: string;
  readonly isBlocking: boolean;
  readonly config: SubagentConfig;
  /** The id of the companion's latest run. */
  readonly subagentId: string;
}

/** A companion that has not run yet. */
type NewCompanion = Omit<Companion, 'subagentId'>;

interface CompanionRegistry {
  readonly counts: Map<string, number>;
  readonly owned: Map<string | null, Map<string, Companion>>;
  /** The names in use, across all owners. */
  readonly names: Set<string>;
  /** The owners whose runs from an earlier process have already been examined. */
  readonly recalled: Set<string>;
}

/** The keys are weak, so a registry is released together with its service. */
const registries = new WeakMap<SubagentService, CompanionRegistry>();

function registryOf(service: SubagentService): CompanionRegistry {
  const registry = registries.get(service) ?? {
    counts: new Map(),
    owned: new Map(),
    names: new Set(),
    recalled: new Set(),
  };
  registries.set(service, registry);
  return registry;
}

/** Creates a companion that has no history. */
function makeCompanion(service: SubagentService, type: CompanionAgent): NewCompanion {
  const { counts, names } = registryOf(service);
  const { name } = type.agent;
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  const agentId = `${name}-${count}`;
  const config = companionConfig(type.agent, agentId);
  return companionOf(type, {
    ...config,
    [IS_WANTED]: () => names.has(agentId),
  } as SubagentConfig);
}

/** Returns a companion's configuration. All its runs use the same object, so that they share an instance. */
function companionConfig(agent: SubagentConfig, agentId: string): SubagentConfig {
  return { context: 'none', ...agent, name: agentId, lifetime: 'session' };
}

function companionOf({ agent, mode }: CompanionAgent, config: SubagentConfig): NewCompanion {
  const agentType = agent.name;
  return { agentId: config.name, agentType, isBlocking: mode === 'blocking', config };
}

/**
 * Restores an owner's companions from the runs of an earlier process. This happens once per owner. `configOf` returns
 * their configurations.
 */
function recallCompanions(
  service: SubagentService,
  { subagentId: owner }: Requester,
  types: ReadonlyMap<string, CompanionAgent>,
  configOf: (agentType: string, agentId: string) => SubagentConfig,
): void {
  const { recalled, counts } = registryOf(service);
  const whose = [owner, ...types.keys()].join('/');
  if (recalled.has(whose)) return;
  recalled.add(whose);
  for (const run of service.list(THE_LEAD, { includeEnded: true })) {
    const { id, name, toolName, parentId, state } = run;
    const type = types.get(toolName);
    const count = Number(name.slice(toolName.length + 1));
    if (!type || name !== `${toolName}-${count}`) continue;
    counts.set(toolName, Math.max(counts.get(toolName) ?? 0, count));
    if (parentId !== owner) continue;
    // If the run was cancelled, the companion was dismissed.
    if (state === 'cancelled') forgetCompanion(service, { subagentId: owner }, name);
    else
      keepCompanion(
        service,
        { subagentId: owner },
        { ...companionOf(type, configOf(toolName, name)), subagentId: id },
      );
  }
}

function keepCompanion(
  service: SubagentService,
  { subagentId: owner }: Requester,
  companion: Companion,
): void {
  const { owned, names } = registryOf(service);
  forgetOrphans(service);
  const own = owned.get(owner) ?? new Map<string, Companion>();
  owned.set(owner, own);
  own.set(companion.agentId, companion);
  names.add(companion.agentId);
}

/** Returns the owner's companions, oldest first. */
function companionsOf(service: SubagentService, owner: Requester): readonly Companion[] {
  return [...(registryOf(service).owned.get(owner.subagentId)?.values() ?? [])];
}

function forgetCompanion(
  service: SubagentService,
  { subagentId: owner }: Requester,
  agentId: string,
): void {
  const { owned, names } = registryOf(service);
  const own = owned.get(owner);
  own?.delete(agentId);
  names.delete(agentId);
  if (own?.size === 0) owned.delete(owner);
}

function forgetOrphans(service: SubagentService): void {
  const live = new Set(service.list(THE_LEAD).map(({ id }) => id));
  for (const [owner, own] of registryOf(service).owned)
    if (owner !== null && !live.has(owner))
      for (const agentId of own.keys()) forgetCompanion(service, { subagentId: owner }, agentId);
}
