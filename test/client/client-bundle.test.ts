// The bundle that a page loads for `offstage/client`: its size and its contents.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { expect, test } from 'vitest';
import { reachedFrom } from '../../scripts/lint/value-imports.ts';
import { bundle } from '../support/bundle.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const KILOBYTES = 1_024;

test('has a bundle of at most 15 KB, including its imports', async () => {
  const built = await build({
    root,
    configFile: false,
    envFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: true,
      target: 'es2023',
      lib: { entry: `${root}src/client/index.ts`, formats: ['iife'], name: 'client' },
    },
  });
  const [output] = [built].flat();
  const chunk = output && 'output' in output ? output.output[0] : undefined;
  const size = gzipSync(chunk?.code ?? '').byteLength;
  expect(size).toBeGreaterThan(KILOBYTES);
  expect(size).toBeLessThanOrEqual(15 * KILOBYTES);
});

test('imports no Node.js module, no zod and no AI SDK', async () => {
  const reached = reachedFrom(['src/client/index.ts'], (file) => readFileSync(root + file, 'utf8'));
  // The code checks whether `setImmediate` exists before it uses it.
  expect(reached.map(({ name }) => name).toSorted()).toEqual(['setImmediate']);
  for (const host of [[], ['browser'], ['browser', 'worker']] as const)
    expect((await bundle('src/client/index.ts', host)).builtIns).toEqual([]);
});

test("imports nothing in the audio worklet's file", () => {
  expect(readFileSync(`${root}src/client/worklet.ts`, 'utf8')).not.toMatch(/^import|import\(/m);
});
