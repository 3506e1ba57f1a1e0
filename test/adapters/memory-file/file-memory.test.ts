import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fileMemory } from '../../../src/adapters/memory-file/index.ts';
import { CapacityError, ConfigurationError, ProviderError } from '../../../src/values/errors.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'memory-file-'));
  path = join(folder, 'memory.jsonl');
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

const fact = (id: string, text = `fact ${id}`) => ({ id, scope: 'ann', text, at: 1 });
const allOf = async (store = fileMemory({ path })): Promise<string[]> =>
  (await store.facts({ scope: 'ann', limit: 1_000 })).map(({ id }) => id);

test('keeps facts, even with line breaks, for the next store that opens the file', async () => {
  const store = fileMemory({ path });
  const written = { ...fact('a', 'two\nlines'), category: 'c', source: 's' };
  await store.remember(written);
  await store.remember(fact('b'));
  await store.forget({ scope: 'ann', id: 'b' });
  expect(await fileMemory({ path }).facts({ scope: 'ann', limit: 9 })).toEqual([written]);
});

test('creates the folder, and returns no facts until the file exists', async () => {
  path = join(folder, 'deep', 'er', 'memory.jsonl');
  const store = fileMemory({ path });
  expect(await allOf(store)).toEqual([]);
  expect(await store.forget({ scope: 'ann', id: 'a' })).toBe(false);
  await store.remember(fact('a'));
  expect(await readdir(join(folder, 'deep', 'er'))).toEqual(['memory.jsonl']);
});

test('FILE-MEMORY-2: executes a hundred simultaneous calls in order', async () => {
  const store = fileMemory({ path });
  const names = Array.from({ length: 100 }, (_, n) => `n${n}`);
  const forgotten: Promise<boolean>[] = [];
  await Promise.all(
    names.map(async (name, n) => {
      const kept = store.remember(fact(name));
      if (n % 2) forgotten.push(store.forget({ scope: 'ann', id: name }));
      return kept;
    }),
  );
  expect(await Promise.all(forgotten)).toEqual(forgotten.map(() => true));
  const even = names.filter((_, n) => n % 2 === 0);
  expect((await allOf()).toSorted()).toEqual(even.toSorted());
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(even);
});

test('FILE-MEMORY-2: stores the other facts when one is refused', async () => {
  const store = fileMemory({ path, limits: { maxFacts: 2, maxTextChars: undefined } });
  const ends = await Promise.allSettled(
    ['a', 'b', 'c'].map(async (id) => store.remember(fact(id))),
  );
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  expect((ends[2] as PromiseRejectedResult).reason).toBeInstanceOf(CapacityError);
  expect((await allOf()).toSorted()).toEqual(['a', 'b']);
});

describe('FACT-FILE-1: a crash', () => {
  test('leaves a partial draft, which reads ignore and the next write replaces', async () => {
    await fileMemory({ path }).remember(fact('a'));
    await writeFile(`${path}.tmp`, '{"id":"b","scope":"ann","te');
    const store = fileMemory({ path });
    expect(await allOf(store)).toEqual(['a']);
    await store.remember(fact('c'));
    expect((await allOf()).toSorted()).toEqual(['a', 'c']);
    expect(await readdir(folder)).toEqual(['memory.jsonl']);
  });

  test('FILE-MEMORY-1, FILE-MEMORY-3: changes nothing when a write fails, and accepts the next write', async () => {
    const store = fileMemory({ path });
    await store.remember(fact('a'));
    const before = await readFile(path, 'utf8');
    // A folder is in the place of the draft file, so the write cannot start.
    await mkdir(`${path}.tmp`);
    const failure = store.remember(fact('b'));
    await expect(failure).rejects.toThrow(ProviderError);
    await expect(failure).rejects.toMatchObject({
      code: 'MEMORY_FILE_UNWRITABLE',
      retryable: true,
    });
    expect(await allOf(store)).toEqual(['a']);
    expect(await readFile(path, 'utf8')).toBe(before);
    await rm(`${path}.tmp`, { recursive: true });
    await store.remember(fact('b'));
    expect((await allOf()).toSorted()).toEqual(['a', 'b']);
  });
});

describe('FACT-FILE-2: a file that cannot be read', () => {
  const good = JSON.stringify(fact('a'));

  test.each([
    ['half a line', `${good}\n{"id":"b","sco`],
    ['no fact', `${good}\n{"id":"b","scope":"ann","text":7,"at":1}\n`],
    ['more than a fact', `${good}\n${JSON.stringify({ ...fact('b'), admin: true })}\n`],
  ])('refuses %s with file and line, and keeps the file', async (_, content) => {
    await writeFile(path, content);
    const store = fileMemory({ path });
    const reading = store.facts({ scope: 'ann', limit: 1 });
    await expect(reading).rejects.toThrow(ConfigurationError);
    await expect(reading).rejects.toThrow(`${path}, line 2`);
    await expect(store.remember(fact('c'))).rejects.toThrow(`${path}, line 2`);
    await expect(store.forget({ scope: 'ann', id: 'a' })).rejects.toThrow('line 2');
    expect(await readFile(path, 'utf8')).toBe(content);
    expect(await readdir(folder)).toEqual(['memory.jsonl']);
  });

  test('stays usable with the same store once the file is repaired', async () => {
    await writeFile(path, 'rubbish');
    const store = fileMemory({ path });
    await expect(allOf(store)).rejects.toThrow('line 1');
    await writeFile(path, `${good}\n\n`);
    expect(await allOf(store)).toEqual(['a']);
  });

  test('reports a path that is not a file as unreadable', async () => {
    const store = fileMemory({ path: folder });
    await expect(allOf(store)).rejects.toMatchObject({ code: 'MEMORY_FILE_UNREADABLE' });
  });

  test('refuses a pipe with an error that names it, without waiting for the pipe', async () => {
    execFileSync('mkfifo', [path]);
    const store = fileMemory({ path });
    for (const used of [allOf(store), store.remember(fact('a'))])
      await expect(used).rejects.toMatchObject({
        code: 'MEMORY_FILE_UNREADABLE',
        message: expect.stringContaining(path) as string,
      });
  });
});
