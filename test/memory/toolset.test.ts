import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/actors/model/caller.ts';
import type { MemoryOwner } from '../../src/actors/ports/working-memory.ts';
import {
  createWorkingMemoryToolset,
  type WorkingMemoryToolsetOptions,
} from '../../src/memory/toolset.ts';
import { memoryReaderIn } from '../../src/memory/large-output.ts';
import { workingMemory } from '../../src/memory/working-memory.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

/** The options with which the runtime calls a tool. The family is lead, a, b (spawned by a), c. */
function context(subagentId: string | null, sessionId = 's1'): object {
  const parents: Record<string, string | null> = { a: null, b: 'a', c: null };
  const parentOf = (id: string): string | null => parents[id] ?? null;
  const caller = {
    sessionId,
    subagentId,
    parentId: subagentId === null ? null : parentOf(subagentId),
    service: { check: (id: string) => ({ ok: true, report: { parentId: parentOf(id) } }) },
  } as unknown as Caller;
  return { offstage: caller };
}

type ToolName = keyof ReturnType<typeof createWorkingMemoryToolset>;

function setUp(options: Partial<WorkingMemoryToolsetOptions> = {}) {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment, maxEntries: 3 });
  const tools = createWorkingMemoryToolset({ memory, ...options });
  const call = async (name: ToolName, input: object, given?: object) => {
    const execute = tools[name].execute as (input: unknown, options: object) => unknown;
    const called = { toolCallId: 't1', messages: [], context: given };
    return (await execute(input, called)) as Record<string, unknown>;
  };
  return { environment, memory, tools, call };
}

