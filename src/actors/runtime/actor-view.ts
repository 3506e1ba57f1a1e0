// The machines of a session as XState actors that apps and inspectors may observe and cannot move (HOST-1).
// `useSelector`, `waitFor`, `toPromise`, RxJS and the inspector work as with any other actor.
//
// Owns:     the observers of a machine, its place in the tree of actors, and the events of an inspector.
// Does not: hold the state of the machine, or keep a machine alive.
//
// Invariants
//   VIEW-1. Observers follow the unit: while it catches up with its journal they see no state, and afterwards the
//           one in which it is.
//   VIEW-2. Observers complete once: when the machine ends, or its unit.
//   VIEW-3. The actor of the path `a/b` is the child `b` of the actor `a`; `system.get('b')` returns it while it
//           exists.
//
// Casts: XState types an actor by the generics of one machine, and its system as a class of its own.

import {
  Actor,
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyEventObject,
  type InspectionEvent,
  type Observer,
  type SnapshotStatus,
  type Subscription,
} from 'xstate';
import { ConfigurationError, quietly } from '../../values/errors.ts';
import { plain, type Shown } from './hosting.ts';

/**
 * An actor that only its unit moves, and that all others may observe: `useSelector`, `waitFor`, `toPromise`
 * and the inspector work as with any other actor.
 */
export type HostedActor<M extends AnyStateMachine> = Omit<Actor<M>, 'send' | 'stop'> & {
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_ACTOR`: use the methods of the session. */
  readonly send: (event: unknown) => never;
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_ACTOR`: use `close()` or `suspend()`. */
  readonly stop: () => never;
};

function refuse(what: string): never {
  throw new ConfigurationError(
    'READ_ONLY_ACTOR',
    `${what}: this actor is read-only, since its events go through the journal. Use the methods of the session instead (sendText, answer, dismiss, subagents.cancel, close, suspend), or those of the subagent's service`,
  );
}

const send = (): never => refuse('actor.send(event)');
const stop = (): never => refuse('actor.stop()');

/** The views of one process. A machine has none before an app reads its actor, unless there is an inspector. */
export class ActorTree {
  readonly report: (error: unknown, where: string) => void;
  /** Receives the events of all actors. */
  readonly inspect: ((event: InspectionEvent) => void) | undefined;
  /** Returns all machines of the process unit, for `system.get` where there is no inspector. */
  machines: () => Iterable<Shown> = () => [];
  /** The actor that all others are below; null: there is none. A machine that begins before it is shown after it. */
  root: string | null = null;
  readonly #views = new Map<string, ActorView>();
  readonly #early: Shown[] = [];
  /** Numbers the actors: two that exist at different times may have one id. */
  #numbered = 0;

  constructor(
    report: (error: unknown, where: string) => void,
    inspect: ((event: InspectionEvent) => void) | undefined,
  ) {
    this.report = quietly(report);
    this.inspect = inspect;
  }

  /** False if nobody observes any machine: then machines need not report. */
  get isWatched(): boolean {
    return this.inspect !== undefined || this.#views.size > 0;
  }

  /** Shows a machine that begins, or continues, if there is an inspector or its id is shown already. */
  began(shown: Shown): void {
    const known = this.#views.get(shown.id);
    if (known) known.follow(shown);
    else if (
      this.inspect &&
      this.root !== null &&
      shown.id !== this.root &&
      !this.#views.has(this.root)
    )
      this.#early.push(shown);
    else if (this.inspect) this.show(shown);
  }

  /** Shows the snapshot of a machine after an event. */
  moved(id: string, event: AnyEventObject): void {
    this.#views.get(id)?.next(event);
  }

  /** Completes the observers of a machine that is gone. */
  ended(id: string): void {
    this.#views.get(id)?.complete();
  }

