// The linter: type-aware, and the keeper of two rules of the house. Who may import
// whom is a table in scripts/lint/import-directions.ts. Time and chance come only
// from the Environment port, whose real implementation is src/adapters/node.

import { defineConfig } from 'oxlint';

const fromEnvironment = 'Time and chance come from the Environment port (src/actors/ports)';

const timers = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
  'performance',
  'scheduler',
];

const timeGlobals = timers.map((name) => ({ name, message: fromEnvironment }));

/** What reaches outside without an import. */
const outsideGlobals = ['fetch', 'WebSocket', 'EventSource', 'process', 'Buffer'].map((name) => ({
  name,
  message: 'A machine is pure: what reaches outside is an effect that the caller provides',
}));

const timeAndChanceProperties = [
  ...timers.map((property) => ['globalThis', property] as const),
  ['Date', 'now'] as const,
  ['process', 'hrtime'] as const,
  ['process', 'uptime'] as const,
  ['process', 'nextTick'] as const,
  ['AbortSignal', 'timeout'] as const,
  ['Atomics', 'wait'] as const,
  ['Atomics', 'waitAsync'] as const,
  ['Math', 'random'] as const,
  ['crypto', 'randomUUID'] as const,
  ['crypto', 'getRandomValues'] as const,
].map(([object, property]) => ({ object, property, message: fromEnvironment }));

const promiseRace = {
  object: 'Promise',
  property: 'race',
  message: 'A race leaks a reaction on the promise that outlives it: use src/values/race-abort.ts',
};

const timeAndChanceModules = ['timers', 'timers/promises', 'perf_hooks']
  .flatMap((name) => [name, `node:${name}`])
  .map((name) => ({ name, message: fromEnvironment }));

const randomOfCrypto = ['crypto', 'node:crypto'].map((name) => ({
  name,
  importNames: [
    'default',
    'randomUUID',
    'randomUUIDv7',
    'randomBytes',
    'randomInt',
    'randomFill',
    'randomFillSync',
    'getRandomValues',
    'webcrypto',
  ],
  message: fromEnvironment,
}));

export default defineConfig({
  plugins: ['eslint', 'typescript', 'unicorn', 'oxc', 'import', 'promise', 'node'],
  jsPlugins: ['./scripts/lint/plugin.ts'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  ignorePatterns: ['node_modules/**', 'dist/**', 'coverage/**'],
  rules: {
    'offstage/names': 'error',
    eqeqeq: 'error',
    'no-var': 'error',
    'prefer-const': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/prefer-promise-reject-errors': 'error',
    'typescript/return-await': 'error',
    'typescript/switch-exhaustiveness-check': 'error',
    'import/no-cycle': 'error',
    'promise/no-multiple-resolved': 'error',
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],
    'unicorn/prefer-node-protocol': 'error',
    // `setup({ types: { context: {} as Context } })` is how XState is told its types.
    'typescript/no-unsafe-type-assertion': 'off',
    // fast-check is written `fc.property`, after its default export.
    'import/no-named-as-default-member': 'off',
    // Does not see that a function called in the loop changes the condition.
    'no-unmodified-loop-condition': 'off',
    // Ports are written with method signatures and made of closures: taking one apart is safe.
    'typescript/unbound-method': 'off',
    // The few private names of XState that the model checker reads are its own.
    'no-underscore-dangle': 'off',
    // Copy with a change is how data is changed here.
    'oxc/no-map-spread': 'off',
    // A helper reads best beside its only use, and steps that must be in order await in a loop.
    'unicorn/consistent-function-scoping': 'off',
    'no-await-in-loop': 'off',
    // A callback of `then` may be there for its effect; a switch that covers all cases needs no return after it.
    'promise/always-return': 'off',
    'typescript/consistent-return': 'off',
  },
  overrides: [
    {
      // Its TypeDoc is installed with the site: elsewhere the types of TypeDoc are unknown.
      files: ['docs/site/reference.ts'],
      rules: { 'typescript/no-redundant-type-constituents': 'off' },
    },
    {
      files: ['src/**'],
      rules: {
        'no-console': 'error',
        'import/no-default-export': 'error',
        'offstage/import-direction': 'error',
        'offstage/no-ambient-date': 'error',
        'offstage/rxjs-needs-scheduler': 'error',
        'no-restricted-globals': ['error', ...timeGlobals],
        'no-restricted-imports': ['error', { paths: [...timeAndChanceModules, ...randomOfCrypto] }],
        'no-restricted-properties': ['error', ...timeAndChanceProperties, promiseRace],
      },
    },
    {
      // What goes into these events may come from outside, and is journalled.
      files: ['src/actors/**', 'src/voice/**'],
      rules: { 'offstage/no-spread-into-event': 'error' },
    },
    {
      files: ['src/machines/**'],
      rules: { 'no-restricted-globals': ['error', ...timeGlobals, ...outsideGlobals] },
    },
    {
      files: [
        'src/adapters/node/**',
        'src/adapters/cloudflare/workers-environment.ts',
        'src/testing/doubles/simulated-environment.ts',
      ],
      rules: {
        'offstage/no-ambient-date': 'off',
        'no-restricted-globals': 'off',
        'no-restricted-imports': 'off',
        'no-restricted-properties': ['error', promiseRace],
      },
    },
    {
      files: ['test/**'],
      plugins: ['vitest'],
      rules: {
        'typescript/no-non-null-assertion': 'off',
        // A model is scripted as data that has a `then`, and a promise that is none is a case to test.
        'unicorn/no-thenable': 'off',
        'no-shadow': 'off',
        'vitest/require-to-throw-message': 'off',
        // Marble tests and model checks assert without calling `expect`.
        'vitest/expect-expect': 'off',
        // Tables of cases and properties have branches.
        'vitest/no-conditional-expect': 'off',
        'vitest/no-disabled-tests': 'error',
        'vitest/no-focused-tests': 'error',
        'vitest/valid-expect': 'error',
      },
    },
    {
      files: ['test/**'],
      excludeFiles: ['test/suites/**', 'test/engines/**'],
      rules: { 'offstage/test-titles': 'error' },
    },
  ],
});
