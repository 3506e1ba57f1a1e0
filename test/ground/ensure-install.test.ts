// `npm start` on a fresh clone: the script that runs first installs if needed, reports the install in one line, and
// otherwise prints nothing. A stand-in for npm records the calls.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/ensure-install.mjs', import.meta.url));

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'offstage-install-'));
  mkdirSync(join(root, 'scripts'));
  cpSync(script, join(root, 'scripts', 'ensure-install.mjs'));
  write('package-lock.json', lock({ '': {}, 'node_modules/a': { version: '1.0.0' } }));
  npmExitsWith(0);
});

afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), text);
}

function lock(packages: Record<string, object>): string {
  return JSON.stringify({ packages });
}

/** A stand-in for npm that records its arguments and installs the program `node`. */
function npmExitsWith(code: number): void {
  write(
    'npm.js',
    `const fs = require('node:fs');
     fs.appendFileSync(__dirname + '/calls', process.argv.slice(2).join(' ') + '\\n');
     if (${code} === 0) {
       fs.mkdirSync(__dirname + '/node_modules/node/bin', { recursive: true });
       fs.writeFileSync(__dirname + '/node_modules/node/bin/node', '#!/bin/sh\\nexit 0\\n', { mode: 0o755 });
     }
     process.exit(${code});`,
  );
}

/** The state after this version of the package `a` has been installed. */
function installed(version: string): void {
  write('node_modules/.package-lock.json', lock({ 'node_modules/a': { version } }));
  write('node_modules/a/package.json', '{}');
  nodeExitsWith(0);
}

/** The project's Node.js, which only runs the install of the local voice. */
function nodeExitsWith(code: number): void {
  const says = `echo "ran $*"; echo "no network" >&2`;
  write('node_modules/node/bin/node', `#!/bin/sh\n${says}\nexit ${code}\n`);
  chmodSync(join(root, 'node_modules/node/bin/node'), 0o755);
}

/** Runs the script. `calls` holds the calls to npm, one per line. */
function ensureInstall() {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts', 'ensure-install.mjs')],
    {
      env: {
        ...process.env,
        npm_execpath: join(root, 'npm.js'),
        npm_node_execpath: process.execPath,
      },
      encoding: 'utf8',
    },
  );
  return { status, stdout, stderr, calls: existsSync(callsFile()) ? read(callsFile()) : '' };
}

const callsFile = () => join(root, 'calls');
const read = (path: string) => readFileSync(path, 'utf8');

test('prints nothing when the installed packages match the lock file', () => {
  installed('1.0.0');
  expect(ensureInstall()).toEqual({ status: 0, stdout: '', stderr: '', calls: '' });
});

test('does not report an optional package that does not support this platform', () => {
  installed('1.0.0');
  const mac = { version: '1.0.0', optional: true };
  write(
    'package-lock.json',
    lock({ 'node_modules/a': { version: '1.0.0' }, 'node_modules/m': mac }),
  );
  expect(ensureInstall()).toMatchObject({ stdout: '', calls: '' });
});

test.each<[when: string, arrange: () => void, why: string]>([
  ['node_modules is missing', () => {}, 'node_modules is missing'],
  [
    'an install was broken off',
    () => write('node_modules/a/package.json', '{}'),
    'node_modules was not completed',
  ],
  [
    'the lock file has another version',
    () => installed('0.9.0'),
    'node_modules is not what package-lock.json says (node_modules/a)',
  ],
  [
    'somebody removed a package',
    () => {
      installed('1.0.0');
      rmSync(join(root, 'node_modules/a'), { recursive: true });
    },
    'node_modules is not what package-lock.json says (node_modules/a)',
  ],
])('installs, and says so in one line, when %s', (_when, arrange, why) => {
  arrange();
  const { status, stdout, calls } = ensureInstall();
  expect(calls).toMatch(/^install --no-save .*\n$/);
  expect(stdout).toBe(`Installing the dependencies, about half a minute: ${why}.\n`);
  expect(status).toBe(0);
});

test('fetches Node if npm ran no install scripts', () => {
  installed('1.0.0');
  rmSync(join(root, 'node_modules/node/bin/node'));
  expect(ensureInstall().calls).toMatch(/^rebuild node .*\n$/);
});

test("exits with npm's status when the install fails", () => {
  npmExitsWith(7);
  const { status, stderr } = ensureInstall();
  expect(status).toBe(7);
  expect(stderr).toContain('npm install failed');
});

test("installs the local voice with the project's Node and continues if that fails", () => {
  installed('1.0.0');
  nodeExitsWith(1);
  const { status, stderr } = ensureInstall();
  expect(status).toBe(0);
  expect(stderr).toContain('ran src/cli/offstage.ts voice install');
  expect(stderr).toContain('no network');
});
