// Checks that the project's lint rules report forbidden imports between rooms and other sources of time and randomness.
// Each planted line is linted with the project's configuration, in a copy of the project that contains nothing else.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { layers } from '../../scripts/lint/import-directions.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** The file, the planted code, and the rule that must report it. A line without a rule is allowed. */
type Planted = readonly [file: string, code: string, rule?: string];

const direction = 'offstage(import-direction)';
const globals = 'eslint(no-restricted-globals)';
const properties = 'eslint(no-restricted-properties)';
const imports = 'eslint(no-restricted-imports)';
const scheduler = 'offstage(rxjs-needs-scheduler)';
const titles = 'offstage(test-titles)';
const names = 'offstage(names)';

/** Stands for a problem that no rule reported: the line could not be parsed. */
const syntaxError = 'syntax error';

const importing = (from: string) => `import * as it from '${from}'; export const used = it;`;

const titled = (title: string) => `test('${title}', () => {});`;

const planted: readonly Planted[] = [
  // titles of tests
  ['test/a.test.ts', titled('refuses a wrong option by name')],
  [
    'test/adapters/a.test.ts',
    titled('OUTBOX-3, P1: keeps a result pending when its client has left'),
  ],
  ['test/a.test.ts', titled('if nobody listens'), titles],
  ['test/a.test.ts', titled('OUTBOX-3: is kept, the newest of it'), titles],
  ['test/a.test.ts', titled('delivers once that nobody waits'), titles],
  ['test/a.test.ts', `test.each([1])('of %s', { tags: [] }, () => {});`, titles],
  ['test/a.test.ts', `it.skipIf(true)('where it is off', () => {});`, titles],
  ['test/a.test.ts', `describe('if a client leaves', () => {});`],
  ['test/a.test.ts', `it.says('if a client leaves');`],
  ['test/suites/a.test.ts', titled('if nobody listens')],

  // names
  ['src/machines/a.ts', 'export const nobodyWorks = true;', names],
  [
    'src/machines/a.ts',
    'export class A { readonly #goesOn = true; b = () => this.#goesOn; }',
    names,
  ],
  ['test/a.ts', 'export interface A { readonly bornBy: string }', names],
  ['src/machines/a.ts', 'export const contextWindow = { birth: 1, bornAt: 2, setAside: 3 };'],

  // machines: xstate, errors and each other
  ['src/machines/a.ts', importing('xstate')],
  ['src/machines/a.ts', importing('../values/a.ts'), direction],
  ['src/machines/a.ts', importing('./b.ts')],
  ['src/machines/a.ts', importing('rxjs'), direction],
  ['src/machines/a.ts', importing('node:fs'), direction],
  ['src/machines/a.ts', importing('../actors/a.ts'), direction],
  ['src/machines/a.ts', importing('../voice/connection/transport.ts'), direction],
  ['src/machines/a.ts', importing('../adapters/node/index.ts'), direction],
  ['src/machines/deep/a.ts', importing('../../actors/a.ts'), direction],
  ['src/machines/a.ts', "export type { A } from '../actors/a.ts';", direction],
  ['src/machines/a.ts', "export * from '../actors/a.ts';", direction],
  ['src/machines/a.ts', "export const a = await import('../actors/a.ts');", direction],
  ['src/machines/a.ts', "import type { A } from '../actors/a.ts'; export type B = A;", direction],
  ['src/machines/a.ts', 'export const a = fetch;', globals],

  // actors: machines
  ['src/actors/runtime/a.ts', importing('../../machines/a.ts')],
  ['src/actors/ports/a.ts', importing('../../machines/a.ts')],
  ['src/actors/model/a.ts', importing('ai')],
  ['src/actors/model/a.ts', importing('ai/test')],
  ['src/actors/runtime/a.ts', importing('ai'), direction],
  ['src/actors/runtime/a.ts', importing('../../voice/connection/transport.ts'), direction],
  ['src/actors/runtime/a.ts', importing('../../testing/a.ts'), direction],
  ['src/actors/runtime/a.ts', importing('../../index.ts'), direction],
  ['src/actors/runtime/a.ts', importing('../../adapters/node/index.ts'), direction],
  ['src/actors/runtime/a.ts', importing('ws'), direction],
  ['src/actors/runtime/a.ts', importing('node:events'), direction],
  ['src/actors/runtime/a.ts', importing('offstage/node'), direction],

  // the rooms of actors, and of a session
  ['src/actors/subagents/a.ts', importing('../subagent/a.ts')],
  ['src/actors/subagent/a.ts', importing('../subagents/a.ts'), direction],
  ['src/actors/subagents/a.ts', importing('./toolsets/a.ts'), direction],
  ['src/actors/contracts/a.ts', importing('../runtime/a.ts'), direction],
  ['src/actors/session/lead/a.ts', importing('../state/a.ts')],
  ['src/actors/session/state/a.ts', importing('../lead/a.ts'), direction],
  ['src/actors/session/effects/a.ts', importing('../lifecycle/a.ts'), direction],
  ['src/language/a.ts', importing('../actors/contracts/a.ts'), direction],
  ['src/actors/a.ts', importing('../machines/a.ts'), direction],

  // voice: actors, machines
  ['src/voice/turns/a.ts', importing('../../actors/session/lead/a.ts')],
  ['src/voice/turns/a.ts', importing('../output/a.ts')],
  ['src/voice/output/a.ts', importing('../turns/a.ts'), direction],
  ['src/voice/audio/a.ts', importing('../../actors/ports/a.ts'), direction],
  ['src/voice/audio/a.ts', importing('zod'), direction],
  ['src/voice/a.ts', importing('../machines/a.ts')],
  ['src/voice/a.ts', importing('../testing/a.ts'), direction],
  ['src/voice/a.ts', importing('../adapters/openai-realtime/index.ts'), direction],
  ['src/voice/a.ts', importing('ws'), direction],

  // adapters: ports, errors, audio
  ['src/adapters/one/a.ts', importing('../../values/errors.ts')],
  ['src/adapters/one/a.ts', importing('../../actors/ports/environment.ts')],
  ['src/adapters/one/a.ts', importing('../../voice/connection/transport.ts')],
  ['src/adapters/one/a.ts', importing('../../voice/audio/pcm16.ts')],
  ['src/adapters/one/deep/a.ts', importing('../b.ts')],
  ['src/adapters/one/a.ts', importing('ws')],
  ['src/adapters/one/a.ts', importing('node:fs')],
  ['src/adapters/one/a.ts', importing('openai'), direction],
  ['src/adapters/one/a.ts', importing('../../actors/runtime/a.ts'), direction],
  ['src/adapters/one/a.ts', importing('../../machines/a.ts'), direction],
  ['src/adapters/one/a.ts', importing('../../voice/spoken-lead.ts')],
  ['src/adapters/one/a.ts', importing('../../voice/voice-lead.ts'), direction],
  ['src/adapters/one/a.ts', importing('../../voice-session.ts'), direction],
  ['src/adapters/one/a.ts', importing('../../index.ts'), direction],
  ['src/adapters/one/a.ts', importing('../two/index.ts'), direction],
  ['src/adapters/one/a.ts', importing('../openai-realtime/wire.ts'), direction],
  ['src/adapters/local-voice/a.ts', importing('../openai-realtime/wire.ts')],
  ['src/adapters/local-voice/a.ts', importing('../openai-realtime/client.ts'), direction],

  // the public entries
  ['src/index.ts', "export * from './voice/spoken-lead.ts';"],
  ['src/index.ts', "export * from './adapters/openai-realtime/index.ts';", direction],
  ['src/index.ts', "export * from './testing/index.ts';", direction],
  ['src/testing/a.ts', importing('../voice/connection/transport.ts')],
  ['src/testing/a.ts', importing('../adapters/node/index.ts'), direction],
  ['src/machines/a.ts', importing('zod'), direction],
  ['src/new-folder/a.ts', importing('zod'), direction],

  // time and chance
  ['src/actors/runtime/a.ts', 'export const a = new Date(0).toISOString();'],
  ['src/actors/runtime/a.ts', 'export const a = Date.now();', properties],
  ['src/actors/runtime/a.ts', 'export const a = new Date();', 'offstage(no-ambient-date)'],
  ['src/actors/runtime/a.ts', 'export const a = Date();', 'offstage(no-ambient-date)'],
  ['src/actors/runtime/a.ts', 'export const a = performance.now();', globals],
  ['src/actors/runtime/a.ts', 'setTimeout(() => undefined, 1);', globals],
  ['src/actors/runtime/a.ts', 'setInterval(() => undefined, 1);', globals],
  ['src/actors/runtime/a.ts', 'setImmediate(() => undefined);', globals],
  ['src/actors/runtime/a.ts', 'queueMicrotask(() => undefined);', globals],
  ['src/actors/runtime/a.ts', 'globalThis.setTimeout(() => undefined, 1);', properties],
  ['src/actors/runtime/a.ts', 'process.nextTick(() => undefined);', properties],
  ['src/actors/runtime/a.ts', 'export const a = process.hrtime();', properties],
  ['src/actors/runtime/a.ts', 'export const a = AbortSignal.timeout(1);', properties],
  ['src/actors/runtime/a.ts', 'export const a = Math.random();', properties],
  ['src/actors/runtime/a.ts', 'export const a = crypto.randomUUID();', properties],
  [
    'src/actors/runtime/a.ts',
    'export const a = crypto.getRandomValues(new Uint8Array(1));',
    properties,
  ],
  ['src/adapters/one/a.ts', "export { createHash } from 'node:crypto';"],
  ['src/adapters/one/a.ts', importing('node:timers'), imports],
  ['src/adapters/one/a.ts', importing('node:timers/promises'), imports],
  ['src/adapters/one/a.ts', importing('node:perf_hooks'), imports],
  [
    'src/adapters/one/a.ts',
    "import { randomUUID } from 'node:crypto'; export const a = randomUUID;",
    imports,
  ],
  [
    'src/adapters/one/a.ts',
    "import { randomBytes } from 'node:crypto'; export const a = randomBytes;",
    imports,
  ],
  ['src/adapters/one/a.ts', "import crypto from 'node:crypto'; export const a = crypto;", imports],
  ['src/voice/a.ts', "import { timer } from 'rxjs'; export const a = timer(1);", scheduler],
  ['src/voice/a.ts', "import { delay as late } from 'rxjs'; export const a = late(1);", scheduler],
  [
    'src/voice/a.ts',
    "import { asyncScheduler } from 'rxjs'; export const a = asyncScheduler;",
    scheduler,
  ],
  [
    'src/voice/a.ts',
    "import { timer, type SchedulerLike } from 'rxjs'; export const a = (scheduler: SchedulerLike) => timer(1, scheduler);",
  ],
  // ... and only the real environment has them
  [
    'src/adapters/node/a.ts',
    "import { randomUUID } from 'node:crypto'; export const a = randomUUID;",
  ],
  ['src/adapters/node/a.ts', importing('node:perf_hooks')],
  ['src/adapters/node/a.ts', 'export const a = [Date.now(), new Date(), Math.random()];'],
  ['src/adapters/node/a.ts', 'setTimeout(() => undefined, 1);'],

  // events are created field by field
  [
    'src/actors/runtime/a.ts',
    "export const a = (b: object) => ({ type: 'answer.given', ...b });",
    'offstage(no-spread-into-event)',
  ],
  [
    'src/voice/a.ts',
    "export const a = (b: object) => ({ ...b, type: 'user.said' as const });",
    'offstage(no-spread-into-event)',
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b?: object) => ({ type: 'user.said', ...(b ? { c: 1, ...b } : {}) });",
    'offstage(no-spread-into-event)',
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b?: string) => ({ type: 'user.said', ...(b === undefined ? {} : { b }) });",
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b?: string) => ({ type: 'user.said', ...(b && { b }) });",
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b?: 1) => ({ type: 'user.said', ...withoutUndefined({ b, c: 2 }) });",
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b: object) => ({ type: 'user.said', ...withoutUndefined(b) });",
    'offstage(no-spread-into-event)',
  ],
  [
    'src/actors/runtime/a.ts',
    "export const a = (b: object) => ({ type: 'user.said', ...withoutUndefined({ ...b }) });",
    'offstage(no-spread-into-event)',
  ],
  ['src/actors/runtime/a.ts', "export const a = (b: object) => ({ type: 'object', ...b });"],

  // promises
  ['src/actors/runtime/a.ts', 'export const a = Promise.race([]);', properties],
  ['src/adapters/node/a.ts', 'export const a = Promise.race([]);', properties],
  ['src/actors/runtime/a.ts', 'Promise.resolve();', 'typescript(no-floating-promises)'],
  [
    'src/actors/runtime/a.ts',
    'export const a = (b: "c" | "d") => { switch (b) { case "c": return 1; } return 2; };',
    'typescript(switch-exhaustiveness-check)',
  ],
  [
    'src/actors/runtime/a.ts',
    'export const a = [1].forEach(async () => {});',
    'typescript(no-misused-promises)',
  ],
  ['src/actors/runtime/cycle-1.ts', "export * from './cycle-2.ts';", 'import(no-cycle)'],
  ['src/actors/runtime/cycle-2.ts', "export * from './cycle-1.ts';", 'import(no-cycle)'],
];