  /** Returns the view of a machine; the same one as long as the machine lives. */
  show(shown: Shown): ActorView {
    const known = this.#views.get(shown.id);
    if (known) return known;
    this.#numbered += 1;
    const view = new ActorView(shown, `${shown.id}#${this.#numbered}`, this);
    this.#views.set(shown.id, view);
    view.began();
    if (shown.id === this.root) for (const early of this.#early.splice(0)) this.show(early);
    return view;
  }

  /** Forgets a view whose machine has ended. */
  remove(view: ActorView): void {
    if (this.#views.get(view.path) === view) this.#views.delete(view.path);
  }

  get(path: string): ActorView | undefined {
    return this.#views.get(path);
  }

  /** Returns the actor of this path; undefined if there is none. */
  find(path: string): ActorView | undefined {
    const known = this.#views.get(path);
    if (known) return known;
    for (const shown of this.machines()) if (shown.id === path) return this.show(shown);
    return undefined;
  }

  /** The nearest actor that this path is below of. */
  above(path: string): ActorView | undefined {
    for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
      const view = this.#views.get(path.slice(0, cut));
      if (view) return view;
    }
    return undefined;
  }

  /** The actors below an actor, by the rest of their paths. */
  below({ path }: ActorView): Record<string, ActorView> {
    const start = `${path}/`;
    for (const shown of this.machines()) if (shown.id.startsWith(start)) this.show(shown);
    const found = [...this.#views].filter(([other]) => other.startsWith(start));
    return Object.fromEntries(found.map(([other, view]) => [other.slice(start.length), view]));
  }
}

/** The property by which RxJS and XState recognise an observable. */
const observable = ((Symbol as { readonly observable?: symbol }).observable ??
  '@@observable') as '@@observable';

export class ActorView {
  /** The name below its parent; the path if it has none. */
  readonly id: string;
  readonly sessionId: string;
  readonly path: string;
  readonly send = send;
  readonly stop = stop;
  #shown: Shown;
  readonly #tree: ActorTree;
  readonly #parent: ActorView | undefined;
  readonly #observers = new Set<Observer<AnyMachineSnapshot>>();
  /** The snapshot before the unit began to catch up; null if it does not. */
  #before: AnyMachineSnapshot | null = null;
  /** The last snapshot, once the unit has ended. */
  #last: AnyMachineSnapshot | null = null;

  constructor(shown: Shown, sessionId: string, tree: ActorTree) {
    const parent = tree.above(shown.id);
    this.path = shown.id;
    this.id = parent ? shown.id.slice(parent.path.length + 1) : shown.id;
    this.#parent = parent;
    this.sessionId = sessionId;
    this.#shown = shown;
    this.#tree = tree;
  }

  /** Registers the actor with the inspector. */
  began(): void {
    const { actorRef, rootId } = this.#inspected;
    this.#tree.inspect?.({ type: '@xstate.actor', actorRef, rootId });
    this.#inspect({ type: 'xstate.init' });
  }

  /** Shows the snapshot after an event. */
  next(event: AnyEventObject): void {
    if (this.#last || this.#before) return;
    this.#inspect(event);
    this.#each((observer) => observer.next?.(this.getSnapshot()));
    if (this.#status === 'done') this.complete();
  }

  /** Shows another machine, which took the place of the former one. */
  follow(shown: Shown): void {
    if (this.#shown === shown) return;
    this.#shown = shown;
    this.next({ type: 'xstate.init' });
  }

  /** Shows no state until `resume`: the unit catches up, or is rolled back. */
  pause(): void {
    if (!this.#last) this.#before ??= this.#shown.snapshot;
  }

  /** Shows the state in which the unit is now. */
  resume(): void {
    const before = this.#before;
    this.#before = null;
    if (before && before !== this.#shown.snapshot) this.next({ type: 'xstate.init' });
  }

  /** Completes the observers: the machine or its unit has ended. */
  complete(): void {
    if (this.#last) return;
    const last = this.getSnapshot();
    const isCut = this.#status === 'active';
    this.#last = isCut ? ({ ...last, status: 'stopped' } as AnyMachineSnapshot) : last;
    if (isCut) this.#inspect({ type: 'xstate.stop' });
    this.#tree.remove(this);
    this.#each((observer) => observer.complete?.());
    this.#observers.clear();
  }

  getSnapshot(): AnyMachineSnapshot {
    return this.#last ?? this.#before ?? this.#shown.snapshot;
  }

  getPersistedSnapshot() {
    return plain(this.getSnapshot());
  }

  toJSON() {
    const { id } = this;
    return { xstate$$type: 1, id };
  }

  subscribe(
    next?: Observer<AnyMachineSnapshot> | ((snapshot: AnyMachineSnapshot) => void),
    error?: (error: unknown) => void,
    complete?: () => void,
  ): Subscription {
    const observer: Observer<AnyMachineSnapshot> =
      typeof next === 'object'
        ? // Methods of an observer object keep their `this`.
          {
            next: (snapshot) => next.next?.(snapshot),
            error: (thrown) => next.error?.(thrown),
            complete: () => next.complete?.(),
          }
        : { ...(next && { next }), ...(error && { error }), ...(complete && { complete }) };
    if (this.#last) this.#safely(() => observer.complete?.());
    else this.#observers.add(observer);
    return { unsubscribe: () => void this.#observers.delete(observer) };
  }

  select<T>(
    selector: (snapshot: AnyMachineSnapshot) => T,
    isSame?: (a: T, b: T) => boolean,
  ): unknown {
    // XState's `select` calls only `getSnapshot` and `subscribe`.
    return Actor.prototype.select.call(this, selector, isSame as never);
  }

  /** The machines of sessions emit nothing. */
  on(_type: string, _handler: (emitted: never) => void): Subscription {
    return { unsubscribe() {} };
  }

  /** Does nothing: the actor runs already. */
  start(): this {
    return this;
  }

  /** XState's name of the parent. */
  get _parent(): ActorView | undefined {
    return this.#parent;
  }

  get systemId(): string {
    return this.id;
  }

  /** The machine. */
  get logic(): AnyStateMachine {
    return this.#shown.machine;
  }

  get src(): AnyStateMachine {
    return this.#shown.machine;
  }

  get ref(): this {
    return this;
  }

  /** The actors of the session: `get('sub_1')` is a subagent, `get('question:q1')` a question. */
  get system(): Pick<AnyActorRef['system'], 'get' | 'getAll'> {
    const root = this.root;
    return {
      get: (id: string) => this.#tree.find(`${root.path}/${id}`),
      getAll: () => this.#tree.below(root),
    } as never;
  }

  [observable](): this {
    return this;
  }

  get #status(): SnapshotStatus {
    return this.getSnapshot().status;
  }

  /** The actor of the session. */
  get root(): ActorView {
    return this.#parent?.root ?? this;
  }

  get #inspected(): { readonly actorRef: AnyActorRef; readonly rootId: string } {
    return { actorRef: this as unknown as AnyActorRef, rootId: this.root.sessionId };
  }

  #inspect(event: AnyEventObject): void {
    const { inspect } = this.#tree;
    if (!inspect) return;
    const { actorRef, rootId } = this.#inspected;
    const snapshot = this.getSnapshot();
    inspect({ type: '@xstate.event', actorRef, rootId, sourceRef: undefined, event });
    inspect({ type: '@xstate.snapshot', actorRef, rootId, event, snapshot });
  }

  #each(tell: (observer: Observer<AnyMachineSnapshot>) => void): void {
    for (const observer of this.#observers) this.#safely(() => tell(observer));
  }

  /** Calls an observer of the app: its errors affect neither the other observers nor the unit. */
  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#tree.report(error, 'observer of the actor');
    }
  }
}
