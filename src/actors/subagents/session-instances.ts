// Subagents that a session keeps (`lifetime: 'session'`): one instance for each name, which
// knows what it did before. Its runs follow each other.
//
// Owns:     the instances, their locks and histories, and their end.
// Does not: hand out run slots: whoever waits for a lock has not asked for one yet.
//
// Invariants
//   SESSION-INSTANCES-1. At most one run of a name holds the lock, in the order in which they were spawned.
//   SESSION-INSTANCES-2. A lock is free again when its holder has ended, however; who has ended waits no more.
//   SESSION-INSTANCES-3. An instance is disposed once, when its last run is over and the session has closed, or
//       nobody can begin another run of it.

import type { ModelMessage } from 'ai';
import { closeDanglingCalls } from '../model/messages.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import { releaseInstance, takeInstance } from '../subagent/instance.ts';
import type { SubagentRecord } from './family.ts';

/**
 * On a configuration: may somebody still begin a run of it? Without this, for as long as the
 * session lasts. What is wanted no more is let go when the next run of any begins or ends.
 */
export const IS_WANTED: unique symbol = Symbol('offstage.isWanted');

interface Instance {
  isWanted(): boolean;
  /** Those that use it, in the order of their spawning: the first one may hold the lock. */
  readonly users: string[];
  holder: string | null;
  readonly history: ModelMessage[];
  /** What the runs share; null before the first one is made ready. */
  made: { readonly from: SubagentDefinition; readonly own: SubagentDefinition } | null;
  /** Waits to be the first. */
  readonly waiting: Map<string, () => void>;
}

export class SessionInstances {
  readonly #host: Host;
  readonly #byName = new Map<string, Instance>();
  readonly #remembered = new Map<string, readonly ModelMessage[]>();
  /** Those that are being disposed. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** What was said in each, by its name. */
  get histories(): Readonly<Record<string, readonly ModelMessage[]>> {
    const known = [...this.#byName].map(([name, { history }]) => [name, [...history]] as const);
    return Object.fromEntries([...this.#remembered, ...known]);
  }

  /** What was said in those of another process: the first run here goes on from it. */
  remember(histories: Readonly<Record<string, readonly ModelMessage[]>>): void {
    for (const [name, said] of Object.entries(histories)) this.#remembered.set(name, said);
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0 && this.#leaving.size === 0;
  }

  /** It takes its place in the queue for the lock. */
  enter({ id, place }: SubagentRecord): void {
    if (place.definition.lifetime !== 'session') return;
    this.#letGo();
    const { name, source } = place.definition;
    const { [IS_WANTED]: isWanted = () => true } = source as { [IS_WANTED]?: () => boolean };
    const instance = this.#byName.get(name) ?? {
      isWanted,
      users: [],
      holder: null,
      history: [...(this.#remembered.get(name) ?? [])],
      made: null,
      waiting: new Map<string, () => void>(),
    };
    this.#byName.set(name, instance);
    this.#remembered.delete(name);
    instance.users.push(id);
  }

  /**
   * What it runs with: made once, and again only for a configuration that is another one.
   * @throws {ConfigurationError} as `createInstance` does.
   */
  definitionOf({ place }: SubagentRecord): SubagentDefinition {
    const { definition } = place;
    const instance = this.#instanceOf(definition);
    if (!instance) return definition;
    instance.made ??= { from: definition, own: takeInstance(definition) };
    if (instance.made.from !== definition) return definition;
    const { createInstance: _, ...own } = instance.made.own;
    return own;
  }

  /** Calls back when it holds the lock, with what was said before; at once if it needs none. */
  lock({ id, place }: SubagentRecord, granted: (history: readonly ModelMessage[]) => void): void {
    const instance = this.#instanceOf(place.definition);
    if (!instance) {
      granted([]);
      return;
    }
    instance.waiting.set(id, () => granted([...instance.history]));
    pass(instance);
  }

  /** Does it wait for another run to end? */
  isLocked({ id, place }: SubagentRecord): boolean {
    return this.#instanceOf(place.definition)?.waiting.has(id) ?? false;
  }

  /** Who must end before it may run. */
  before({ id, place }: SubagentRecord): readonly string[] {
    const users = this.#instanceOf(place.definition)?.users ?? [];
    return users.slice(0, Math.max(0, users.indexOf(id)));
  }

  /** It has ended: what it said is remembered, if it ever ran. */
  ended({ id, place }: SubagentRecord, messages: () => readonly ModelMessage[]): void {
    const { definition } = place;
    const instance = this.#instanceOf(definition);
    if (!instance) return;
    const { users, waiting, history } = instance;
    users.splice(users.indexOf(id), 1);
    waiting.delete(id);
    if (instance.holder === id) {
      instance.holder = null;
      const said = recent(closeDanglingCalls(messages()), definition.maxHistory);
      history.splice(0, history.length, ...said);
    }
    pass(instance);
    this.#letGo();
  }

  /** At the end, when nobody runs any more. Resolves when every instance is disposed. */
  async dispose(): Promise<void> {
    for (const name of this.#byName.keys()) this.#release(name);
    await Promise.all(this.#leaving);
  }

  #letGo(): void {
    for (const [name, { users, isWanted }] of this.#byName)
      if (users.length === 0 && !isWanted()) this.#release(name);
  }

  #release(name: string): void {
    const { made } = this.#byName.get(name) ?? {};
    this.#byName.delete(name);
    if (!made) return;
    const leaving = releaseInstance(this.#host, { definition: made.own });
    this.#leaving.add(leaving);
    void leaving.then(() => this.#leaving.delete(leaving));
  }

  #instanceOf({ lifetime, name }: SubagentDefinition): Instance | undefined {
    return lifetime === 'session' ? this.#byName.get(name) : undefined;
  }
}

/** Gives the lock to the first, if it has asked for it and nobody has it. */
function pass(instance: Instance): void {
  const { users, waiting, holder } = instance;
  const [first = ''] = users;
  const grant = waiting.get(first);
  if (holder !== null || !grant) return;
  waiting.delete(first);
  instance.holder = first;
  grant();
}

/** The last messages, from where somebody tells it something: a beginning that stands by itself. */
function recent(messages: readonly ModelMessage[], max: number): readonly ModelMessage[] {
  const from = messages.findIndex(
    ({ role }, index) => role === 'user' && messages.length - index <= max,
  );
  return from === -1 ? [] : messages.slice(from);
}