/** The rules under test. None of them may report an allowed line. */
const houseRules = new Set(planted.map(([, , rule]) => rule ?? syntaxError));

interface Report {
  readonly diagnostics: readonly {
    readonly code?: string;
    readonly filename: string;
    readonly labels: readonly { readonly span: { readonly line: number } }[];
  }[];
}

/** Each line for `a.ts` gets its own file; the lines for any other file all go into that file. */
async function plant(root: string): Promise<{ readonly file: string; readonly line: number }[]> {
  const files = new Map<string, string[]>();
  const places = planted.map(([path, code], index) => {
    const file = path.replace(/\/a\.ts$/, `/planted-${index}.ts`);
    const lines = files.get(file) ?? [];
    files.set(file, lines);
    return { file, line: lines.push(code) };
  });
  for (const [file, lines] of files) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), lines.join('\n'));
  }
  return places;
}

function lint(root: string): Promise<Report> {
  const oxlint = join(root, 'node_modules', 'oxlint', 'bin', 'oxlint');
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [oxlint, '--format=json'],
      { cwd: root, timeout: 60_000 },
      (error, out, err) => {
        // oxlint exits with 1 if it found a problem.
        if (error && error.code !== 1) reject(new Error(`${error.message}\n${err}`));
        else resolve(JSON.parse(out) as Report);
      },
    );
  });
}

