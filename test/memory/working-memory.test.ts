import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MemoryOwner } from '../../src/actors/ports/working-memory.ts';
import { workingMemory, type WorkingMemoryOptions } from '../../src/memory/working-memory.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

const HOUR = 3_600_000;
const lead: MemoryOwner = { sessionId: 's1', path: [] };
const ab: MemoryOwner = { sessionId: 's1', path: ['ab'] };
const abc: MemoryOwner = { sessionId: 's1', path: ['abc'] };
const childOfAb: MemoryOwner = { sessionId: 's1', path: ['ab', 'kid'] };
const otherLead: MemoryOwner = { sessionId: 's2', path: [] };

function setUp(options: Partial<WorkingMemoryOptions> = {}) {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment, ...options });
  const keys = async (owner: MemoryOwner, prefix?: string): Promise<string[]> => {
    const answer = await memory.list(owner, { prefix });
    return answer.ok ? answer.entries.map(({ key }) => key) : [answer.error.code];
  };
  const text = async (owner: MemoryOwner, key: string): Promise<string> => {
    const answer = await memory.get(owner, key);
    return answer.ok ? answer.entry.text : answer.error.code;
  };
  const save = async (owner: MemoryOwner, key: string, value: unknown = key): Promise<string> => {
    const answer = await memory.save(owner, { key, value });
    return answer.ok ? answer.key : answer.error.code;
  };
  return { environment, memory, keys, text, save };
}

describe('namespaces', { tags: ['R35'] }, () => {
  test("stores an entry in its owner's namespace by default", async () => {
    const { save } = setUp();
    expect(await save(lead, 'plan')).toBe('session/s1/plan');
    expect(await save(ab, 'notes/a')).toBe('subagent/ab/notes/a');
    expect(await save(childOfAb, 'notes')).toBe('subagent/kid/notes');
  });

  test(
    'KEYS-1: treats a key that starts with a namespace as absolute',
    { tags: ['R37', 'RW5'] },
    async () => {
      const { memory, save, text } = setUp();
      expect(await save(ab, 'subagent/ab/report')).toBe('subagent/ab/report');
      expect(await text(ab, 'report')).toBe('subagent/ab/report');
      expect(await text(ab, 'subagent/ab/report')).toBe('subagent/ab/report');
      expect(await memory.list(ab, { prefix: 'subagent/ab/report' })).toMatchObject({ total: 1 });
      expect(await memory.list(ab, { prefix: 'report' })).toMatchObject({ total: 1 });
      expect(await memory.search(ab, { query: 'report', prefix: 'subagent/ab' })).toMatchObject({
        total: 1,
      });
      expect(await memory.delete(ab, 'subagent/ab/report')).toMatchObject({ ok: true });
      expect(await text(ab, 'report')).toBe('NOT_FOUND');
    },
  );

  test(
    'treats a key with a slash as relative unless it starts with a namespace',
    { tags: ['R37', 'RW5'] },
    async () => {
      const { memory, save, text } = setUp();
      expect(await save(ab, 'report/part-1')).toBe('subagent/ab/report/part-1');
      expect(await text(ab, 'report/part-1')).toBe('report/part-1');
      expect(await memory.delete(ab, 'report/part-1')).toMatchObject({ ok: true });
    },
  );

  test.each([
    ['', 'an empty key'],
    ['/report', 'an empty segment'],
    ['report/', 'a trailing slash'],
    ['a//b', 'an empty segment within'],
    ['../session/s1/x', 'dots'],
    ['report ', 'a blank that nobody sees'],
    ['a\nb', 'a line break'],
    ['session', 'a kind'],
    ['subagent/ab', 'a namespace without a key'],
    ['x'.repeat(201), 'a very long one'],
  ])('WORKING-MEMORY-4: %j is not a valid key (%s)', async (key) => {
    const { memory, save, text } = setUp();
    expect(await save(ab, key)).toBe('INVALID_KEY');
    expect(await text(ab, key)).toBe('INVALID_KEY');
    expect(await memory.list(lead)).toMatchObject({ total: 0 });
  });

  test('escapes ids, so that a session named "a/b" has only one namespace', async () => {
    const { memory, save } = setUp();
    const odd: MemoryOwner = { sessionId: 'a/b c', path: [] };
    expect(await save(odd, 'x')).toBe('session/a%2Fb%20c/x');
    expect(await memory.get(odd, 'session/a%2Fb%20c/x')).toMatchObject({ ok: true });
  });
});

