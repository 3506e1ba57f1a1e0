// Real XState actors for a unit's machines, created on demand. Only the unit changes their state. `useSelector`,
// `waitFor`, `toPromise`, RxJS, `system` and `inspect` work on them as in XState.
//
// Owns:     the actors, and the path that an event from outside takes to the unit.
// Does not: hold a machine's state, or keep a machine alive (an unobserved unit has no actors).
//
// Invariants
//   ACTORS-1. Observers see the unit's state. While the unit reads its journal, they see no new state; afterwards, they
//       see the current state.
//   ACTORS-2. An actor ends exactly once, when its machine or its unit ends.
//   ACTORS-3. The actor of the path `a/b` is the child `b` of the actor `a`.
//   ACTORS-4. An event from outside is passed to the unit's door. The event alone does not change any snapshot.

import {
  Actor,
  type ActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type EventObject,
  type InspectionEvent,
  type Observer,
  type Subscription,
} from 'xstate';
import { ConfigurationError, quietly, type OffstageError } from '../../values/errors.ts';
import { isRecord } from '../../values/json.ts';
import { shown as shownText } from '../../values/plain-checks.ts';
import { plain, type Shown } from './hosting.ts';

/** Emitted when an event had no effect. */
export interface ActorRefusal {
  /** The type under which an actor emits refusals. */
  readonly type: 'refused';
  /** The refused event. */
  readonly event: { readonly type: string };
  /** The reason, with a stable code. */
  readonly error: OffstageError;
}

/** The logic of an actor that only its unit changes. `Sent`: the events that code outside the unit may send. */
export type HostedLogic<S extends AnyMachineSnapshot, Sent extends EventObject> = ActorLogic<
  S,
  Sent,
  undefined,
  AnyActorRef['system'],
  ActorRefusal
>;

/** The actor of a machine whose events pass through its unit's journal. */
export type HostedActor<
  S extends AnyMachineSnapshot = AnyMachineSnapshot,
  Sent extends EventObject = AnyEventObject,
> = Actor<HostedLogic<S, Sent>>;

/** Receives events from outside for a unit's actors. */
export interface Door {
  /** Handles an event for the actor at this path. Returns why the event has no effect; null if it has an effect. */
  take(path: string, event: AnyEventObject): OffstageError | null | Promise<OffstageError | null>;
  /** Called when the owner of the unit's actor stops the actor. */
  stopped(): void;
}

/** A door that refuses every event. */
const closed: Door = {
  take: (path, event) => unopened(path, event, 'none: only its unit moves it'),
  stopped() {},
};

export function unopened(path: string, event: AnyEventObject, expected: string): OffstageError {
  return new ConfigurationError(
    'INVALID_EVENT',
    `actor ${path}: expected an event ${expected}, got ${shownText(event.type)}`,
  );
}

/**
 * Returns whether XState itself created the event, for example when a child actor ends. Such an event does not affect a
 * unit's actors.
 */
export function isOfXState({ type }: { readonly type: unknown }): boolean {
  return String(type).startsWith('xstate.');
}

/**
 * Passes an event from outside to the door, and emits a refusal if the event has no effect. Returns whether the door
 * answers asynchronously. If so, `settled` is called before the refusal is emitted.
 */
export function knock(
  door: Door,
  path: string,
  event: AnyEventObject,
  emit: (refusal: ActorRefusal) => void,
  settled?: () => void,
): boolean {
  if (isOfXState(event)) return false;
  const refuse = (error: OffstageError | null): void => {
    if (error) emit({ type: 'refused', event, error });
  };
  const taken = door.take(path, event);
  if (taken instanceof Promise) void taken.finally(settled).then(refuse);
  else refuse(taken);
  return taken instanceof Promise;
}

let parentOfNext: AnyActorRef | undefined;

/** Creates the actors of every unit that `make` creates, as children of `parent`. */
export function below<T>(parent: AnyActorRef | undefined, make: () => T): T {
  const before = parentOfNext;
  parentOfNext = parent;
  try {
    return make();
  } finally {
    parentOfNext = before;
  }
}