let root: string;
/** The rules that reported each planted line, in the order of `planted`. */
let reported: readonly (readonly string[])[];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'offstage-lint-'));
  for (const name of ['oxlint.config.ts', 'scripts/lint', 'package.json', 'tsconfig.json']) {
    await cp(join(project, name), join(root, name), { recursive: true });
  }
  await symlink(join(project, 'node_modules'), join(root, 'node_modules'));
  const places = await plant(root);
  const { diagnostics } = await lint(root);
  reported = places.map(({ file, line }) =>
    diagnostics
      .filter((it) => it.filename === file && it.labels.some(({ span }) => span.line === line))
      .map((it) => it.code ?? syntaxError),
  );
}, 60_000);

afterAll(() => rm(root, { recursive: true }));

test.each(
  planted.flatMap(([file, code, rule], index) =>
    rule ? ([[file, code, rule, index]] as const) : [],
  ),
)('%s: %s is reported by %s', (_file, _code, rule, index) => {
  expect(reported[index]).toContain(rule);
});

test.each(
  planted.flatMap(([file, code, rule], index) => (rule ? [] : ([[file, code, index]] as const))),
)('%s: %s is allowed', (_file, _code, index) => {
  expect(reported[index]?.filter((rule) => houseRules.has(rule))).toEqual([]);
});

test('allows no cycles between layers, and lists only existing files and folders', () => {
  const rows = layers.flatMap(({ files, sources }) =>
    files.endsWith('/*') ? [] : ([[files, sources]] as const),
  );
  expect(rows.filter(([files]) => !existsSync(join(project, 'src', files)))).toEqual([]);
  // A row that names a folder allows imports from every room in that folder.
  const rooms = (source: string): string[] =>
    rows.map(([files]) => files).filter((it) => it === source || it.startsWith(`${source}/`));
  const below = new Map(
    rows.map(([files, sources]) => [
      files,
      sources.flatMap(rooms).filter((room) => room !== files),
    ]),
  );
  const reached = (from: string, seen = new Set<string>()): Set<string> => {
    for (const next of below.get(from) ?? [])
      if (!seen.has(next) && next !== from) reached(next, seen.add(next));
      else if (next === from) seen.add(next);
    return seen;
  };
  const circles = rows.map(([files]) => files).filter((files) => reached(files).has(files));
  expect(circles).toEqual([]);
});
