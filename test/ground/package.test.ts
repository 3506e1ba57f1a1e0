// Checks the properties of the package that a fresh clone and its users depend on.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as machines from '../../src/entries/machines.ts';
import * as offstage from '../../src/index.ts';
import * as testing from '../../src/testing/index.ts';
import { OFFSTAGE_VERSION } from '../../src/values/version.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<
    Record<string, string | { types: string; default: string; 'offstage-source': string }>
  >;
  readonly dependencies: Readonly<Record<string, string>>;
}

interface LockedPackage {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const readJson = (name: string): unknown => JSON.parse(readFileSync(root + name, 'utf8'));

const manifest = readJson('package.json') as Manifest;
const locked = Object.entries(
  (readJson('package-lock.json') as { packages: Record<string, LockedPackage> }).packages,
);

test("exports the manifest's version", () => {
  expect(OFFSTAGE_VERSION).toBe(manifest.version);
});

test('names no registry host in the lock file', () => {
  expect(locked.filter(([, { resolved }]) => resolved?.includes('://'))).toEqual([]);
});

test("includes every platform's binaries in the lock file, as `npm ci` requires", () => {
  const names = new Set(locked.map(([path]) => path.replace(/^.*node_modules\//, '')));
  const wanted = locked.flatMap(([, it]) => Object.keys(it.optionalDependencies ?? {}));
  expect(wanted.length).toBeGreaterThan(0);
  expect(wanted.filter((name) => !names.has(name))).toEqual([]);
});

test.each(Object.entries(manifest.exports))('the entry %s has a source', (_entry, target) => {
  if (typeof target === 'string') {
    expect(existsSync(root + target)).toBe(true);
    return;
  }
  const source = target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts');
  expect(existsSync(root + source)).toBe(true);
  expect(target.types).toBe(target.default.replace(/\.js$/, '.d.ts'));
  // With this condition, the checks, snippets and examples use the sources without a build.
  expect(target['offstage-source']).toBe(`./${source}`);
});

test.each([
  [
    'offstage',
    offstage,
    [
      'TextSession',
      'VoiceSession',
      'createChildSubagentToolset',
      'createParentSubagentToolset',
      'createSubAgentTool',
      'defineSubagent',
      'defineTool',
    ],
  ],
  [
    'offstage/machines',
    machines,
    ['interactionMachine', 'outboxMachine', 'questionMachine', 'sessionMachine', 'subagentMachine'],
  ],
  ['offstage/testing', testing, ['checkMachine', 'scriptedModel', 'simulate']],
])('%s exports the names that programs rely on', (_entry, exported, names) => {
  expect(Object.keys(exported)).toEqual(expect.arrayContaining(names));
});
