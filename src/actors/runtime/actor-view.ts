// The actor of a unit as an app holds it: one object for as long as the unit lives, also where the unit
// puts another XState actor in the place of the first one (a snapshot is restored, an entry is set aside).
//
// Owns:     the observers.
// Does not: move the actor (HOST-1), or decide when another one takes its place (session-unit.ts).
//
// Invariants
//   VIEW-1. Observers follow the unit, not one actor: they see the states before and after a replacement,
//           and none of those that the new actor goes through until it has caught up.
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

/** As RxJS and XState look for it. */
const observable = ((Symbol as { readonly observable?: symbol }).observable ??
  '@@observable') as '@@observable';

export class ActorView<M extends AnyStateMachine> {
  readonly #report: Host['report'];
  readonly #observers = new Set<Observer<SnapshotFrom<M>>>();
  #actor: HostedActor<M>;
  /** While another actor is catching up: the state before. */
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

  /** The actor is about to be replaced, or to go back: nothing of it is seen until `goesOnAs`. */
  letGo(): void {
    if (this.#isOver || this.#before) return;
    this.#before = this.#actor.getSnapshot();
    this.#following?.unsubscribe();
    this.#following = null;
  }

  /** This actor has caught up. */
  goesOnAs(actor: HostedActor<M>): void {
    if (this.#isOver || !this.#before) return;
    const isSame = this.#before === actor.getSnapshot();
    this.#before = null;
    this.#actor = actor;
    this.#follow();
    if (!isSame) this.#each((observer) => observer.next?.(this.getSnapshot()));
  }

  /** The unit has ended. */
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
        ? // Methods of an object keep their `this`.
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

  /** It runs already. */
  start(): this {
    return this;
  }

  select<T>(selector: (snapshot: SnapshotFrom<M>) => T, isSame?: (a: T, b: T) => boolean): unknown {
    // XState's own needs nothing but the two methods above.
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
      // The unit goes back to where it was, or ends.
      error: () => {},
      complete: () => this.complete(),
    } as never);
  }

  #each(tell: (observer: Observer<SnapshotFrom<M>>) => void): void {
    for (const observer of this.#observers) this.#safely(() => tell(observer));
  }

  /** An observer of the app that throws holds up neither the others nor the unit. */
  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#report(error, 'observer of the actor');
    }
  }
}
