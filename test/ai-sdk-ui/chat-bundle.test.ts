// The bundle that a page loads for `offstage/ai-sdk-ui` contains neither the AI SDK nor Node.js.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { reachedFrom } from '../../scripts/lint/value-imports.ts';
import { bundle } from '../support/bundle.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('imports no package and no Node.js module', async () => {
  const reached = reachedFrom(['src/ai-sdk-ui/index.ts'], (file) =>
    readFileSync(root + file, 'utf8'),
  );
  // The code checks whether `setImmediate` exists before it uses it.
  expect(reached.map(({ name }) => name)).toEqual(['setImmediate']);
  expect((await bundle('src/ai-sdk-ui/index.ts', ['browser'])).builtIns).toEqual([]);
});
