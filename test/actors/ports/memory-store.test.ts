import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { memoryStore, type MemoryStore } from '../../../src/actors/ports/memory-store.ts';
import { CapacityError, ConfigurationError } from '../../../src/values/errors.ts';

let store: MemoryStore;
beforeEach(() => {
  store = memoryStore();
});

const remember = async (...texts: string[]): Promise<void> => {
  for (const [n, text] of texts.entries()) {
    await store.remember({ id: `f${n}`, scope: 'ann', text, at: n });
  }
};
const recall = async (query: string | undefined, limit: number): Promise<string[]> =>
  (await store.facts({ scope: 'ann', query, limit })).map(({ text }) => text);

describe('ranking', () => {
  const flights = 'Prefers a window seat on flights';
  const berlin = 'Lives in Berlin';
  const code = 'The project is written in TypeScript';

  test('ranks first the fact that shares words with the query', async () => {
    await remember(flights, berlin, code);
    expect(await recall('Which seat on the flight to Rome?', 1)).toEqual([flights]);
    expect(await recall('fix the bug in the TypeScript project', 1)).toEqual([code]);
  });

  test('gives a rare word more weight than a common one', async () => {
    await remember(
      'The user has a dog',
      'The user has a cat',
      'The user has a car',
      'Works in Oslo',
    );
    expect(await recall('what the user has in Oslo', 1)).toEqual(['Works in Oslo']);
  });

  test('ignores case, accents and plurals in any script', async () => {
    await remember('Trinkt gern CAFÉ', 'Любит чай', 'Owns two cats');
    expect(await recall('cafe', 1)).toEqual(['Trinkt gern CAFÉ']);
    expect(await recall('ЧАЙ', 1)).toEqual(['Любит чай']);
    expect(await recall('a cat', 1)).toEqual(['Owns two cats']);
  });

  test('prefers the newest of equally relevant facts, and the newest facts when there is no query', async () => {
    await remember('tea one', 'tea two', 'tea three');
    expect(await recall('tea', 2)).toEqual(['tea three', 'tea two']);
    expect(await recall(undefined, 2)).toEqual(['tea three', 'tea two']);
    expect(await recall('nothing of it', 1)).toEqual(['tea three']);
  });

  test('returns all facts, relevant or not, if there are only a few', async () => {
    await remember(flights, berlin);
    expect(await recall('berlin', 10)).toEqual([berlin, flights]);
    expect(await recall('berlin', 0)).toEqual([]);
  });

  test('matches the query against the category as well as the text', async () => {
    await remember('Drinks tea');
    await store.remember({ id: 'a', scope: 'ann', text: 'No nuts', category: 'allergy', at: -1 });
    expect(await recall('any allergy?', 1)).toEqual(['No nuts']);
  });

  test('never returns duplicates, facts of another scope, or more facts than requested', async () => {
    const facts = fc.array(
      fc.record({
        id: fc.constantFrom('1', '2', '3', '4', '5'),
        scope: fc.constantFrom('ann', 'bob'),
        text: fc.lorem({ maxCount: 3 }),
        at: fc.nat(9),
      }),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(facts, fc.lorem({ maxCount: 2 }), fc.nat(6), async (known, query, limit) => {
        const fresh = memoryStore();
        for (const fact of known) await fresh.remember(fact);
        const found = await fresh.facts({ scope: 'ann', query, limit });
        const ofAnn = new Set(known.filter(({ scope }) => scope === 'ann').map(({ id }) => id));
        expect(found.every(({ scope }) => scope === 'ann')).toBe(true);
        expect(new Set(found.map(({ id }) => id)).size).toBe(Math.min(limit, ofAnn.size));
        expect(found).toHaveLength(Math.min(limit, ofAnn.size));
      }),
    );
  });
});

describe('storage', () => {
  test('replaces only a fact that has the same id in the same scope', async () => {
    await remember('old');
    await store.remember({ id: 'f0', scope: 'bob', text: 'of bob', at: 1 });
    await store.remember({ id: 'f0', scope: 'ann', text: 'new', at: 1 });
    expect(await recall(undefined, 9)).toEqual(['new']);
    expect(await store.facts({ scope: 'bob', limit: 9 })).toHaveLength(1);
  });

  test('returns whether there was a fact to delete', async () => {
    await remember('one', 'two');
    expect(await store.forget({ scope: 'bob', id: 'f0' })).toBe(false);
    expect(await store.forget({ scope: 'ann', id: 'f0' })).toBe(true);
    expect(await store.forget({ scope: 'ann', id: 'f0' })).toBe(false);
    expect(await recall(undefined, 9)).toEqual(['two']);
  });

  test('P7: refuses new facts when full, and keeps those already stored', async () => {
    store = memoryStore({ maxFacts: 2, maxTextChars: 10 });
    await remember('one', 'two');
    const third = { id: 'f3', scope: 'ann', text: 'three', at: 3 };
    await expect(store.remember(third)).rejects.toThrow(CapacityError);
    await expect(store.remember(third)).rejects.toThrow(/maxFacts/);
    await expect(store.remember({ ...third, id: 'f0', text: 'x'.repeat(11) })).rejects.toThrow(
      /maxTextChars/,
    );
    await store.remember({ ...third, id: 'f0' });
    await store.remember({ ...third, scope: 'bob' });
    expect(await recall(undefined, 9)).toEqual(['three', 'two']);
  });

  test('refuses invalid facts, limits and bounds', async () => {
    const empty = { id: 'x', scope: 'ann', text: '', at: 1 };
    await expect(store.remember(empty)).rejects.toThrow(ConfigurationError);
    await expect(store.facts({ scope: 'ann', limit: -1 })).rejects.toThrow(ConfigurationError);
    expect(() => memoryStore({ maxFacts: 0.5 })).toThrow(ConfigurationError);
  });
});
