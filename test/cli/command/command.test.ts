import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it, test } from 'vitest';
import { runCommand, type Command } from '../../../src/cli/command/command.ts';

const greet: Command = {
  name: 'greet',
  summary: 'say hello',
  usage: 'offstage greet [name]\n',
  run: (args, print) => {
    print(`hello ${args.join(' ')}`);
    return Promise.resolve(0);
  },
};

async function call(...args: string[]) {
  let printed = '';
  let complained = '';
  const status = await runCommand([greet], args, {
    print: (text) => void (printed += text),
    complain: (text) => void (complained += text),
    version: '1.2.3',
  });
  return [status, printed, complained] as const;
}

test('passes the remaining arguments to the named command', async () => {
  expect(await call('greet', 'Ada')).toEqual([0, 'hello Ada', '']);
});

it('prints cursor control characters as codes, even in JSON output', async () => {
  expect(await call('greet', '\u001b[2J', '"\u009b"', 'two\nlines')).toEqual([
    0,
    'hello \\u001b[2J "\\u009b" two\nlines',
    '',
  ]);
  expect((await call('\u001b[2J'))[2]).not.toContain('\u001b');
});

test('lists the commands and their usage in the help', async () => {
  expect(await call('--help')).toEqual([0, expect.stringContaining('say hello'), '']);
  expect(await call('help', 'greet')).toEqual([0, greet.usage, '']);
  expect(await call('greet', '--help')).toEqual([0, greet.usage, '']);
  expect((await call('--help'))[1]).toContain('Exit status: 0 for success');
});

test('refuses an empty or unknown command with a message on standard error', async () => {
  expect(await call()).toEqual([2, '', expect.stringContaining('say hello')]);
  const message = expect.stringContaining('Expected a command, got `great`') as string;
  expect(await call('great')).toEqual([2, '', message]);
});

test('prints the version of the package for --version', async () => {
  expect(await call('--version')).toEqual([0, '1.2.3\n', '']);
});

test('the program itself', async () => {
  const file = new URL('../../../src/cli/offstage.ts', import.meta.url).pathname;
  const env = { PATH: process.env['PATH'], OPENAI_API_KEY: 'sk-proj-0123456789abcdef' };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [file, 'doctor', 'openai-realtime'],
    { env },
  );
  expect(stdout).toContain('openai-realtime: ready');
  expect(stdout).not.toContain('0123456789');
});

test('prints results on standard output and problems on standard error', async () => {
  const file = new URL('../../../src/cli/offstage.ts', import.meta.url).pathname;
  const run = promisify(execFile);
  const manifest = new URL('../../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  expect((await run(process.execPath, [file, '--version'])).stdout).toBe(`${version}\n`);
  await expect(run(process.execPath, [file, 'replay', 'nowhere.db'])).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('there is no such file') as string,
  });
});
