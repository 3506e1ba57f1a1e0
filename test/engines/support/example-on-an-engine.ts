// On a live server, example 21 prints the same as in memory.

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { LiveEngine, WorkersDo } from './live-engine.ts';

const run = promisify(execFile);
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PROGRAM = '21-on-any-engine.ts';

/** Creates a folder in which the program finds the packages of the engines, and `offstage` from `src`. */
async function project(): Promise<string> {
  const folder = await mkdtemp(here('../.example-'));
  const offstage = join(folder, 'node_modules', 'offstage');
  await mkdir(offstage, { recursive: true });
  const { exports, ...own } = JSON.parse(await readFile(here('../../../package.json'), 'utf8')) as {
    exports: Record<string, string | Record<string, string>>;
  };
  const sources = Object.entries(exports).flatMap(([path, target]) =>
    typeof target === 'object' ? [[path, target['offstage-source']]] : [],
  );
  const shape = { ...own, exports: Object.fromEntries(sources) as object };
  await writeFile(join(offstage, 'package.json'), JSON.stringify(shape));
  await symlink(here('../../../src'), join(offstage, 'src'));
  for (const name of [PROGRAM, 'temporal-workflows.js'])
    await cp(here(`../../../examples/${name}`), join(folder, name));
  return folder;
}

export function exampleOnAnEngine(
  name: 'restate' | 'temporal',
  open: (handler: WorkersDo) => Promise<LiveEngine>,
): void {
  describe(`${name}: example 21`, () => {
    let engine: LiveEngine | undefined;
    beforeAll(async () => {
      engine = await open(null);
    });
    afterAll(() => engine?.close());

    test.each(['jobs', 'runs'])(
      'prints the same output with %s as it does in memory',
      async (what) => {
        const folder = await project();
        onTestFinished(() => rm(folder, { recursive: true, force: true }));
        const place = `${name}-${what}`;
        const { stdout } = await run(process.execPath, [join(folder, PROGRAM), place], {
          env: { ...process.env, NODE_ENV: 'production', ...engine?.env },
          timeout: 100_000,
        });
        const said = stdout.split('\n').filter((line) => line.startsWith(`${place}: `));
        expect(said).toEqual([
          `${place}: rides asks: Economy or Premium?`,
          `${place}: completed, Booked: {"charged":7}, charges: 1`,
        ]);
      },
    );
  });
}
