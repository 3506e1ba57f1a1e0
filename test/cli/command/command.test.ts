import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
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
  const status = await runCommand([greet], args, (text) => (printed += text));
  return [status, printed] as const;
}

test('the command that is named gets the rest', async () => {
  expect(await call('greet', 'Ada')).toEqual([0, 'hello Ada']);
});

test('help lists the commands; of one it says how it is called', async () => {
  expect(await call('--help')).toEqual([0, expect.stringContaining('say hello')]);
  expect(await call('help', 'greet')).toEqual([0, greet.usage]);
  expect(await call('greet', '--help')).toEqual([0, greet.usage]);
});

test('nothing, or a command that is none, is a wrong call', async () => {
  expect(await call()).toEqual([2, expect.stringContaining('say hello')]);
  expect(await call('great')).toEqual([
    2,
    expect.stringContaining('Expected a command, got `great`'),
  ]);
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
