// The package's range for XState starts at the version that the tests use.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifestOf = (path: string): Manifest =>
  JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as Manifest;

test('tests the oldest XState version in the supported range', () => {
  const { version } = manifestOf('../../node_modules/xstate-oldest/package.json');
  expect(manifestOf('../../package.json').dependencies['xstate']).toBe(`^${version}`);
});
