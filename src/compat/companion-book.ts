// The companions of each agent: their names, and the latest run of each.
//
// Owns:     the names, and the owner of each companion.
// Does not: keep their history: each has its own configuration with `lifetime: 'session'`, so the service
//           keeps the history from run to run, until the companion is forgotten here.
//
// Invariants
//   COMPANION-BOOK-1. An agent that has ended has no companions: no agent could reach them.
//   COMPANION-BOOK-2. After a crash the companions of an agent are restored from their runs: their names, and
//        the number of companions of each type. A companion that was sent away while it was idle comes back.

import type { SubagentConfig } from '../actors/contracts/config.ts';
import {
  THE_LEAD,
  type Requester,
  type SubagentService,
} from '../actors/contracts/service-types.ts';
import { IS_WANTED } from '../actors/subagents/session-instances.ts';

/** The type of a companion. */
export interface CompanionAgent {
  readonly agent: SubagentConfig;
  /**
   * `blocking`: the agent that spawns it or sends it a message waits for its result. `background`: it works
   * while its parent continues. @defaultValue 'background'
   */
  readonly mode?: 'blocking' | 'background';
}

export interface Companion {
  /** The name that its parent uses: `<type>-<n>`. */
  readonly agentId: string;
  readonly agentType: string;
  readonly isBlocking: boolean;
  readonly config: SubagentConfig;
  /** The id of its latest run. */
  readonly subagentId: string;
}

/** A companion that has had no run yet. */
export type NewCompanion = Omit<Companion, 'subagentId'>;

interface Book {
  readonly counts: Map<string, number>;
  readonly owned: Map<string | null, Map<string, Companion>>;
  /** The names in use, over all owners. */
  readonly names: Set<string>;
  /** The owners whose runs of an earlier process were examined. */
  readonly recalled: Set<string>;
}

/** The books end with the service, so they are kept with it. */
const books = new WeakMap<SubagentService, Book>();

function bookOf(service: SubagentService): Book {
  const book = books.get(service) ?? {
    counts: new Map(),
    owned: new Map(),
    names: new Set(),
    recalled: new Set(),
  };
  books.set(service, book);
  return book;
}

/** Creates a companion under a name that no other companion's history has. */
export function makeCompanion(service: SubagentService, type: CompanionAgent): NewCompanion {
  const { counts, names } = bookOf(service);
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

/** Returns the configuration of a companion: one object for all its runs, so that they share an instance. */
export function companionConfig(agent: SubagentConfig, agentId: string): SubagentConfig {
  return { context: 'none', ...agent, name: agentId, lifetime: 'session' };
}

function companionOf({ agent, mode }: CompanionAgent, config: SubagentConfig): NewCompanion {
  const agentType = agent.name;
  return { agentId: config.name, agentType, isBlocking: mode === 'blocking', config };
}

/**
 * Restores the companions of an owner from their runs in an earlier process, once per owner. `configOf`
 * returns their configurations.
 */
export function recallCompanions(
  service: SubagentService,
  { subagentId: owner }: Requester,
  types: ReadonlyMap<string, CompanionAgent>,
  configOf: (agentType: string, agentId: string) => SubagentConfig,
): void {
  const { recalled, counts } = bookOf(service);
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
    // A cancelled run means that the companion was sent away.
    if (state === 'cancelled') forgetCompanion(service, { subagentId: owner }, name);
    else
      keepCompanion(
        service,
        { subagentId: owner },
        { ...companionOf(type, configOf(toolName, name)), subagentId: id },
      );
  }
}

export function keepCompanion(
  service: SubagentService,
  { subagentId: owner }: Requester,
  companion: Companion,
): void {
  const { owned, names } = bookOf(service);
  forgetOrphans(service);
  const own = owned.get(owner) ?? new Map<string, Companion>();
  owned.set(owner, own);
  own.set(companion.agentId, companion);
  names.add(companion.agentId);
}

/** Returns the companions of the owner, oldest first. */
export function companionsOf(service: SubagentService, owner: Requester): readonly Companion[] {
  return [...(bookOf(service).owned.get(owner.subagentId)?.values() ?? [])];
}

export function forgetCompanion(
  service: SubagentService,
  { subagentId: owner }: Requester,
  agentId: string,
): void {
  const { owned, names } = bookOf(service);
  const own = owned.get(owner);
  own?.delete(agentId);
  names.delete(agentId);
  if (own?.size === 0) owned.delete(owner);
}

function forgetOrphans(service: SubagentService): void {
  const live = new Set(service.list(THE_LEAD).map(({ id }) => id));
  for (const [owner, companions] of bookOf(service).owned)
    if (owner !== null && !live.has(owner))
      for (const agentId of companions.keys())
        forgetCompanion(service, { subagentId: owner }, agentId);
}
