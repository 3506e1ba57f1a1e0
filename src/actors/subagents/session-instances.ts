// Instances that a session keeps (`lifetime: 'session'`): there is one for each name, and it remembers the conversation
// of its earlier runs. The runs of an instance execute one after another.
//
// Owns:     the instances, their locks and conversations, and their disposal.
// Does not: grant run slots. A subagent requests a slot only when it holds the lock.
//
// Invariants
//   SESSION-INSTANCES-1. At most one run of each name holds the lock. Runs acquire it in the order in which they were
//       spawned.
//   SESSION-INSTANCES-2. A lock is released however its holder ends, and a run that has ended no longer waits for it.
//   SESSION-INSTANCES-3. An instance is disposed once. Its last run must be over, and either the session has closed or
//       no other run of the instance can start.

import type { ModelMessage } from 'ai';
import { closeDanglingCalls } from '../model/tool-results.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import { changed, type MaybePromise } from '../../values/plain-checks.ts';
import { releaseInstance, takeInstance } from '../subagent/instance.ts';
import type { SubagentRecord } from './subagent-registry.ts';

/**
 * A function in a configuration. It returns whether another run of the configuration can start. Without this function,
 * the instance is kept for as long as the session. An instance that is no longer needed is released when the next run
 * of any instance starts or ends.
 */
export const IS_WANTED: unique symbol = Symbol('offstage.isWanted');

interface Instance {
  isWanted(): boolean;
  /** The runs that use the instance, in the order in which they were spawned. Only the first may hold the lock. */
  readonly users: string[];
  holder: string | null;
  readonly history: ModelMessage[];
  /** The definition that the runs share, or null before the first run is prepared and after a failure. */
  made: {
    readonly from: SubagentDefinition;
    readonly own: MaybePromise<SubagentDefinition>;
  } | null;
  /**
   * The secret in the note markers of all runs; null if no run has started. The runs share it, because the conversation
   * contains the notes of earlier runs.
   */
  marks: string | null;
  /** The callbacks of runs that are waiting for the lock. */
  readonly waiting: Map<string, () => void>;
}

