// Installs the package as npm would, for tests of the projects that `offstage create` creates.

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../..', import.meta.url));
const modules = join(repository, 'node_modules');
/** The repository's TypeScript compiler. */
export const tsc = join(modules, 'typescript', 'bin', 'tsc');

/** Packs the package and unpacks it into `node_modules` of this folder, next to links to the repository's packages. */
export async function installPacked(house: string): Promise<void> {
  const stage = join(house, 'stage');
  for (const name of ['package.json', 'src', 'templates', 'README.md'])
    cpSync(join(repository, name), join(stage, name), { recursive: true });
  await run(process.execPath, [
    tsc,
    '-p',
    join(repository, 'tsconfig.build.json'),
    '--outDir',
    join(stage, 'dist'),
  ]);
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--silent'], { cwd: stage });
  await run('tar', ['-xzf', stdout.trim()], { cwd: stage });
  const target = join(house, 'node_modules');
  mkdirSync(target);
  for (const name of readdirSync(modules))
    if (!name.startsWith('.')) symlinkSync(join(modules, name), join(target, name));
  rmSync(join(target, 'offstage'), { force: true });
  renameSync(join(stage, 'package'), join(target, 'offstage'));
  rmSync(stage, { recursive: true });
}
