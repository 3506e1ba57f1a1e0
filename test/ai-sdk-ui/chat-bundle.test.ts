// What a page loads for `offstage/ai-sdk-ui`: nothing of the AI SDK, and nothing of Node.js.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { reachedFrom } from '../../scripts/lint/value-imports.ts';
import { bundle } from '../support/bundle.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('imports no package and no module of Node.js', async () => {
  const reached = reachedFrom(['src/ai-sdk-ui/index.ts'], (file) =>
    readFileSync(root + file, 'utf8'),
  );
  // `setImmediate` is asked for before it is used.
  expect(reached.map(({ name }) => name)).toEqual(['setImmediate']);
  expect((await bundle('src/ai-sdk-ui/index.ts', ['browser'])).builtIns).toEqual([]);
});