export class SessionInstances {
  readonly #host: Host;
  readonly #byName = new Map<string, Instance>();
  readonly #remembered = new Map<string, readonly ModelMessage[]>();
  /** The pending disposals. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** The conversation of each instance, by name. */
  get histories(): Readonly<Record<string, readonly ModelMessage[]>> {
    const known = [...this.#byName].map(([name, { history }]) => [name, [...history]] as const);
    return Object.fromEntries([...this.#remembered, ...known]);
  }

  /** Sets the conversations that an earlier process stored. The first runs in this process continue them. */
  remember(histories: Readonly<Record<string, readonly ModelMessage[]>>): void {
    for (const [name, said] of Object.entries(histories)) this.#remembered.set(name, said);
  }

  get isEmpty(): boolean {
    return this.#byName.size === 0 && this.#leaving.size === 0;
  }

  /** Adds a run to the queue for its instance's lock. */
  enter({ id, admission }: SubagentRecord): void {
    if (admission.definition.lifetime !== 'session') return;
    this.#releaseUnwanted();
    const { name, source } = admission.definition;
    const { [IS_WANTED]: isWanted = () => true } = source as { [IS_WANTED]?: () => boolean };
    const instance = this.#byName.get(name) ?? {
      isWanted,
      users: [],
      holder: null,
      history: [...(this.#remembered.get(name) ?? [])],
      made: null,
      marks: null,
      waiting: new Map<string, () => void>(),
    };
    this.#byName.set(name, instance);
    this.#remembered.delete(name);
    instance.users.push(id);
  }

  /**
   * Returns the definition for a run. The definition is created once. It is created again only for a different
   * configuration or after a failure.
   * @throws {ConfigurationError} like `createInstance`.
   */
  definitionOf({ admission }: SubagentRecord): MaybePromise<SubagentDefinition> {
    const { definition } = admission;
    const instance = this.#instanceOf(definition);
    if (!instance) return definition;
    const made = (instance.made ??= this.#make(instance, definition));
    if (made.from !== definition) return definition;
    return changed(made.own, (instanceOf) => {
      const { createInstance: _, ...own } = instanceOf;
      return own;
    });
  }

  #make(instance: Instance, from: SubagentDefinition): NonNullable<Instance['made']> {
    const made = { from, own: takeInstance(from) };
    if (made.own instanceof Promise)
      made.own.catch(() => {
        // The next run tries to create the instance again.
        if (instance.made === made) instance.made = null;
      });
    return made;
  }

  /** Returns the secret in the earlier runs' note markers, or null if no run has started. */
  marksOf({ admission }: SubagentRecord): string | null {
    return this.#instanceOf(admission.definition)?.marks ?? null;
  }

  /** Records the secret in a run's note markers, so that later runs use the same one. */
  marked({ admission }: SubagentRecord, marks: string): void {
    const instance = this.#instanceOf(admission.definition);
    if (instance) instance.marks ??= marks;
  }

  /**
   * Calls back with the earlier conversation as soon as the run holds the lock, or immediately if it needs no lock.
   */
  lock(
    { id, admission }: SubagentRecord,
    granted: (history: readonly ModelMessage[]) => void,
  ): void {
    const instance = this.#instanceOf(admission.definition);
    if (!instance) {
      granted([]);
      return;
    }
    instance.waiting.set(id, () => granted([...instance.history]));
    pass(instance);
  }

  /** Returns whether the run is waiting for the lock. */
  isLocked({ id, admission }: SubagentRecord): boolean {
    return this.#instanceOf(admission.definition)?.waiting.has(id) ?? false;
  }

  /** Returns the runs that must end before this run may start. */
  before({ id, admission }: SubagentRecord): readonly string[] {
    const users = this.#instanceOf(admission.definition)?.users ?? [];
    return users.slice(0, Math.max(0, users.indexOf(id)));
  }

  /** Returns the runs that may start only after this run has ended. */
  after({ id, admission }: SubagentRecord): readonly string[] {
    const users = this.#instanceOf(admission.definition)?.users;
    const place = users?.indexOf(id) ?? -1;
    return users && place >= 0 ? users.slice(place + 1) : [];
  }

  /** Removes a run that has ended, and stores its conversation if it did any work. */
  ended({ id, admission }: SubagentRecord, messages: () => readonly ModelMessage[]): void {
    const { definition } = admission;
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
    this.#releaseUnwanted();
  }

  /** Disposes of every instance after its last run. Resolves when every instance is disposed. */
  async dispose(): Promise<void> {
    for (const name of this.#byName.keys()) this.#release(name);
    await Promise.all(this.#leaving);
  }

  #releaseUnwanted(): void {
    for (const [name, { users, isWanted }] of this.#byName)
      if (users.length === 0 && !isWanted()) this.#release(name);
  }

  #release(name: string): void {
    const { made } = this.#byName.get(name) ?? {};
    this.#byName.delete(name);
    if (!made) return;
    const leaving = Promise.resolve(made.own).then(
      (definition) => releaseInstance(this.#host, { definition }),
      () => undefined,
    );
    this.#leaving.add(leaving);
    void leaving.then(() => this.#leaving.delete(leaving));
  }

  #instanceOf({ lifetime, name }: SubagentDefinition): Instance | undefined {
    return lifetime === 'session' ? this.#byName.get(name) : undefined;
  }
}

/** Gives the lock to the first run if that run has requested it and the lock is free. */
function pass(instance: Instance): void {
  const { users, waiting, holder } = instance;
  const [first = ''] = users;
  const grant = waiting.get(first);
  if (holder !== null || !grant) return;
  waiting.delete(first);
  instance.holder = first;
  grant();
}

/**
 * Returns the last messages of a conversation, starting with a message to the subagent, so that every call has its
 * result.
 */
function recent(messages: readonly ModelMessage[], max: number): readonly ModelMessage[] {
  const from = messages.findIndex(
    ({ role }, index) => role === 'user' && messages.length - index <= max,
  );
  return from === -1 ? [] : messages.slice(from);
}
