import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createSessionStore } from '../../../src/actors/session/session-store.ts';
import type { SessionState } from '../../../src/index.ts';

const state: SessionState = {
  connection: 'created',
  floor: 'nobody',
  agent: null,
  transcript: [],
  subagents: [],
  questions: [],
  deliveries: [],
  usage: { inputTokens: null, outputTokens: null },
  limits: [],
};

const connected = (connection: SessionState['connection']): SessionState => ({
  ...state,
  connection,
});

test('a function and an observer are told of each new state, until they leave', () => {
  const { store } = createSessionStore(state);
  const told: string[] = [];
  const first = store.subscribe(({ context }) => told.push(`function ${context.connection}`));
  const second = store.subscribe({
    next({ context }) {
      told.push(`observer ${context.connection}`);
    },
  });
  store.trigger.replaced({ state: connected('connecting') });
  first.unsubscribe();
  store.trigger.replaced({ state: connected('active') });
  second.unsubscribe();
  store.trigger.replaced({ state: connected('closed') });
  expect(told).toEqual(['function connecting', 'observer connecting', 'observer active']);
});

test('ST1: once released it tells nobody, and can still be read', () => {
  const { store, release } = createSessionStore(state);
  const told: unknown[] = [];
  const subscription = store.subscribe((snapshot) => told.push(snapshot));
  release();
  store.trigger.replaced({ state: connected('closed') });
  subscription.unsubscribe();
  expect(told).toEqual([]);
  expect(store.getSnapshot().context.connection).toBe('closed');
});

test('ST1: what listened goes, however long the store is kept', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const created = createSessionStore(state);
  const listened = (() => {
    const screen = { shown: '' };
    created.store.subscribe(({ context }) => (screen.shown = context.connection));
    return new WeakRef(screen);
  })();
  // A weak reference that was made or read keeps what it names until the turn is over.
  const isThere = async (): Promise<boolean> => {
    await new Promise((done) => setImmediate(done));
    collect();
    return listened.deref() !== undefined;
  };
  expect(await isThere()).toBe(true);
  created.release();
  expect(await isThere()).toBe(false);
  expect(created.store.get().context).toBe(state);
});