describe('working memory as tools', { tags: ['R37'] }, () => {
  test(
    "TOOLSET-3: return a saved entry's full path, which the read tool accepts",
    { tags: ['RW5'] },
    async () => {
      const { call } = setUp();
      expect(
        await call('save_to_working_memory', { key: 'report/1', value: 'text' }, context('a')),
      ).toEqual({
        saved: true,
        key: 'subagent/a/report/1',
        bytes: 4,
        replaced: false,
        expiresAt: '2023-11-15T02:13:20.000Z',
      });
      for (const key of ['report/1', 'subagent/a/report/1'])
        expect(await call('get_from_working_memory', { key }, context('a'))).toMatchObject({
          found: true,
          key: 'subagent/a/report/1',
          text: 'text',
          nextOffset: null,
        });
    },
  );

  test('TOOLSET-3: report a value that could not be saved', { tags: ['RW5'] }, async () => {
    const { call, memory } = setUp();
    for (const key of ['1', '2', '3'])
      await call('save_to_working_memory', { key, value: key }, context('a'));
    expect(await call('save_to_working_memory', { key: '4', value: 'x' }, context('a'))).toEqual({
      saved: false,
      error: { code: 'NAMESPACE_FULL', message: expect.stringContaining('maxEntries') },
    });
    expect(await memory.list({ sessionId: 's1', path: ['a'] })).toMatchObject({ total: 3 });
  });

  test(
    'use the namespace of the caller: lead agent, subagent or nested subagent',
    { tags: ['R35'] },
    async () => {
      const { call } = setUp();
      const save = (who: string | null) =>
        call('save_to_working_memory', { key: 'k', value: 'v' }, context(who));
      expect(await save(null)).toMatchObject({ key: 'session/s1/k' });
      expect(await save('a')).toMatchObject({ key: 'subagent/a/k' });
      expect(await save('b')).toMatchObject({ key: 'subagent/b/k' });
      const read = (key: string, who: string | null) =>
        call('get_from_working_memory', { key }, context(who));
      expect(await read('subagent/a/k', 'b')).toMatchObject({ found: true });
      expect(await read('session/s1/k', 'b')).toMatchObject({ found: true });
      expect(await read('subagent/b/k', 'a')).toMatchObject({ found: true });
      expect(await read('subagent/a/k', 'c')).toMatchObject({
        found: false,
        error: { code: 'NOT_FOUND' },
      });
    },
  );

  test("P8: prefer the caller's identity to the owner option", async () => {
    const { call } = setUp({ owner: { sessionId: 's1', path: [] } });
    await call('save_to_working_memory', { key: 'plan', value: 'v' }, context(null));
    expect(
      await call('get_from_working_memory', { key: 'session/s1/plan' }, context(null, 's2')),
    ).toMatchObject({ found: false });
    expect(
      await call('delete_from_working_memory', { key: 'session/s1/plan' }, context('a')),
    ).toEqual({ deleted: false, error: { code: 'NOT_OWNER', message: expect.any(String) } });
  });

  test('require an owner option outside Offstage', async () => {
    const owner: MemoryOwner = { sessionId: 'app', path: [] };
    expect(
      await setUp({ owner }).call('save_to_working_memory', { key: 'k', value: 'v' }),
    ).toMatchObject({ key: 'session/app/k' });
    await expect(
      setUp().call('save_to_working_memory', { key: 'k', value: 'v' }),
    ).rejects.toMatchObject({ code: 'NO_MEMORY_OWNER' });
  });

  test.each(['ttl_minutes', 'ttlMinutes'])(
    'keep an entry for the number of minutes in %s',
    async (name) => {
      const { call, environment } = setUp();
      const entry = { key: 'note', value: 'v' };
      await call('save_to_working_memory', { ...entry, [name]: 2 }, context('a'));
      await environment.advance(119_000);
      expect(await call('get_from_working_memory', { key: 'note' }, context('a'))).toMatchObject({
        found: true,
      });
      await environment.advance(2_000);
      expect(await call('get_from_working_memory', { key: 'note' }, context('a'))).toMatchObject({
        found: false,
      });
    },
  );

  test('list, search and delete', async () => {
    const { call } = setUp();
    await call(
      'save_to_working_memory',
      { key: 'flights', value: 'to Lisbon', category: 'research', tags: ['x'], ttlMinutes: 1 },
      context('a'),
    );
    const entry = {
      key: 'subagent/a/flights',
      bytes: 9,
      category: 'research',
      tags: ['x'],
      expiresAt: '2023-11-14T22:14:20.000Z',
    };
    expect(await call('list_working_memory', {}, context(null))).toEqual({
      entries: [entry],
      total: 1,
      leftOut: 0,
    });
    expect(await call('search_working_memory', { query: 'lisbon' }, context(null))).toEqual({
      matches: [{ ...entry, excerpt: 'to Lisbon' }],
      total: 1,
      leftOut: 0,
    });
    expect(await call('delete_from_working_memory', { key: 'flights' }, context('a'))).toEqual({
      deleted: true,
      key: 'subagent/a/flights',
    });
    expect(await call('list_working_memory', {}, context('a'))).toMatchObject({ total: 0 });
    for (const [name, input] of [
      ['list_working_memory', { prefix: '//' }],
      ['search_working_memory', { query: 'x', prefix: '//' }],
    ] as const)
      expect(await call(name, input, context('a'))).toMatchObject({
        error: { code: 'INVALID_KEY' },
      });
  });

  test(
    'TOOLSET-4: return a long text in pages without losing any of it',
    { tags: ['MW9'] },
    async () => {
      const { call, memory } = setUp({ pageBytes: 1024 });
      const value = `${'"\u0001é'.repeat(700)}🎭${'plain '.repeat(500)}`;
      await memory.save({ sessionId: 's1', path: ['a'] }, { key: 'long', value });
      let whole = '';
      let pages = 0;
      for (let offset: number | null = 0; offset !== null; pages += 1) {
        const page = await call('get_from_working_memory', { key: 'long', offset }, context('a'));
        expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThanOrEqual(1024);
        expect(page['totalChars']).toBe(value.length);
        whole += page['text'] as string;
        offset = page['nextOffset'] as number | null;
      }
      expect(whole).toBe(value);
      expect(pages).toBeGreaterThan(3);
      expect(
        await call('get_from_working_memory', { key: 'long', offset: 1e9 }, context('a')),
      ).toMatchObject({ text: '', nextOffset: null });
    },
  );

  test('TOOLSET-4: state how many entries a partial list omits', async () => {
    const { call, memory } = setUp({ pageBytes: 1024 });
    for (const key of ['1', '2', '3'])
      await memory.save(
        { sessionId: 's1', path: ['a'] },
        {
          key: `${key}-${'ä'.repeat(40)}`,
          value: '',
          category: 'c'.repeat(100),
          tags: ['t'.repeat(50), 'u'.repeat(50), 'v'.repeat(50)],
        },
      );
    expect(await call('list_working_memory', {}, context('a'))).toMatchObject({
      entries: [{}, {}],
      total: 3,
      leftOut: 1,
    });
  });

  test('throw at construction if the page size is below the minimum', () => {
    expect(() => setUp({ pageBytes: 100 })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    );
  });

  test('recognise the read tool under any name', () => {
    const { tools } = setUp();
    expect(memoryReaderIn({ x: {}, recall: tools.get_from_working_memory })).toBe('recall');
    expect(memoryReaderIn({ save: tools.save_to_working_memory, odd: null })).toBeNull();
  });
});
