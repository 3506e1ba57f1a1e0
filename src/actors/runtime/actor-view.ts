// The actor of a unit as an app holds it: one object for the lifetime of the unit, even if the unit replaces
// its XState actor (a snapshot is restored, an entry is set aside).
//
// Owns:     the observers.
// Does not: move the actor (HOST-1), or decide when it is replaced (session-unit.ts).
//
// Invariants
//   VIEW-1. Observers follow the unit instead of one actor: they see the states before and after a
//           replacement, and none of those that the new actor passes through while it catches up.
//   VIEW-2. Observers complete once: when the unit ends.

import {
  Actor,
  type AnyStateMachine,
  type Observer,
  type SnapshotFrom,
  type Subscription,
} from 'xstate';
import { quietly } from '../../values/errors.ts';
import type { Host } from './host.ts';
import { readOnly, type HostedActor } from './hosting.ts';

/** The key under which RxJS and XState look for it. */
const observable = ((Symbol as { readonly observable?: symbol }).observable ??
  '@@observable') as '@@observable';

export class ActorView<M extends AnyStateMachine> {
  readonly #report: Host['report'];
  readonly #observers = new Set<Observer<SnapshotFrom<M>>>();
  #actor: HostedActor<M>;
  /** The snapshot before the replacement, while another actor catches up; null otherwise. */
  #before: SnapshotFrom<M> | null = null;
  #following: Subscription | null = null;
  #isOver = false;

  readonly send = readOnly.send;
  readonly stop = readOnly.stop;

  constructor(actor: HostedActor<M>, host: Pick<Host, 'report'>) {
    this.#report = quietly((error, where) => host.report(error, where));
    this.#actor = actor;
    this.#follow();
  }

  /** Prepares for a replacement or a rollback: observers see no states until `goesOnAs`. */
  release(): void {
    if (this.#isOver || this.#before) return;
    this.#before = this.#actor.getSnapshot();
    this.#following?.unsubscribe();
    this.#following = null;
  }

  /** Shows this actor, which has caught up. */
  goesOnAs(actor: HostedActor<M>): void {
    if (this.#isOver || !this.#before) return;
    const isSame = this.#before === actor.getSnapshot();
    this.#before = null;
    this.#actor = actor;
    this.#follow();
    if (!isSame) this.#each((observer) => observer.next?.(this.getSnapshot()));
  }

  /** Completes the observers when the unit has ended. */
  complete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#following?.unsubscribe();
    this.#each((observer) => observer.complete?.());
    this.#observers.clear();
  }

  getSnapshot(): SnapshotFrom<M> {
    return this.#before ?? this.#actor.getSnapshot();
  }

  subscribe(
    next?: Observer<SnapshotFrom<M>> | ((snapshot: SnapshotFrom<M>) => void),
    error?: (error: unknown) => void,
    complete?: () => void,
  ): Subscription {
    const observer: Observer<SnapshotFrom<M>> =
      typeof next === 'object'
        ? // Methods of an observer object keep their `this`.
          {
            next: (snapshot) => next.next?.(snapshot),
            error: (thrown) => next.error?.(thrown),
            complete: () => next.complete?.(),
          }
        : { ...(next && { next }), ...(error && { error }), ...(complete && { complete }) };
    if (this.#isOver) this.#safely(() => observer.complete?.());
    else this.#observers.add(observer);
    return { unsubscribe: () => void this.#observers.delete(observer) };
  }

  get id() {
    return this.#actor.id;
  }
  get sessionId() {
    return this.#actor.sessionId;
  }
  get systemId() {
    return this.#actor.systemId;
  }
  get system(): HostedActor<M>['system'] {
    return this.#actor.system;
  }
  get src() {
    return this.#actor.src;
  }
  get logic() {
    return this.#actor.logic;
  }
  get options() {
    return this.#actor.options;
  }
  get clock(): HostedActor<M>['clock'] {
    return this.#actor.clock;
  }
  get ref() {
    return this;
  }

  /** Does nothing: the actor runs already. */
  start(): this {
    return this;
  }

  select<T>(selector: (snapshot: SnapshotFrom<M>) => T, isSame?: (a: T, b: T) => boolean): unknown {
    // XState's `select` needs only the two methods above.
    return Actor.prototype.select.call(this, selector, isSame as never);
  }

  /** The machines of sessions emit nothing. */
  on(type: string, handler: (emitted: never) => void): Subscription {
    return this.#actor.on(type as never, handler);
  }

  [observable](): this {
    return this;
  }

  getPersistedSnapshot() {
    return this.#actor.getPersistedSnapshot();
  }

  toJSON() {
    return this.#actor.toJSON();
  }

  #follow(): void {
    const actor = this.#actor;
    this.#following = actor.subscribe({
      next: (snapshot: SnapshotFrom<M>) => this.#each((observer) => observer.next?.(snapshot)),
      // The unit is rolled back, or ends.
      error: () => {},
      complete: () => this.complete(),
    } as never);
  }

  #each(tell: (observer: Observer<SnapshotFrom<M>>) => void): void {
    for (const observer of this.#observers) this.#safely(() => tell(observer));
  }

  /** Calls an observer of the app: its errors affect neither the other observers nor the unit. */
  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#report(error, 'observer of the actor');
    }
  }
}
