// The state of a session as a store, for screens: `useSelector` reads it.
//
// Does not: decide its content, or when it changes (projection.ts).
//
// Invariants
//   SESSION-STORE-1. When nothing changes any more, all subscribers are released: a listener holds its
//       screen, a screen its session, and a store may be kept for long. (V8 puts the functions of
//       @xstate/store's subscriptions among the old objects at once, with all that they refer to.)
//   SESSION-STORE-2. A listener that throws does not keep others from being notified.
//   SESSION-STORE-3. Only `replace` changes the state. `send` and `trigger` of the store throw
//       `READ_ONLY_STORE`: screens show the state of the session, and not an event that one of them sent.

import { createStore } from '@xstate/store';
import type { SessionState } from '../../contracts/session-views.ts';
import { ConfigurationError } from '../../../values/errors.ts';

function storeOf(state: SessionState) {
  return createStore({
    context: state,
    on: { replaced: (_: SessionState, event: { state: SessionState }) => event.state },
  });
}

type OwnStore = ReturnType<typeof storeOf>;

/** A store of @xstate/store that can be read, subscribed to and selected from, and not changed. */
export type SessionStore = Omit<OwnStore, 'send' | 'trigger'> & {
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_STORE`: use the methods of the session. */
  readonly send: (event: unknown) => never;
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_STORE`: use the methods of the session. */
  readonly trigger: { readonly replaced: (payload: unknown) => never };
};
type Snapshot = ReturnType<SessionStore['getSnapshot']>;
type Observe = (snapshot: Snapshot) => void;
type Observer = Observe | { readonly next?: Observe };

export interface CreatedStore {
  readonly store: SessionStore;
  /** Replaces the state, and notifies the listeners (SESSION-STORE-3). */
  replace(state: SessionState): void;
  /** Releases all subscribers (SESSION-STORE-1). */
  release(): void;
}

/** `threw`: receives the errors of listeners. */
export function createSessionStore(
  state: SessionState,
  threw: (error: unknown) => void,
): CreatedStore {
  const store = storeOf(state);
  const { send } = store;
  const all: Listeners = { listeners: new Set(), threw };
  const subscribe = store.subscribe.bind(store);
  store.subscribe = (observer: Observer) => {
    const listener = new Listener(observer, all);
    listener.subscription = subscribe(listener);
    // Not the listener itself: `useSelector` detaches the function from the object.
    return { unsubscribe: () => listener.leave() };
  };
  const release = (): void => {
    for (const listener of all.listeners) listener.leave();
    all.threw = null;
  };
  return {
    store: Object.assign(store, readOnly),
    replace: (to) => send({ type: 'replaced', state: to }),
    release,
  };
}

function refuse(what: string): never {
  throw new ConfigurationError(
    'READ_ONLY_STORE',
    `${what}: the store of a session is read-only, since it shows what is in the journal. Use the methods of the session instead (sendText, answer, shown, dismiss, subagents.cancel, close)`,
  );
}

const readOnly = {
  send: (): never => refuse('store.send(event)'),
  trigger: Object.freeze({ replaced: (): never => refuse('store.trigger.replaced(payload)') }),
};

interface Listeners {
  readonly listeners: Set<Listener>;
  /** Null: released. It refers to the session, too (SESSION-STORE-1). */
  threw: ((error: unknown) => void) | null;
}

class Listener {
  #observer: Observer | null;
  readonly #all: Listeners;
  subscription: { unsubscribe(): void } | null = null;

  constructor(observer: Observer, all: Listeners) {
    this.#observer = observer;
    this.#all = all;
    all.listeners.add(this);
  }

  next(snapshot: Snapshot): void {
    try {
      if (typeof this.#observer === 'function') this.#observer(snapshot);
      else this.#observer?.next?.(snapshot);
    } catch (error) {
      this.#all.threw?.(error);
    }
  }

  leave(): void {
    this.#observer = null;
    this.subscription?.unsubscribe();
    this.subscription = null;
    this.#all.listeners.delete(this);
  }
}
