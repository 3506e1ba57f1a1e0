// Every test is run by a command, CI runs every command, and each CI job first installs what it needs.

import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  longTests,
  onDemand,
  otherSuites,
  testsWithOldestXState,
} from '../../scripts/test-suites.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (name: string): string => readFileSync(root + name, 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const suites = Object.keys(otherSuites);

test.each([...longTests, ...testsWithOldestXState])('%s names only files that exist', (pattern) => {
  expect(globSync(pattern, { cwd: root })).not.toEqual([]);
});

test('ends `npm test` with a list of all commands that run the omitted tests', () => {
  const commands = Object.keys(scripts).filter((name) => /^test:(?!all$)/.test(name));
  expect(new Set(suites)).toEqual(new Set(commands));
});

test('runs every project of vitest.config.ts in at least one command', () => {
  const projects = [...read('vitest.config.ts').matchAll(/ name: '([^']+)'/g)].map(([, it]) => it);
  const run = ['test', ...suites].flatMap((name) =>
    [...(scripts[name] ?? '').matchAll(/--project (\S+)/g)].map(([, it]) => it),
  );
  expect(new Set(run)).toEqual(new Set(projects));
});

test.each(['test', 'test:all', ...suites])('%s installs missing packages first', (name) => {
  expect(scripts[`pre${name}`]).toBe('node scripts/ensure-install.mjs');
});

const ran = (commands: string): string[] =>
  [...commands.matchAll(/\bnpm (?:run )?(test(?::\w+)?)\b/g)].map(([, name]) => name ?? '');
const inCi = ['test', ...suites.filter((name) => !onDemand.includes(name))];

test('runs every command in `npm run test:all` except those that need large programs', () => {
  expect(ran(scripts['test:all'] ?? '')).toEqual(inCi);
});

test('runs every command in CI except those that need large programs', () => {
  const lines = read('.ci/run').split('\n');
  const commands = lines.filter((line) => !line.startsWith('step')).join('\n');
  expect(new Set(ran(commands))).toEqual(new Set(inCi));
  expect(commands).toMatch(/npm run check$/m);
  expect(commands).toMatch(/npm run simulate -- --seeds 2500$/m);
});
