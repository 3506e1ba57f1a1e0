// The size limits of the package: the packed file, its unpacked size, and the code that `import 'offstage'` loads with
// all its dependencies. Needs the build. A budget is raised only for a stated reason.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process, { stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Packed {
  readonly size: number;
  readonly unpackedSize: number;
}
const packed = JSON.parse(
  execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }),
) as readonly Packed[] | Readonly<Record<string, Packed>>;
const [pack] = Object.values(packed) as readonly Packed[];
if (!pack) throw new Error('Expected `npm pack --json` to describe one package');

let files = 0;
let bytes = 0;
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) {
      files += 1;
      bytes += statSync(fileURLToPath(url)).size;
    }
    return next(url, context);
  },
});
await import(new URL('../dist/index.js', import.meta.url).href);

const rows: readonly (readonly [name: string, is: number, most: number, unit: string])[] = [
  ['packed file', pack.size / 1e6, 3.44, 'MB'],
  ['unpacked', pack.unpackedSize / 1e6, 13.5, 'MB'],
  ["import 'offstage', files", files, 570, ''],
  ["import 'offstage', loaded", bytes / 1e6, 4.3, 'MB'],
];
for (const [name, is, most, unit] of rows) {
  const isOver = is > most;
  stdout.write(`${isOver ? '✗' : '✓'} ${name}: ${is.toFixed(unit ? 2 : 0)} of ${most} ${unit}\n`);
  if (isOver) process.exitCode = 1;
}
