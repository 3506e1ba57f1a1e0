// The short form of the fuzz of the public API. The long one: `npm run fuzz -- --calls N --seed S`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fuzz } from './fuzzer.ts';
import { hostileCount, hostileValueAt, inWords } from './hostile-values.ts';
import { newEnvironment, publicSurface } from './public-surface.ts';

test('every function and class that is exported has a row', async () => {
  expect((await publicSurface()).unknown).toEqual([]);
});

test('the arguments of the rows are right: each is accepted', async () => {
  const { callables } = await publicSurface();
  const directory = mkdtempSync(join(tmpdir(), 'offstage-rows-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  let number = 0;
  for (const { args, call, trusts, refuses } of callables) {
    if (trusts !== undefined || refuses !== undefined) continue;
    number += 1;
    const given = args({ environment: newEnvironment(number), directory, number });
    expect(() => call(...given)).not.toThrow();
  }
  expect(number).toBeGreaterThan(60);
});

test('hostile values can be shown in a report', () => {
  for (let index = 0; index < hostileCount; index += 1)
    expect(typeof inWords(hostileValueAt(index))).toBe('string');
});

test('FUZZ-1 to FUZZ-4 hold for hostile calls of the whole public API', async () => {
  const report = await fuzz({ calls: 4_000, seed: 1 });
  expect(report.violations).toEqual([]);
  expect(report.calls).toBeGreaterThanOrEqual(4_000);
  expect(report.sessions).toBeGreaterThan(20);
});
