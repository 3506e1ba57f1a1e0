// The known actors and their places in the actor tree.
//
// Owns:     the names of actors in messages, their parents, and how long ended actors are stored.
// Does not: convert or send anything, or keep an actor alive.
//
// Invariants
//   ACTOR-REGISTRY-1. An actor's name is its path. The path of a root is its id. The path of any other actor consists
//       of its parent's name and its own id. The actor `a` is the parent of a root `a/b`.
//   ACTOR-REGISTRY-2. A new actor replaces the previous actor with the same name. Two live roots with the same id get
//                     different names.
//   ACTOR-REGISTRY-3. The latest `maxEnded` actors that have ended remain in the registry.

import { propertiesOf } from '../../values/json.ts';
/** The part of an XState actor that this module uses. */
export interface SeenActor {
  readonly sessionId: string;
  readonly id?: string;
  readonly _parent?: SeenActor | undefined;
  readonly logic?: { readonly config?: unknown } | undefined;
  getSnapshot(): unknown;
}

/** The part of a snapshot that this module uses, for any kind of actor. */
export interface SeenSnapshot {
  readonly status?: 'active' | 'done' | 'error' | 'stopped';
  readonly tags?: unknown;
  readonly [part: string]: unknown;
}

/** The data that identifies an actor in messages. */
export interface Identity {
  readonly wireId: string;
  readonly name: string;
  readonly parentId: string | undefined;
  readonly rootId: string;
  /** The configuration of the actor's logic. */
  readonly config: unknown;
}

type Phase = 'live' | 'ended' | 'forgotten';

export interface ActorRecord {
  readonly identity: Identity;
  /** Returns the latest known snapshot; undefined if there is none. */
  snapshot(): SeenSnapshot | undefined;
}

/** An actor's record in the registry. */
interface Entry extends ActorRecord {
  identity: Identity;
  phase: Phase;
  /** XState's id for the actor that currently has this name. Events of an earlier actor are ignored. */
  sessionId: string;
  /** An actor can be garbage-collected without being stopped. */
  actor: WeakRef<SeenActor> | undefined;
  /** The last snapshot, which is stored because the actor may have been garbage-collected. */
  rest: SeenSnapshot | undefined;
}

/** The new state of an actor after an observation. */
export interface Change {
  readonly identity: Identity;
  readonly snapshot: SeenSnapshot;
}

const MAX_ID_LENGTH = 200;
const FIRST_SWEEP_SIZE = 1_000;

export class ActorRegistry {
  readonly #maxEnded: number;
  readonly #entries = new Map<string, Entry>();
  readonly #ended = new Set<Entry>();
  readonly #known = new WeakMap<SeenActor, Entry>();
  #nextSweepSize = FIRST_SWEEP_SIZE;

  constructor(maxEnded: number) {
    this.#maxEnded = maxEnded;
  }

  /** All registered actors, with parents before their children. */
  get records(): Iterable<ActorRecord> {
    return this.#entries.values();
  }

  /** Returns an actor's record; undefined if the actor is unknown or its record was removed. */
  find(actor: SeenActor): ActorRecord | undefined {
    const entry = this.#known.get(actor);
    return entry?.phase === 'forgotten' ? undefined : entry;
  }

  /** Returns whether this actor was ever registered, even if its record was removed. */
  knows(actor: SeenActor): boolean {
    return this.#known.has(actor);
  }

