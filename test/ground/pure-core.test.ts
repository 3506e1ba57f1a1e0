// Checks that the core runs in any JavaScript host, by following its imports in the sources.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import { reachedFrom } from '../../scripts/lint/value-imports.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const source = (file: string): string => readFileSync(root + file, 'utf8');
const outside = (...entries: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    reachedFrom(entries, source).map(({ name, way }) => [name, way.join(' → ')] as const),
  );

describe('imports values only from these packages', () => {
  test.each([
    ['offstage/machines', 'src/entries/machines.ts', ['xstate']],
    ['offstage/voice', 'src/voice/index.ts', ['rxjs']],
    ['the unit of a subagent', 'src/actors/subagent/subagent-unit.ts', ['xstate']],
    ['the outcome of a subagent', 'src/actors/subagent/outcome-of.ts', []],
    // The code checks that `setImmediate` exists before it calls `setImmediate`.
    [
      'offstage',
      'src/index.ts',
      ['@xstate/store', 'ai', 'ai/internal', 'croner', 'rxjs', 'setImmediate', 'xstate', 'zod'],
    ],
  ])('%s', (_what, entry, packages) => {
    const reached = outside(entry);
    const known = new Set<string>(packages);
    expect(Object.entries(reached).filter(([name]) => !known.has(name))).toEqual([]);
    // The list is exact, so that a scan that finds nothing fails.
    expect(Object.keys(reached).toSorted()).toEqual(packages);
  });
});

describe('loads no code that belongs to another entry', () => {
  it.each([
    ['offstage/subagents', 'src/entries/subagents.ts', 'src/actors/session/'],
    ['offstage/memory', 'src/entries/memory.ts', 'src/actors/session/'],
    // A transport loads the code for voice.
    ['offstage', 'src/index.ts', 'src/voice/'],
  ])('%s', (_what, entry, others) => {
    const loaded: string[] = [];
    reachedFrom([entry], (file) => {
      loaded.push(file);
      return source(file);
    });
    expect(loaded.length).toBeGreaterThan(20);
    expect(loaded.filter((file) => file.startsWith(others))).toEqual([]);
  });
});

describe('finds the import paths', () => {
  const files: Readonly<Record<string, string>> = {
    'src/a.ts': "import { b } from './deep/b.ts';\nimport type { z } from 'zod';\n// Buffer\n",
    'src/deep/b.ts': [
      "export { c } from '../c.ts';",
      "import {\n  type Tool,\n} from 'ai';",
      "export const text = 'Buffer';",
    ].join('\n'),
    'src/c.ts': [
      "import { type Schema, jsonSchema } from 'ai';",
      "export * from 'zod';",
      "import 'node:fs';",
      "export const bytes = (): unknown => Buffer.from('');",
      "export const lazy = (): unknown => import('node:os');",
      '/** Buffer, require */ export const BufferSize = 1;',
    ].join('\n'),
  };
  test('counts value imports but ignores types and comments', () => {
    const reached = reachedFrom(['src/a.ts'], (file) => files[file] ?? '');
    const way = ['src/a.ts', 'src/deep/b.ts', 'src/c.ts'];
    const names = ['Buffer', 'ai', 'node:fs', 'node:os', 'zod'];
    expect(reached.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
      names.map((name) => ({ name, way })),
    );
  });
});