/** The actors of one unit, or of the units of a program. */
export class ActorTree {
  readonly report: (error: unknown, where: string) => void;
  /** Receives the events of all actors. */
  readonly inspect: ((event: InspectionEvent) => void) | undefined;
  /** Returns all machines of the unit, for an app that starts to observe when they already exist. */
  machines: () => Iterable<Shown> = () => [];
  /**
   * The path of the top actor; null if there is none. A machine that starts before the top actor becomes visible after
   * it.
   */
  root: string | null = null;
  door: Door = closed;
  /** The app's actor that the unit belongs to. */
  readonly #parent = parentOfNext;
  /** The actor logic objects of this tree, which distinguish its actors from the system's other actors. */
  readonly logics = new WeakSet<object>();
  readonly #views = new Map<string, View>();
  readonly #early: Shown[] = [];
  /** The subscription to the inspector of the app's system, if the actors belong to such a system. */
  #inspected: Subscription | null = null;

  constructor(
    report: (error: unknown, where: string) => void,
    inspect: ((event: InspectionEvent) => void) | undefined,
  ) {
    this.report = quietly(report);
    this.inspect = inspect;
  }

  /** Whether any machine is observed. If not, machines need not report changes. */
  get isWatched(): boolean {
    return this.isSeen || this.#views.size > 0;
  }

  /** Whether an inspector or the app's system must see each actor from its start. */
  get isSeen(): boolean {
    return this.inspect !== undefined || this.#parent !== undefined;
  }

  /** Makes a machine that starts or resumes visible to observers. */
  began(shown: Shown): void {
    const known = this.#views.get(shown.id);
    if (known) return known.follow(shown);
    const isEarly = this.root !== null && shown.id !== this.root && !this.#views.has(this.root);
    if (!isEarly && this.isWatched) this.#view(shown);
    else if (this.isSeen) this.#early.push(shown);
  }

  moved(id: string, event: AnyEventObject): void {
    this.#views.get(id)?.move(event);
  }

  /** Ends the actor of a removed machine. */
  ended(id: string): void {
    this.#views.get(id)?.end();
  }

  /** Stops updating the actor's visible state while the unit reads its journal. */
  pause(id: string): void {
    this.#views.get(id)?.pause();
  }

  resume(id: string): void {
    this.#views.get(id)?.resume();
  }

