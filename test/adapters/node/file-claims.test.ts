// A folder that stores the large texts of jobs.

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

test('FILE-CLAIMS-1: reads the latest version of a text, even if another store wrote it', async () => {
  const directory = join(await folder(), 'deep', 'down');
  const claims = fileClaims({ directory });
  expect(await claims.read('ses/sub:1')).toBeNull();
  const text = `☃ ${'x'.repeat(300_000)}`;
  await claims.keep('ses/sub:1', 'first');
  await claims.keep('ses/sub:1', text);
  expect(await fileClaims({ directory }).read('ses/sub:1')).toBe(text);
  expect((await readdir(directory)).length).toBe(1);
});

test('FILE-CLAIMS-2: assigns each reference its own file inside the folder', async () => {
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
    'k'.repeat(200),
    'k'.repeat(201),
    '☃'.repeat(900),
    `${'☃'.repeat(900)}1`,
    'a\nb',
    '__proto__',
  ];
  for (const reference of references) await claims.keep(reference, reference);
  for (const reference of references) expect(await claims.read(reference)).toBe(reference);
  expect(await readdir(above)).toEqual(['claims']);
  const files = await readdir(directory, { recursive: true, withFileTypes: true });
  expect(files.filter((file) => file.isFile()).length).toBe(references.length);
});

test('deletes only the references that have the prefix', async () => {
  const claims = fileClaims({ directory: await folder() });
  for (const reference of ['ses/sub1:1', 'ses/sub1:2', 'ses/sub10:1', 'sesx/sub1:1'])
    await claims.keep(reference, 'text');
  await claims.forget('ses/sub1:');
  expect(await claims.read('ses/sub1:1')).toBeNull();
  expect(await claims.read('ses/sub1:2')).toBeNull();
  expect(await claims.read('ses/sub10:1')).toBe('text');
  expect(await claims.read('sesx/sub1:1')).toBe('text');
});

test.each([119, 195, 196, 200, 1_000])(
  "deletes by prefix, even if the session's name has %i characters",
  async (length) => {
    const directory = await folder();
    const claims = fileClaims({ directory });
    const session = '☃'.repeat(length / 9).padEnd(length, 'n');
    for (const name of [session, `${session}x`])
      await claims.keep(`${name}/sub:${'c'.repeat(3_000)}`, 'text');
    await claims.keep(`${session}/sub:1`, 'text');
    await claims.forget(`${session}/`);
    expect(await claims.read(`${session}/sub:1`)).toBeNull();
    expect(await claims.read(`${session}/sub:${'c'.repeat(3_000)}`)).toBeNull();
    expect(await claims.read(`${session}x/sub:${'c'.repeat(3_000)}`)).toBe('text');
    await claims.forget(`${session}x/`);
    const files = await readdir(directory, { recursive: true, withFileTypes: true });
    expect(files.filter((file) => file.isFile())).toEqual([]);
  },
);

test('refuses a prefix that is too long to match safely', async () => {
  const claims = fileClaims({ directory: await folder() });
  await expect(claims.forget('s'.repeat(2_401))).rejects.toMatchObject({ code: 'FORGET_UNSURE' });
});

test('refuses invalid options, and names them in the error', () => {
  expect(() => fileClaims({} as never)).toThrow(/fileClaims\(options\).*directory/s);
  expect(() => fileClaims({ directory: 'a\0b' })).toThrow(/without/);
});
