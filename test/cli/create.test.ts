// `offstage create`: the files of a project, and calls that it refuses. test/browser/create.test.ts runs the projects.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { create } from '../../src/cli/create/create.ts';

const newFolder = () => mkdtempSync(join(tmpdir(), 'offstage-create-'));

async function run(...args: readonly string[]) {
  let said = '';
  const status = await create.run(
    args,
    (text) => (said += text),
    (text) => (said += text),
  );
  return { status, said };
}

const manifestIn = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    name: string;
    scripts: Readonly<Record<string, string>>;
    dependencies: Readonly<Record<string, string>>;
  };

describe('offstage create', () => {
  test('creates a project in a new folder and prints the next steps', async () => {
    const folder = join(newFolder(), 'deep', 'My Chat!');
    const { status, said } = await run('terminal', folder);
    expect(said).toContain('npm install\n  npm start');
    expect(status).toBe(0);
    expect(readdirSync(folder).toSorted()).toEqual([
      '.gitignore',
      'README.md',
      'agents.ts',
      'model.ts',
      'package.json',
      'script.ts',
      'terminal.ts',
      'tsconfig.json',
    ]);
    const { name, scripts, dependencies } = manifestIn(folder);
    expect(name).toBe('my-chat');
    expect(scripts['start']).toContain('terminal.ts');
    expect(Object.values(dependencies)).not.toContain(undefined);
  });

  test.each(['web', 'terminal', 'voice', 'telephone', 'cloudflare'])(
    "uses this repository's version of %s and installs the local voice only in a voice project",
    async (template) => {
      const folder = join(newFolder(), 'ws');
      expect(await run(template, folder)).toMatchObject({ status: 0 });
      const { name, scripts, dependencies } = manifestIn(folder);
      for (const version of Object.values(dependencies)) expect(version).toMatch(/^\^\d/);
      expect(scripts['prestart']).toBe(
        ['voice', 'telephone'].includes(template) ? 'offstage voice install' : undefined,
      );
      // A project must not have the same name as its dependency.
      expect(Object.keys(dependencies)).not.toContain(name);
    },
  );

  test('names a Worker after its project, but never gives a project the name of a dependency', async () => {
    const [chats, same] = ['My Chats', 'wrangler'].map((name) => join(newFolder(), name));
    const { said } = await run('cloudflare', chats ?? '');
    expect(said).toContain('npm run deploy');
    expect(said).toContain('wrangler secret put ACCESS_TOKEN');
    expect(readFileSync(join(chats ?? '', 'wrangler.jsonc'), 'utf8')).toContain(
      '"name": "my-chats"',
    );
    expect(readFileSync(join(chats ?? '', '.gitignore'), 'utf8')).toContain('web/page.js');
    await run('cloudflare', same ?? '');
    expect(manifestIn(same ?? '').name).toBe('my-wrangler');
  });

  test('accepts an empty folder', async () => {
    expect(await run('web', newFolder())).toMatchObject({ status: 0 });
  });

  test('does not overwrite files', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'notes.txt'), 'mine');
    const { status, said } = await run('web', folder);
    expect(said).toContain('`notes.txt`');
    expect(status).toBe(2);
    expect(readdirSync(folder)).toEqual(['notes.txt']);
    const file = join(folder, 'notes.txt');
    expect(await run('web', file)).toMatchObject({
      status: 2,
      said: expect.stringContaining('is a file') as string,
    });
    expect(await run('web', join(file, 'within'))).toMatchObject({ status: 2 });
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  test.each([
    [
      ['chat'],
      'Expected one of the templates web, terminal, voice, telephone, cloudflare, got `chat`',
    ],
    [['constructor'], 'got `constructor`'],
    [['web', ' '], 'Expected the name of a folder'],
    [['web', 'a\0b'], 'Expected the name of a folder'],
    [['web', 'a', 'b'], 'Expected a template and a folder'],
    [['--force'], '--force'],
  ])('refuses the invalid call %j and prints what it expected', async (args, expected) => {
    const { status, said } = await run(...args);
    expect(said).toContain(expected);
    expect(status).toBe(2);
  });

  test('installs the packed package in a project created from it', async () => {
    const folder = newFolder();
    const packed = join(folder, 'offstage-0.1.0.tgz');
    mkdirSync(join(folder, 'project'));
    writeFileSync(packed, '');
    vi.stubEnv('npm_config_package', packed);
    onTestFinished(() => void vi.unstubAllEnvs());
    await run('web', join(folder, 'project'));
    expect(manifestIn(join(folder, 'project')).dependencies['offstage']).toBe(`file:${packed}`);
  });
});
