// Runs `offstage simulate` as a command.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/command/command.ts';
import { simulate } from '../../src/cli/simulate/simulate.ts';

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offstage-simulate-'));
});

afterAll(() => rm(folder, { recursive: true }));

async function call(...args: string[]) {
  let printed = '';
  const say = (text: string): void => void (printed += text);
  const terminal = { print: say, complain: say, version: '0' };
  const status = await runCommand([simulate], ['simulate', ...args], terminal);
  return { status, printed };
}

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

/** An app's agents, with the promise that the user never requests anything. */
const scenario = `
export default {
  session: 'text',
  faults: {},
  app: {
    agents: [{ name: 'host', instructions: 'You are the host.' }],
  },
  atLeast: {},
  checks: [function* ({ log }) {
    if (log.some(({ kind }) => kind === 'said')) yield { promise: 'SILENCE', what: 'somebody spoke' };
  }],
};
`;

test('prints the script and the events of one seed, or a summary of a range of seeds', async () => {
  const one = await call('--seed', '3', '--session', 'text');
  expect(one.status).toBe(0);
  expect(one.printed).toMatch(/^Seed 3, by text\.\n +0\.000 s {2}the user says/);
  expect(one.printed).toContain('"type":"session.ended"');
  expect(one.printed).not.toContain('kept session_1');
  const kept = await call('--seed', '3', '--session', 'text', '--journal');
  expect(kept.printed).toContain('kept session_1 1:');
  const range = await call('--seeds', '3', '--from', '7');
  expect(range).toMatchObject({ status: 0 });
  expect(range.printed).toMatch(/^3 runs, and every promise was kept\.\n {2}subagents: \d+/);
});

test("runs a user's scenario and minimises the first failing seed of a range", async () => {
  const path = await fileOf('silence.mjs', scenario);
  const { status, printed } = await call('--seeds', '5', '--scenario', path);
  expect(status).toBe(1);
  expect(printed).toContain('Seed 1 breaks a promise.\n  SILENCE: somebody spoke');
  const json = printed.split('\n').find((line) => line.startsWith('{"seed":1,')) ?? '';
  const script = await fileOf('failure.json', json);
  const again = await call('--script', script, '--scenario', path);
  expect(again.status).toBe(1);
  expect(again.printed).toContain('SILENCE: somebody spoke');
});

test('overrides the scenario with command-line options', async () => {
  const path = await fileOf('spoken.mjs', scenario.replace("session: 'text'", "session: 'voice'"));
  const said = await call('--seed', '1', '--scenario', path, '--session', 'text');
  expect(said.printed).toContain('Seed 1, by text.');
  const unsaid = await call('--seed', '1', '--scenario', path);
  expect(unsaid.printed).toContain('Seed 1, by voice.');
});

test('reports an error thrown by the app as such, not as an invalid call', async () => {
  const text = `export default { app() { return null.agents; } };`;
  const path = await fileOf('failing.mjs', text);
  await expect(call('--seed', '1', '--scenario', path)).rejects.toThrow(TypeError);
});

test('crashes the app at each entry of a short conversation', async () => {
  const path = await fileOf(
    'short.mjs',
    `export default {
      steps: [{ at: 0, do: 'say', words: 'what time is it, 1?', calls: [] }],
      app: { agents: [{ name: 'host', instructions: 'You are the host.' }] },
    };`,
  );
  const { status, printed } = await call(
    '--crash-everywhere',
    '--session',
    'text',
    '--scenario',
    path,
  );
  expect(printed).toMatch(/^\d+ runs, with a crash before and after each of \d+ entries/);
  expect(status).toBe(0);
});

test.each([
  [[], 'one of --seed, --seeds and --script'],
  [['--seed', '1', '--seeds', '2'], 'one of --seed, --seeds and --script'],
  [['--seed', 'x'], '--seed to be a whole number'],
  [['--seed', '1', '--session', 'smoke'], '--session to be text, voice or both'],
  [['--seed', '1', '--oops'], 'oops'],
  [['--script', 'no-such-file.json'], 'no-such-file.json'],
  [['--seed', '1', '--scenario', 'no-such-file.mjs'], 'cannot be loaded'],
])('prints what it expected for the invalid call %j', async (args, expected) => {
  const { status, printed } = await call(...args);
  expect(printed).toContain(expected);
  expect(printed).toContain('offstage simulate --seed');
  expect(status).toBe(2);
});