describe('WORKING-MEMORY-5: permissions', { tags: ['R35'] }, () => {
  test("allow reads of ancestors' and descendants' entries by full path", async () => {
    const { save, text } = setUp();
    await save(lead, 'plan');
    await save(ab, 'notes');
    await save(childOfAb, 'finding');
    expect(await text(childOfAb, 'session/s1/plan')).toBe('plan');
    expect(await text(childOfAb, 'subagent/ab/notes')).toBe('notes');
    expect(await text(ab, 'subagent/kid/finding')).toBe('finding');
    expect(await text(lead, 'subagent/kid/finding')).toBe('finding');
  });

  test('P8: hide entries from a sibling and do not reveal that they exist', async () => {
    const { memory, save, text, keys } = setUp();
    await save(ab, 'secret');
    expect(await text(abc, 'subagent/ab/secret')).toBe('NOT_FOUND');
    expect(await memory.get(abc, 'subagent/ab/secret')).toEqual({
      ok: false,
      error: { code: 'NOT_FOUND', message: 'There is nothing under subagent/ab/secret' },
    });
    expect(await keys(abc)).toEqual([]);
    expect(await memory.search(abc, { query: 'secret' })).toMatchObject({ total: 0 });
    expect(await memory.delete(abc, 'subagent/ab/secret')).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
  });

  test('WORKING-MEMORY-1 P8: hide entries from another session with equal ids', async () => {
    const { memory, save, text, keys } = setUp();
    await save(ab, 'secret');
    await save(lead, 'plan');
    const sameId: MemoryOwner = { sessionId: 's2', path: ['ab'] };
    expect(await text(sameId, 'secret')).toBe('NOT_FOUND');
    expect(await text(otherLead, 'subagent/ab/secret')).toBe('NOT_FOUND');
    expect(await text(otherLead, 'session/s1/plan')).toBe('NOT_FOUND');
    expect(await keys(otherLead)).toEqual([]);
    await memory.forget('s2');
    expect(await text(ab, 'secret')).toBe('secret');
  });

  test(
    'refuse writes and deletes in another namespace and say why',
    { tags: ['RW5'] },
    async () => {
      const { memory, save, text } = setUp();
      await save(ab, 'notes');
      expect(await memory.save(lead, { key: 'subagent/ab/notes', value: 'x' })).toEqual({
        ok: false,
        error: {
          code: 'NOT_OWNER',
          message: 'Expected writes in session/s1/, got subagent/ab/: others are read only',
        },
      });
      expect(await memory.delete(lead, 'subagent/ab/notes')).toMatchObject({
        error: { code: 'NOT_OWNER' },
      });
      expect(await save(ab, 'session/s1/plan')).toBe('NOT_OWNER');
      expect(await text(ab, 'notes')).toBe('notes');
    },
  );

  test('let one other subagent read a shared entry and its later values, but no other entry', async () => {
    const { memory, save, text, keys } = setUp();
    await save(ab, 'report');
    await save(ab, 'secret');
    expect(await memory.share(lead, 'subagent/ab/report', 'abc')).toEqual({
      ok: true,
      key: 'subagent/ab/report',
    });
    expect(await text(abc, 'subagent/ab/report')).toBe('report');
    await save(ab, 'report', 'better');
    expect(await text(abc, 'subagent/ab/report')).toBe('better');
    expect(await text(abc, 'subagent/ab/secret')).toBe('NOT_FOUND');
    expect(await keys(abc)).toEqual(['subagent/ab/report']);
    expect(await save(abc, 'subagent/ab/report')).toBe('NOT_OWNER');
    expect(await text({ ...abc, path: ['abc', 'kid2'] }, 'subagent/ab/report')).toBe('NOT_FOUND');
  });

  test('do not let an agent share an entry that it cannot read', async () => {
    const { memory, save } = setUp();
    await save(ab, 'secret');
    expect(await memory.share(abc, 'subagent/ab/secret', 'abc')).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
  });
});

