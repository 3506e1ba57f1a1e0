// Large texts of jobs in a folder.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileClaims } from '../../../src/adapters/node/index.ts';

async function folder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'claims-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('FILE-CLAIMS-1: a text is read as it was kept; another end reads it too; the last one counts', async () => {
  const directory = join(await folder(), 'deep', 'down');
  const claims = fileClaims({ directory });
  expect(await claims.read('ses/sub:1')).toBeNull();
  const text = `☃ ${'x'.repeat(300_000)}`;
  await claims.keep('ses/sub:1', 'first');
  await claims.keep('ses/sub:1', text);
  expect(await fileClaims({ directory }).read('ses/sub:1')).toBe(text);
  expect((await readdir(directory)).length).toBe(1);
});

test('FILE-CLAIMS-2: no reference leaves the folder, and no two share a file', async () => {
  const above = await folder();
  const directory = join(above, 'claims');
  const claims = fileClaims({ directory });
  const references = [
    '../../outside',
    '..',
    '.',
    '/etc/passwd',
    'a/b',
    'a%2Fb',
    `long/${'k'.repeat(900)}1`,
    `long/${'k'.repeat(900)}2`,
    'a\nb',
    '__proto__',
  ];
  for (const reference of references) await claims.keep(reference, reference);
  for (const reference of references) expect(await claims.read(reference)).toBe(reference);
  expect(await readdir(above)).toEqual(['claims']);
  expect((await readdir(directory)).length).toBe(references.length);
});

test('forgets what begins so, and nothing else', async () => {
  const claims = fileClaims({ directory: await folder() });
  for (const reference of ['ses/sub1:1', 'ses/sub1:2', 'ses/sub10:1', 'sesx/sub1:1'])
    await claims.keep(reference, 'text');
  await claims.forget('ses/sub1:');
  expect(await claims.read('ses/sub1:1')).toBeNull();
  expect(await claims.read('ses/sub1:2')).toBeNull();
  expect(await claims.read('ses/sub10:1')).toBe('text');
  expect(await claims.read('sesx/sub1:1')).toBe('text');
});

test('options that are none are refused by name', () => {
  expect(() => fileClaims({} as never)).toThrow(/fileClaims\(options\).*directory/s);
  expect(() => fileClaims({ directory: 'a\0b' })).toThrow(/without/);
});
