// The companions of each agent: who they are, and the latest run of each.
//
// Owns:     their names, and whose they are.
// Does not: keep their history: each has a configuration of its own with `lifetime: 'session'`,
//           so the service keeps it from run to run.

import type { SubagentConfig } from '../../subagent/config.ts';
import type { Requester, SubagentService } from '../service-types.ts';

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
  subagentId: string;
}

interface Book {
  readonly counts: Map<string, number>;
  readonly owned: Map<string | null, Map<string, Companion>>;
}

/** They end with the service, so they are kept with it. */
const books = new WeakMap<SubagentService, Book>();

function bookOf(service: SubagentService): Book {
  const book = books.get(service) ?? { counts: new Map(), owned: new Map() };
  books.set(service, book);
  return book;
}

/** A new one, which nobody else's history can be mistaken for. */
export function makeCompanion(
  service: SubagentService,
  { agent, mode = 'background' }: CompanionAgent,
): Omit<Companion, 'subagentId'> {
  const { counts } = bookOf(service);
  const count = (counts.get(agent.name) ?? 0) + 1;
  counts.set(agent.name, count);
  const agentId = `${agent.name}-${count}`;
  return {
    agentId,
    agentType: agent.name,
    isBlocking: mode === 'blocking',
    config: { context: 'none', ...agent, name: agentId, lifetime: 'session' },
  };
}

export function keepCompanion(
  service: SubagentService,
  { subagentId: owner }: Requester,
  companion: Companion,
): void {
  const { owned } = bookOf(service);
  const own = owned.get(owner) ?? new Map<string, Companion>();
  owned.set(owner, own);
  own.set(companion.agentId, companion);
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
  const { owned } = bookOf(service);
  const own = owned.get(owner);
  own?.delete(agentId);
  if (own?.size === 0) owned.delete(owner);
}