  /** Returns a machine's actor. The first call also creates the actors of all other machines. */
  show(shown: Shown): AnyActorRef {
    const known = this.#views.get(shown.id);
    if (known) return known.actor;
    const { actor } = this.#view(shown);
    for (const other of this.machines())
      if (other.snapshot.status === 'active' && !this.#views.has(other.id)) this.#view(other);
    return actor;
  }

  #view(shown: Shown): View {
    let above: View | undefined;
    for (let path = shown.id; !above && path.includes('/'); above = this.#views.get(path))
      path = path.slice(0, path.lastIndexOf('/'));
    const { inspect } = this;
    if (inspect && this.#parent)
      this.#inspected ??= this.#parent.system.inspect((event) => {
        // The system may contain other actors, which are not inspected here.
        if (this.logics.has((event.actorRef as Guarded).logic)) inspect(event);
      });
    const view = new View(shown, this, above, this.#parent);
    this.#views.set(shown.id, view);
    view.actor.start();
    if (shown.id === this.root) for (const early of this.#early.splice(0)) this.began(early);
    return view;
  }

  /** Removes an actor that has ended. */
  remove(view: View): void {
    if (this.#views.get(view.path) === view) this.#views.delete(view.path);
    if (this.#views.size > 0) return;
    this.#inspected?.unsubscribe();
    this.#inspected = null;
  }
}

/** An actor as apps receive it. If an observer throws, neither the other observers nor the process are affected. */
class Guarded extends Actor<HostedLogic<AnyMachineSnapshot, AnyEventObject>> {
  /** Called with each observer's error. */
  threw: (error: unknown) => void = () => {};

  override send(event: AnyEventObject): void {
    const given: unknown = event;
    if (!isRecord(given) || typeof given['type'] !== 'string')
      throw new ConfigurationError(
        'INVALID_EVENT',
        `actor ${this.id}: expected an event with a \`type\`, got ${shownText(given)}`,
      );
    super.send(event);
  }

  override subscribe(
    next?: Observer<AnyMachineSnapshot> | ((snapshot: AnyMachineSnapshot) => void),
    error?: (error: unknown) => void,
    complete?: () => void,
  ): Subscription {
    const given: Partial<Observer<AnyMachineSnapshot>> =
      typeof next === 'object' ? next : { ...(next && { next }), error, complete };
    const safely = (call: () => void): void => {
      try {
        call();
      } catch (thrown) {
        this.threw(thrown);
      }
    };
    return super.subscribe({
      next: (snapshot) => safely(() => given.next?.(snapshot)),
      error: (thrown) => safely(() => given.error?.(thrown)),
      complete: () => safely(() => given.complete?.()),
    });
  }
}

/** The actor of one machine. */
class View {
  readonly path: string;
  readonly actor: Guarded;
  readonly #tree: ActorTree;
  readonly #above: View | undefined;
  #shown: Shown;
  /** The snapshots to show, by the internal events that lead to them. Events from outside lead to no snapshot. */
  readonly #moves = new WeakMap<AnyEventObject, AnyMachineSnapshot>();
  readonly #children: Record<string, AnyActorRef> = {};
  /** The machine's last shown snapshot. */
  #latest: AnyMachineSnapshot;
  #isPaused = false;

  constructor(
    shown: Shown,
    tree: ActorTree,
    above: View | undefined,
    parentOfTree: AnyActorRef | undefined,
  ) {
    this.path = shown.id;
    this.#tree = tree;
    this.#above = above;
    this.#shown = shown;
    this.#latest = shown.snapshot;
    const parent = above?.actor ?? parentOfTree;
    const id = above ? shown.id.slice(above.path.length + 1) : shown.id;
    const start = tree.root === null || parentOfTree ? 0 : tree.root.length + 1;
    const systemId = shown.id.slice(start) || id;
    const isFree = parent?.system.get(systemId) === undefined;
    const { inspect } = tree;
    this.actor = new Guarded(this.#logic(), {
      id,
      ...(isFree ? { systemId } : {}),
      ...(parent ? { parent } : {}),
      ...(inspect && !parent ? { inspect } : {}),
    });
    this.actor.threw = (error) => tree.report(error, 'observer of the actor');
    if (above) above.#children[id] = this.actor;
  }

  #logic(): HostedLogic<AnyMachineSnapshot, AnyEventObject> {
    const { machine } = this.#shown;
    const logic: HostedLogic<AnyMachineSnapshot, AnyEventObject> = {
      getInitialSnapshot: () => this.#snapshot(),
      getPersistedSnapshot: plain,
      transition: (before, event, { emit }) => {
        const next = this.#moves.get(event);
        if (next) {
          this.#moves.delete(event);
          if (next.status !== 'active') this.#forget();
          return next;
        }
        if (event.type === 'xstate.stop') {
          this.#forget();
          if (!this.#above) this.#tree.door.stopped();
          return stopped(before);
        }
        knock(this.#tree.door, this.path, event, emit);
        return before;
      },
    };
    // Logic with the machine's properties, for apps that read its definition and states.
    const own = Object.assign(Object.create(machine) as object, logic);
    this.#tree.logics.add(own);
    return own;
  }

  /** Returns the machine's snapshot, including the child actors. */
  #snapshot(): AnyMachineSnapshot {
    this.#latest = this.#shown.snapshot;
    return { ...this.#latest, children: this.#children };
  }

  move(event: AnyEventObject): void {
    if (this.#isPaused || this.actor.getSnapshot().status !== 'active') return;
    const own = { ...event };
    this.#moves.set(own, this.#snapshot());
    this.actor.send(own);
  }

  /** Makes the same actor show another machine. */
  follow(shown: Shown): void {
    if (this.#shown === shown) return;
    this.#shown = shown;
    this.move({ type: 'xstate.init' });
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#latest !== this.#shown.snapshot) this.move({ type: 'xstate.init' });
  }

  end(): void {
    if (this.actor.getSnapshot().status !== 'active') return;
    const own = { type: 'xstate.stop' };
    this.#moves.set(own, stopped(this.#snapshot()));
    this.actor.send(own);
  }

  #forget(): void {
    this.#tree.remove(this);
    if (this.#above) delete this.#above.#children[this.actor.id];
  }
}

const stopped = (snapshot: AnyMachineSnapshot): AnyMachineSnapshot =>
  ({ ...snapshot, status: 'stopped' }) as AnyMachineSnapshot;
