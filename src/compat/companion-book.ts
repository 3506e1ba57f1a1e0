// The companions of each agent: who they are, and the latest run of each.
//
// Owns:     their names, and whose they are.
// Does not: keep their history: each has a configuration of its own with `lifetime: 'session'`,
//           so the service keeps it from run to run, until it is forgotten here.
//
// Invariants
//   COMPANION-BOOK-1. Who has ended has no companions: what nobody can reach is not kept.
//   COMPANION-BOOK-2. After a crash those of an agent are found again by their runs: what they were called, and
//        how many there have been of a type. One that was sent away while it did nothing comes back.

import type { SubagentConfig } from '../actors/contracts/config.ts';
import {
  THE_LEAD,
  type Requester,
  type SubagentService,
} from '../actors/contracts/service-types.ts';
import { IS_WANTED } from '../actors/subagents/session-instances.ts';

/** What a companion is made of. */
export interface CompanionAgent {
  readonly agent: SubagentConfig;
  /**
   * `blocking`: whoever spawns it or sends it a message waits for what it finds. `background`:
   * it works while its parent goes on. @defaultValue 'background'
   */
  readonly mode?: 'blocking' | 'background';
}

export interface Companion {
  /** How its parent calls it: `<type>-<n>`. */
  readonly agentId: string;
  readonly agentType: string;
  readonly isBlocking: boolean;
  readonly config: SubagentConfig;
  /** Of its latest run. */
  readonly subagentId: string;
}

/** One that has had no run yet. */
export type NewCompanion = Omit<Companion, 'subagentId'>;

interface Book {
  readonly counts: Map<string, number>;
  readonly owned: Map<string | null, Map<string, Companion>>;
  /** The ids of those that are in it, whoever has them. */
  readonly names: Set<string>;
  /** Whose runs of an earlier process were looked at. */
  readonly recalled: Set<string>;
}

/** They end with the service, so they are kept with it. */
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

/** A new one, which nobody else's history can be mistaken for. */
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

/** What a companion of this name runs with: one object for all its runs, so that they share an instance. */
export function companionConfig(agent: SubagentConfig, agentId: string): SubagentConfig {
  return { context: 'none', ...agent, name: agentId, lifetime: 'session' };
}

function companionOf({ agent, mode }: CompanionAgent, config: SubagentConfig): NewCompanion {
  const agentType = agent.name;
  return { agentId: config.name, agentType, isBlocking: mode === 'blocking', config };
}

/** Once for each owner: those of an earlier process, by their runs. `configOf`: what they run with. */
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
    // One that was cancelled was sent away.
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

/** Oldest first. Nobody has another's. */
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