describe('ENTRY-TABLE-2: retention', { tags: ['R35'] }, () => {
  test('keeps entries for 4 hours by default, for every owner', { tags: ['RW4'] }, async () => {
    const { environment, memory, save, text } = setUp();
    await save(ab, 'notes');
    await save(lead, 'plan');
    await environment.advance(4 * HOUR - 1);
    expect(await text(lead, 'subagent/ab/notes')).toBe('notes');
    await environment.advance(1);
    expect(await text(lead, 'subagent/ab/notes')).toBe('NOT_FOUND');
    expect(await text(ab, 'notes')).toBe('NOT_FOUND');
    expect(await memory.list(lead)).toMatchObject({ total: 0 });
  });

  test('follows the options and can be set for each entry', async () => {
    const { environment, memory, text } = setUp({ subagentTtlMs: 10, sessionTtlMs: 20 });
    await memory.save(ab, { key: 'notes', value: '1' });
    await memory.save(ab, { key: 'long', value: '2', ttlMs: HOUR });
    await memory.save(lead, { key: 'plan', value: '3' });
    await environment.advance(10);
    expect(await text(ab, 'notes')).toBe('NOT_FOUND');
    expect(await text(lead, 'plan')).toBe('3');
    await environment.advance(10);
    expect(await text(lead, 'plan')).toBe('NOT_FOUND');
    expect(await text(ab, 'long')).toBe('2');
  });

  test(
    'removes expired entries from lists and searches and frees their space',
    { tags: ['R36'] },
    async () => {
      const { environment, memory, save } = setUp({ maxEntries: 1, maxSessionBytes: 40 });
      await memory.save(ab, { key: 'old', value: 'words words words', ttlMs: 5 });
      expect(await save(ab, 'new')).toBe('NAMESPACE_FULL');
      await environment.advance(5);
      expect(await memory.search(lead, { query: 'words' })).toMatchObject({ matches: [] });
      expect(await save(ab, 'new')).toBe('subagent/ab/new');
    },
  );

  test('omits an entry from a search if the entry is deleted during the search', async () => {
    const { memory, save } = setUp();
    await save(ab, 'a', 'words');
    const searching = memory.search(ab, { query: 'words' });
    await memory.delete(ab, 'a');
    expect(await searching).toMatchObject({ matches: [], total: 0 });
  });

  test.each([0, -1, Number.NaN, 8 * 24 * HOUR])('refuses a lifetime of %d ms', async (ttlMs) => {
    const { memory } = setUp();
    expect(await memory.save(ab, { key: 'k', value: 'v', ttlMs })).toMatchObject({
      error: { code: 'INVALID_ENTRY' },
    });
  });
});

