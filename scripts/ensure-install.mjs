// Runs before `npm start`, `npm test`, `npm run check` and others: installs the dependencies if node_modules is
// missing or differs from package-lock.json. Prints nothing if there is nothing to do.
//
// Plain JavaScript without dependencies: on a fresh clone it runs on any Node.js of the machine. The commands then
// run on the Node.js that it installs.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const modules = join(root, 'node_modules');

/**
 * Returns why an install is needed; undefined if it is not. Contents are compared instead of file times, because a
 * checkout changes the times: npm records what it has installed in node_modules/.package-lock.json.
 * @returns {string | undefined}
 */
function reasonToInstall() {
  if (!existsSync(modules)) return 'node_modules is missing';
  const installedFile = join(modules, '.package-lock.json');
  if (!existsSync(installedFile)) return 'node_modules was not completed';
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const installed = packagesOf(installedFile);
  for (const [path, { version, optional }] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = installed[path];
    // An optional package that this platform does not support is not installed.
    if (found === undefined && optional) continue;
    if (found?.version !== version || !existsSync(join(root, path))) {
      return `node_modules is not what package-lock.json says (${path})`;
    }
  }
  return undefined;
}

/** @returns {Record<string, { version?: string, optional?: boolean }>} */
function packagesOf(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages;
}

/** Tells whether the package `node` has its program, which an install script fetches and npm may be told not to run. */
function hasNode() {
  return ['node', 'node.exe'].some((name) => existsSync(join(modules, 'node', 'bin', name)));
}

function npm(...args) {
  const own = join(modules, '.bin');
  const env = {
    ...process.env,
    // npm must not run on the Node.js that it is about to replace.
    PATH: (process.env.PATH ?? '')
      .split(delimiter)
      .filter((folder) => folder !== own)
      .join(delimiter),
  };
  const npmProgram = process.env.npm_execpath;
  const options = { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] };
  const result = npmProgram?.endsWith('.js')
    ? spawnSync(process.env.npm_node_execpath ?? process.execPath, [npmProgram, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (result.status !== 0) {
    console.error(`npm ${args[0]} failed${result.error ? `: ${result.error.message}` : ''}`);
    process.exit(result.status ?? 1);
  }
}

const reason = reasonToInstall();
if (reason !== undefined) {
  console.log(`Installing the dependencies, about half a minute: ${reason}.`);
  // --no-save: starting the program never changes a file of the repository.
  npm('install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error');
}
if (!hasNode()) {
  console.log('Installing Node for the project.');
  npm('rebuild', 'node', '--ignore-scripts=false', '--loglevel=error');
}

// The local voice of the demo and of the tests. All else works without it, so a failure stops nothing here: the
// commands that need the voice report it.
const ownNode = ['node', 'node.exe']
  .map((name) => join(modules, 'node', 'bin', name))
  .find(existsSync);
const voice = spawnSync(ownNode ?? process.execPath, ['src/cli/offstage.ts', 'voice', 'install'], {
  cwd: root,
  encoding: 'utf8',
});
if (voice.status !== 0) console.error(voice.stdout, voice.stderr);
