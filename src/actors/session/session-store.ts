// The state of a session as a store, for screens: `useSelector` reads it.
//
// Does not: say what is in it, or when it changes (projection.ts).
//
// Invariants
//   ST1. When nothing changes any more, whoever listens is let go of: a listener holds its screen, a
//        screen its session, and a store may be kept for long. (V8 puts the functions of
//        @xstate/store's subscriptions among the old objects at once, with all they refer to.)

import { createStore } from '@xstate/store';
import type { SessionState } from '../session-views.ts';

function storeOf(state: SessionState) {
  return createStore({
    context: state,
    on: { replaced: (_: SessionState, event: { state: SessionState }) => event.state },
  });
}

export type SessionStore = ReturnType<typeof storeOf>;
type Snapshot = ReturnType<SessionStore['getSnapshot']>;
type Observe = (snapshot: Snapshot) => void;
type Observer = Observe | { readonly next?: Observe };

export interface CreatedStore {
  readonly store: SessionStore;
  /** ST1. Whoever subscribes later is told nothing either. */
  release(): void;
}

export function createSessionStore(state: SessionState): CreatedStore {
  const store = storeOf(state);
  const listeners = new Set<Listener>();
  const subscribe = store.subscribe.bind(store);
  store.subscribe = (observer: Observer) => {
    const listener = new Listener(observer, listeners);
    listener.subscription = subscribe(listener);
    return listener;
  };
  const release = (): void => {
    for (const listener of listeners) listener.unsubscribe();
  };
  return { store, release };
}

class Listener {
  #observer: Observer | null;
  readonly #all: Set<Listener>;
  subscription: { unsubscribe(): void } | null = null;

  constructor(observer: Observer, all: Set<Listener>) {
    this.#observer = observer;
    this.#all = all;
    all.add(this);
  }

  next(snapshot: Snapshot): void {
    if (typeof this.#observer === 'function') this.#observer(snapshot);
    else this.#observer?.next?.(snapshot);
  }

  unsubscribe(): void {
    this.#observer = null;
    this.subscription?.unsubscribe();
    this.subscription = null;
    this.#all.delete(this);
  }
}
