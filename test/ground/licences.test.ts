// Checks the licences of everything that gets installed with the package, the local voice, and the repository's tools.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VOICE_PACKAGES } from '../../src/adapters/local-voice/speech/voice-packages.ts';

const read = (name: string): string =>
  readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');

interface Locked {
  readonly license?: string;
  readonly dev?: boolean;
  readonly peer?: boolean;
  readonly optional?: boolean;
}

const locked = Object.entries(
  (JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }).packages,
).flatMap(([path, entry]) =>
  path === '' ? [] : [{ name: path.replace(/^.*node_modules\//, ''), ...entry }],
);

/** The rows of the tables: package name and licence. */
const told = [...read('THIRD-PARTY.md').matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(
  ([, name, licence]) => `${name}: ${licence?.trim()}`,
);

const ANY = ['MIT', 'Apache-2.0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause'];
/** Licences whose conditions apply only to their own files, for packages that we do not ship. */
const FOR_TOOLS = new Set([
  ...ANY,
  'MIT-0',
  'MPL-2.0',
  'BlueOak-1.0.0',
  '(AFL-2.1 OR BSD-3-Clause)',
  'EPL-2.0 OR GPL-3.0-or-later',
]);

test('lists in THIRD-PARTY.md exactly the packages that an install adds', () => {
  const brought = locked.filter(({ dev, peer, optional }) => !dev && !peer && !optional);
  const ours = brought.map(({ name, license }) => `${name}: ${license}`);
  const voice = Object.entries(VOICE_PACKAGES).map(([name, { licence }]) => `${name}: ${licence}`);
  expect(told.toSorted()).toEqual([...ours, ...voice].toSorted());
  expect(brought.filter(({ license = '' }) => !ANY.includes(license))).toEqual([]);
});

test('has a reviewed licence for every tool of the repository', () => {
  expect(locked.filter(({ license = '' }) => !FOR_TOOLS.has(license))).toEqual([]);
});