  /** Registers an actor and its ancestors, and returns those that viewers do not know yet. */
  register(actor: SeenActor): readonly ActorRecord[] {
    const fresh: ActorRecord[] = [];
    if (!this.#known.has(actor)) this.#enter(actor, fresh);
    return fresh;
  }

  /** Records an actor's snapshot, and returns the changes for viewers. */
  observe(actor: SeenActor, snapshot: SeenSnapshot): readonly Change[] {
    const entry = this.#known.get(actor);
    if (!entry || entry.sessionId !== actor.sessionId) return [];
    if (entry.phase === 'ended' || entry.phase === 'forgotten') return [];
    if ((snapshot.status ?? 'active') === 'active') return [{ identity: entry.identity, snapshot }];
    return this.#end(entry, snapshot);
  }

  /** Checks whether a machine has thrown an error, because XState then does not report a snapshot. */
  inspectCrash(actor: SeenActor): readonly Change[] {
    const entry = this.#known.get(actor);
    if (!entry || entry.sessionId !== actor.sessionId || entry.phase !== 'live') return [];
    const snapshot = snapshotOf(actor);
    return snapshot?.status === 'error' ? this.#end(entry, snapshot) : [];
  }

  #enter(actor: SeenActor, fresh: ActorRecord[]): Entry {
    const { _parent: above, sessionId } = actor;
    const id = actor.id ?? sessionId;
    const parent = above
      ? (this.#known.get(above) ?? this.#enter(above, fresh))
      : this.#ancestor(id);
    let wireId = above && parent ? `${parent.identity.wireId}/${id}` : id;
    if (wireId.length > MAX_ID_LENGTH) wireId = `${wireId.slice(0, MAX_ID_LENGTH)}…${sessionId}`;
    let entry = this.#entries.get(wireId);
    if (entry && !above && isAlive(entry)) {
      wireId = `${wireId}#${sessionId}`;
      entry = undefined;
    }
    const config = actor.logic?.config;
    const identity = {
      wireId,
      name: nameOf(id, sessionId, config),
      parentId: parent?.identity.wireId,
      rootId: parent?.identity.rootId ?? wireId,
      config,
    };
    entry = this.#place(identity, entry);
    fresh.push(entry);
    entry.sessionId = sessionId;
    entry.actor = new WeakRef(actor);
    this.#known.set(actor, entry);
    return entry;
  }

  #place(identity: Identity, before: Entry | undefined): Entry {
    if (before) {
      before.phase = 'forgotten';
      this.#ended.delete(before);
    } else if (this.#entries.size >= this.#nextSweepSize) this.#sweep();
    const entry: Entry = {
      identity,
      phase: 'live',
      sessionId: '',
      actor: undefined,
      rest: undefined,
      snapshot() {
        return this.rest ?? snapshotOf(this.actor?.deref());
      },
    };
    this.#entries.set(identity.wireId, entry);
    return entry;
  }

  /** Returns the closest actor above a root, based on the path in the root's id. */
  #ancestor(id: string): Entry | undefined {
    for (let cut = id.lastIndexOf('/'); cut > 0; cut = id.lastIndexOf('/', cut - 1)) {
      const entry = this.#entries.get(id.slice(0, cut));
      if (entry) return entry;
    }
    return undefined;
  }

  #end(entry: Entry, snapshot: SeenSnapshot): readonly Change[] {
    entry.phase = 'ended';
    entry.rest = snapshot;
    this.#ended.add(entry);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= this.#maxEnded) break;
      this.#forget(oldest);
    }
    return [{ identity: entry.identity, snapshot }];
  }

  #forget(entry: Entry): void {
    entry.phase = 'forgotten';
    this.#ended.delete(entry);
    this.#entries.delete(entry.identity.wireId);
  }

  /** Marks actors as ended if they were garbage-collected without being stopped. */
  #sweep(): void {
    for (const entry of this.#entries.values())
      if (entry.phase === 'live' && !isAlive(entry))
        this.#end(entry, entry.snapshot() ?? { status: 'stopped' });
    this.#nextSweepSize = Math.max(FIRST_SWEEP_SIZE, this.#entries.size * 2);
  }
}

function isAlive(entry: Entry): boolean {
  if (entry.phase !== 'live') return false;
  const actor = entry.actor?.deref();
  return actor !== undefined && (snapshotOf(actor)?.status ?? 'active') === 'active';
}

/** Returns the snapshot; undefined while the actor is being created. */
function snapshotOf(actor: SeenActor | undefined): SeenSnapshot | undefined {
  try {
    return actor?.getSnapshot() as SeenSnapshot | undefined;
  } catch {
    return undefined;
  }
}

/** Returns the last part of the path or, for an unnamed actor, the name of its machine. */
function nameOf(id: string, sessionId: string, config: unknown): string {
  if (id === sessionId) {
    const { id: machineId } = propertiesOf(config);
    if (typeof machineId === 'string') return machineId;
  }
  return (id.slice(id.lastIndexOf('/') + 1) || id).slice(0, MAX_ID_LENGTH);
}
