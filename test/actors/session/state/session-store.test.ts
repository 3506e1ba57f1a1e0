import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { SessionState } from '../../../../src/index.ts';
import { emptyState } from '../../../support/session-state.ts';
import { createSessionStore } from '../../../../src/actors/session/state/projection.ts';

const state: SessionState = { ...emptyState, connection: 'created' };

const failed = (error: unknown): never => {
  throw error;
};

const connected = (connection: SessionState['connection']): SessionState => ({
  ...state,
  connection,
});

test('passes each new state to a function or an observer until it unsubscribes', () => {
  const { store, replace } = createSessionStore(state, failed);
  const told: string[] = [];
  const first = store.subscribe(({ context }) => told.push(`function ${context.connection}`));
  const second = store.subscribe({
    next({ context }) {
      told.push(`observer ${context.connection}`);
    },
  });
  replace(connected('connecting'));
  first.unsubscribe();
  replace(connected('active'));
  second.unsubscribe();
  replace(connected('closed'));
  expect(told).toEqual(['function connecting', 'observer connecting', 'observer active']);
});

test('returns an unsubscribe function that works without its object, as `useSelector` requires', () => {
  const { store, replace } = createSessionStore(state, failed);
  const told: unknown[] = [];
  const { unsubscribe } = store.subscribe((snapshot) => told.push(snapshot));
  unsubscribe();
  unsubscribe();
  replace(connected('active'));
  expect(told).toEqual([]);
});

test('SESSION-STORE-2: calls the remaining listeners when one of them throws', () => {
  const errors: unknown[] = [];
  const { store, replace, release } = createSessionStore(state, (error) => errors.push(error));
  const told: string[] = [];
  const broken = new Error('the screen broke');
  store.subscribe(() => {
    throw broken;
  });
  store.subscribe(({ context }) => told.push(context.connection));
  replace(connected('closed'));
  release();
  expect(told).toEqual(['closed']);
  expect(errors).toEqual([broken]);
});

test('lets a listener unsubscribe itself and others while it is being called', () => {
  const { store, replace } = createSessionStore(state, failed);
  const told: string[] = [];
  const first = store.subscribe(({ context }) => {
    told.push(context.connection);
    first.unsubscribe();
    second.unsubscribe();
  });
  const second = store.subscribe(() => told.push('second'));
  replace(connected('active'));
  replace(connected('closed'));
  expect(told).toEqual(['active']);
});

test('SESSION-STORE-1: stops calling listeners once released, but can still be read', () => {
  const { store, replace, release } = createSessionStore(state, failed);
  const told: unknown[] = [];
  const subscription = store.subscribe((snapshot) => told.push(snapshot));
  release();
  replace(connected('closed'));
  subscription.unsubscribe();
  expect(told).toEqual([]);
  expect(store.getSnapshot().context.connection).toBe('closed');
});

test('SESSION-STORE-1: does not retain listeners after release, even while the store is in use', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { created, listened, session } = (() => {
    const reported: { readonly errors: unknown[] } = { errors: [] };
    const created = createSessionStore(state, (error) => reported.errors.push(error));
    const screen = { shown: '' };
    created.store.subscribe(({ context }) => (screen.shown = context.connection));
    return { created, listened: new WeakRef(screen), session: new WeakRef(reported) };
  })();
  // A weak reference that has been created or read keeps its target alive until the turn ends.
  const areThere = async (): Promise<readonly boolean[]> => {
    await new Promise((done) => setImmediate(done));
    collect();
    return [listened.deref() !== undefined, session.deref() !== undefined];
  };
  expect(await areThere()).toEqual([true, true]);
  created.release();
  expect(await areThere()).toEqual([false, false]);
  expect(created.store.get().context).toBe(state);
});

test("SESSION-STORE-3: refuses writes, and works with XState's store readers", () => {
  const { store, replace } = createSessionStore(state, failed);
  const readOnly = expect.objectContaining({ name: 'ConfigurationError', code: 'READ_ONLY_STORE' });
  const told: string[] = [];
  store.subscribe(({ context }) => told.push(context.connection));
  const seen: { actorRef: unknown }[] = [];
  store.inspect((event) => seen.push(event));
  const stores = [store, ...seen.map(({ actorRef }) => actorRef as typeof store)];
  expect(stores).toHaveLength(2);
  for (const each of stores) {
    const event = { type: 'replaced', state: connected('closed') };
    expect(() => each.send(event)).toThrow(readOnly);
    expect(() => each.trigger.replaced({ state: connected('closed') })).toThrow(readOnly);
    expect(() => Object.assign(each.trigger, { replaced: () => undefined })).toThrow(TypeError);
  }
  expect(store.get().context).toBe(state);
  const connection = store.select((context) => context.connection);
  replace(connected('active'));
  expect([connection.get(), ...told]).toEqual(['active', 'active']);
});