describe('ENTRY-TABLE-3: limits', { tags: ['R36', 'RW5'] }, () => {
  test('allow 50 entries per namespace, and allow overwriting an entry at the limit', async () => {
    const { memory, save, text } = setUp();
    for (let number = 1; number <= 50; number += 1)
      expect(await save(ab, `key-${number}`)).toBe(`subagent/ab/key-${number}`);
    expect(await memory.save(ab, { key: 'key-51', value: 'x' })).toEqual({
      ok: false,
      error: {
        code: 'NAMESPACE_FULL',
        message: 'subagent/ab holds 50 entries, the limit (maxEntries): delete or overwrite one',
      },
    });
    expect(await text(ab, 'key-51')).toBe('NOT_FOUND');
    expect(await memory.save(ab, { key: 'key-7', value: 'again' })).toMatchObject({
      ok: true,
      replaced: true,
    });
    expect(await text(ab, 'key-7')).toBe('again');
    expect(await save(lead, 'plan')).toBe('session/s1/plan');
    await memory.delete(ab, 'key-7');
    expect(await save(ab, 'key-51')).toBe('subagent/ab/key-51');
  });

  test('apply to the size of an entry, of a session and of the whole memory', async () => {
    const { memory, save } = setUp({ maxEntryBytes: 10, maxSessionBytes: 60, maxTotalBytes: 80 });
    expect(await memory.save(ab, { key: 'k', value: 'ä'.repeat(5) })).toMatchObject({
      ok: true,
      bytes: 10,
    });
    expect(await save(ab, 'k', 'ä'.repeat(6))).toBe('ENTRY_TOO_LARGE');
    // 10 for the value and 13 for the key are in use. The limit of 60 allows one more such entry, but not two.
    expect(await save(ab, 'l', 'x'.repeat(10))).toBe('subagent/ab/l');
    expect(await save(ab, 'm', 'x'.repeat(10))).toBe('MEMORY_FULL');
    expect(await save(otherLead, 'k', 'x'.repeat(10))).toBe('session/s2/k');
    const full = await memory.save({ sessionId: 's3', path: [] }, { key: 'k', value: 'xxxxx' });
    expect(full).toMatchObject({ error: { code: 'MEMORY_FULL' } });
    await memory.forget('s1');
    expect(await save({ sessionId: 's3', path: [] }, 'k', 'xxxxx')).toBe('session/s3/k');
  });

  test('WORKING-MEMORY-4: keep the old value if an overwrite is refused', async () => {
    const { save, text } = setUp({ maxEntryBytes: 5 });
    await save(ab, 'k', 'old');
    expect(await save(ab, 'k', 'much too long')).toBe('ENTRY_TOO_LARGE');
    expect(await text(ab, 'k')).toBe('old');
  });

  test.each<{ value: unknown }>([{ value: undefined }, { value: () => {} }, { value: 10n }])(
    '$value is no value',
    async ({ value }) => {
      const { memory } = setUp();
      expect(await memory.save(ab, { key: 'k', value })).toMatchObject({
        error: { code: 'INVALID_ENTRY' },
      });
    },
  );

  test('apply to labels', async () => {
    const { memory } = setUp();
    const entry = { key: 'k', value: 'v' };
    for (const labels of [
      { category: '' },
      { category: 'x'.repeat(101) },
      { tags: ['x'.repeat(51)] },
      { tags: Array.from({ length: 21 }, String) },
    ])
      expect(await memory.save(ab, { ...entry, ...labels })).toMatchObject({
        error: { code: 'INVALID_ENTRY' },
      });
  });

  test.each([
    { maxEntries: 0 },
    { maxEntryBytes: 1.5 },
    { subagentTtlMs: -1 },
    { maxEntry: 3 },
    { maxTtlMs: 5 },
  ])('cannot be set to %j', (limits) => {
    expect(() => setUp(limits)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  test('remain correct after any sequence of saves, overwrites, deletions and expiries', async () => {
    const step = fc.record({
      who: fc.constantFrom(lead, ab, childOfAb, otherLead),
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      length: fc.integer({ min: 0, max: 30 }),
      what: fc.constantFrom('save', 'save', 'delete', 'wait', 'forget'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (all) => {
        const { environment, memory, keys, text } = setUp({
          maxEntries: 3,
          maxSessionBytes: 120,
          maxTotalBytes: 160,
          subagentTtlMs: 25,
        });
        for (const { who, key, length, what } of all) {
          if (what === 'wait') await environment.advance(10);
          else if (what === 'delete') await memory.delete(who, key);
          else if (what === 'forget' && length === 0) await memory.forget(who.sessionId);
          else await memory.save(who, { key, value: 'x'.repeat(length) });
        }
        let total = 0;
        for (const owner of [lead, otherLead]) {
          const all = await keys(owner);
          let bytes = 0;
          for (const key of all) bytes += key.length + (await text(owner, key)).length;
          total += bytes;
          expect(bytes).toBeLessThanOrEqual(120);
          for (const name of ['session/s1', 'subagent/ab', 'subagent/kid'])
            expect((await keys(owner, name)).length).toBeLessThanOrEqual(3);
          for (const key of all) expect((await text(owner, key)).length).toBeLessThanOrEqual(30);
        }
        expect(total).toBeLessThanOrEqual(160);
        // The whole limit is available again after everything has been deleted.
        await memory.forget('s1');
        await memory.forget('s2');
        const whole = await memory.save(lead, { key: 'k', value: 'x'.repeat(120 - 12) });
        expect(whole).toMatchObject({ ok: true });
      }),
      { numRuns: 60 },
    );
  });
});

describe('lists and searches', { tags: ['R36'] }, () => {
  test('KEYS-2: match a prefix only up to whole segments', { tags: ['RW5'] }, async () => {
    const { keys, save } = setUp();
    await save(ab, 'x');
    await save(ab, 'report');
    await save(ab, 'report/1');
    await save(ab, 'reporting');
    await save(abc, 'x');
    expect(await keys(lead, 'subagent/ab')).toEqual([
      'subagent/ab/report',
      'subagent/ab/report/1',
      'subagent/ab/reporting',
      'subagent/ab/x',
    ]);
    expect(await keys(lead, 'subagent/ab/')).toHaveLength(4);
    expect(await keys(lead, 'subagent/abc')).toEqual(['subagent/abc/x']);
    expect(await keys(ab, 'report')).toEqual(['subagent/ab/report', 'subagent/ab/report/1']);
    expect(await keys(lead, 'subagent')).toHaveLength(5);
    expect(await keys(lead, 'subagent/a')).toEqual([]);
  });

  test("return the caller's own entries first and count the entries beyond the limit", async () => {
    const { memory, keys, save } = setUp();
    await save(lead, 'plan');
    await save(childOfAb, 'finding');
    await save(ab, 'zebra');
    expect(await keys(ab)).toEqual([
      'subagent/ab/zebra',
      'session/s1/plan',
      'subagent/kid/finding',
    ]);
    const answer = await memory.list(ab, { limit: 2 });
    expect(answer).toMatchObject({ total: 3, entries: [{}, {}] });
    expect(await memory.list(ab, { limit: 0 })).toMatchObject({ error: { code: 'INVALID_ENTRY' } });
  });

  test('filter by a category prefix and by all tags', async () => {
    const { memory } = setUp();
    await memory.save(ab, { key: 'a', value: '', category: 'Research/Flights', tags: ['x', 'Y'] });
    await memory.save(ab, { key: 'b', value: '', category: 'research', tags: ['x'] });
    await memory.save(ab, { key: 'c', value: '', tags: ['y'] });
    const found = async (filter: object): Promise<string[]> => {
      const answer = await memory.list(ab, filter);
      return answer.ok ? answer.entries.map(({ key }) => key.slice(-1)) : [];
    };
    expect(await found({ category: 'research' })).toEqual(['a', 'b']);
    expect(await found({ category: 'research/' })).toEqual(['a']);
    expect(await found({ category: 'flights' })).toEqual([]);
    expect(await found({ tags: ['x', 'y'] })).toEqual(['a']);
    expect(await found({ tags: ['y'] })).toEqual(['a', 'c']);
    expect(await found({ tags: [] })).toEqual(['a', 'b', 'c']);
  });

  test('rank search results by matches in text, key and labels, with an excerpt', async () => {
    const { memory, environment } = setUp();
    const long = `${'filler '.repeat(100)}the VISAS for Brazil ${'filler '.repeat(100)}`;
    await memory.save(ab, { key: 'long', value: long });
    await memory.save(ab, { key: 'short', value: 'visa and passport' });
    await memory.save(ab, { key: 'visa', value: 'nothing about it' });
    await memory.save(ab, { key: 'other', value: 'weather' });
    const answer = await memory.search(lead, { query: 'visa passport' });
    if (!answer.ok) throw new Error(answer.error.message);
    expect(answer.matches.map(({ key }) => key)).toEqual([
      'subagent/ab/short',
      'subagent/ab/visa',
      'subagent/ab/long',
    ]);
    expect(answer.matches[2]?.excerpt).toMatch(/^….*VISAS for Brazil.*…$/);
    expect(answer.matches[2]?.excerpt.length).toBeLessThan(250);
    expect(await memory.search(lead, { query: 'visa', limit: 1 })).toMatchObject({ total: 3 });
    expect(await memory.search(lead, { query: '?!' })).toMatchObject({ matches: [], total: 0 });
    await environment.settle();
  });

  test('store JSON unchanged and find it by the words in it', async () => {
    const { memory } = setUp();
    const value = { flights: [{ to: 'Lisbon', price: 120 }] };
    await memory.save(ab, { key: 'data', value });
    expect(await memory.get(ab, 'data')).toMatchObject({
      entry: { value, text: JSON.stringify(value), bytes: JSON.stringify(value).length },
    });
    expect(await memory.search(lead, { query: 'lisbon' })).toMatchObject({ total: 1 });
  });
});
