// The prompts of an ACP agent, the processes that it leaves behind (ACP-PROCESS-1, 2), and how its requests are
// interpreted.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, it, test, vi } from 'vitest';
import { acpRelay, type AcpRelayOptions } from '../../../src/adapters/acp/index.ts';
import { startByPs, sweep } from '../../../src/adapters/agent-process/agent-process.ts';
import { lastingIn, permissionOutcome, ToolTable } from '../../../src/adapters/acp/mapping.ts';
import { fieldsOf, NOT_LISTED } from '../../../src/adapters/relays/form-fields.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import { type RelayAnswer, type RelayEvent, runSubagent } from '../../../src/entries/subagents.ts';
import { createRuntime, type GivenAnswer, type SubagentConfig } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { actsPrompt } from '../../../src/testing/index.ts';
import { AGENT } from './support/agent-path.ts';

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-acp-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function started(options: Partial<AcpRelayOptions> = {}) {
  const stateFolder = temporary();
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const relay = acpRelay({ command: process.execPath, args: [AGENT], stateFolder, ...options });
  const session = await relay.start({
    subagentId: `sub_of_${stateFolder}`,
    signal: new AbortController().signal,
    scheduler: simulatedEnvironment().scheduler,
    ids: simulatedEnvironment().ids,
    receive: (event: RelayEvent) => {
      if (event.type === 'closed') resolve(event.message);
    },
    report: () => {},
  });
  const [mark = ''] = readdirSync(stateFolder);
  return { session, stateFolder, pid: Number.parseInt(mark, 10), closed };
}

const ofProcess = (pid: number, file: string): string =>
  readFileSync(`/proc/${pid}/${file}`, 'utf8');

describe.runIf(existsSync('/proc/self/environ'))('an agent', () => {
  test('receives only the configured environment variables', async () => {
    process.env['OFFSTAGE_TEST_SECRET'] = 'a key';
    onTestFinished(() => void delete process.env['OFFSTAGE_TEST_SECRET']);
    const { session, pid } = await started({ inheritEnv: ['PATH'], env: { OWN: '1' } });
    const names = ofProcess(pid, 'environ')
      .split('\0')
      .map((pair) => pair.split('=')[0])
      .filter((name) => name !== '');
    expect(new Set(names)).toEqual(new Set(['OWN', 'PATH']));
    await session.release('ended');
  });

  test('runs in its own process group', async () => {
    const { session, pid } = await started();
    const group = ofProcess(pid, 'stat').split(') ').at(-1)?.split(' ')[2];
    expect(Number(group)).toBe(pid);
    await session.release('ended');
  });

  test('gets killed by a sweep if the process that started it has died', async () => {
    const folder = temporary();
    const orphan = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      detached: true,
      stdio: 'ignore',
    });
    const pid = orphan.pid ?? 0;
    const startedAt = ofProcess(pid, 'stat').split(') ').at(-1)?.split(' ')[19];
    // The owner's process id now belongs to another process.
    const owner = { owner: process.pid, ownerStartedAt: '1' };
    writeFileSync(join(folder, 'orphan.json'), JSON.stringify({ pid, startedAt, ...owner }));
    const ended = new Promise((resolve) => orphan.once('exit', (_code, by) => resolve(by)));
    expect(sweep(folder)).toBe(1);
    expect(await ended).toBe('SIGKILL');
    expect(readdirSync(folder)).toEqual([]);
  });

  test("sweep() spares another process that has reused an agent's process id", () => {
    const folder = temporary();
    const mark = { pid: process.pid, startedAt: '1', owner: process.pid, ownerStartedAt: '1' };
    writeFileSync(join(folder, 'other.json'), JSON.stringify(mark));
    writeFileSync(join(folder, 'broken.json'), '{');
    expect(sweep(folder)).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });
});

test.runIf(existsSync('/bin/ps') || existsSync('/usr/bin/ps'))(
  'identifies a process by its start time from `ps` where /proc is missing',
  async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.once('spawn', resolve));
    const pid = child.pid ?? 0;
    const started = startByPs(pid);
    expect(started).toMatch(/^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$/);
    expect(startByPs(pid)).toBe(started);
    child.kill('SIGKILL');
    await ended;
    expect(startByPs(pid)).toBeNull();
  },
);

test('names a nonexistent command in the error', async () => {
  await expect(started({ command: 'no-such-agent' })).rejects.toMatchObject({
    code: 'RELAY_FAILED',
    message: expect.stringContaining('no-such-agent'),
  });
});

test('reports the exit of a program that is not an agent', async () => {
  const args = ['-e', 'console.error("no licence"); process.exit(7)'];
  await expect(started({ args })).rejects.toMatchObject({
    code: 'RELAY_FAILED',
    message: expect.stringMatching(/opened no session: it ended with code 7/),
  });
});

test("removes its own folder after a failed start, but not the app's folder", async () => {
  const temp = temporary();
  vi.stubEnv('TMPDIR', temp);
  onTestFinished(() => void vi.unstubAllEnvs());
  const cwd = temporary();
  const args = ['-e', 'process.exit(7)'];
  for (const options of [{ command: 'no-such-agent' }, { args }, { args, cwd }])
    await expect(started(options)).rejects.toThrow();
  const own = readdirSync(temp).filter((name) => name.startsWith('offstage-acp-'));
  expect(own.flatMap((name) => readdirSync(join(temp, name, 'work')))).toEqual([]);
  expect(existsSync(cwd)).toBe(true);
});

test.each([
  [{ command: '' }, 'command'],
  [{ command: 'a', cwd: 'relative' }, 'cwd'],
  [{ command: 'a', graceMs: 0 }, 'graceMs'],
  [{ command: 'a', runs: 'jobs' }, 'runs'],
])('refuses invalid options, and names them in the error: %j', (options, name) => {
  expect(() => acpRelay(options as AcpRelayOptions)).toThrow(name);
});

describe('a permission', () => {
  const option = (kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always') => ({
    optionId: `id of ${kind}`,
    name: kind,
    kind,
  });

  test("becomes lasting only if the user's answer is lasting", () => {
    const options = [option('allow_always'), option('allow_once'), option('reject_once')];
    expect(lastingIn(options)).toBe('allow_always');
    expect(lastingIn(options.slice(1))).toBeUndefined();
    const chosen = (answer: RelayAnswer, given = options) => permissionOutcome(given, answer);
    expect(chosen({ type: 'permitted', lasting: true })).toMatchObject({
      outcome: { optionId: 'id of allow_always' },
    });
    expect(chosen({ type: 'permitted', lasting: true }, options.slice(1))).toMatchObject({
      outcome: { optionId: 'id of allow_once' },
    });
    const others = [
      { type: 'permitted' },
      { type: 'permitted', lasting: 'yes' },
      { type: 'permitted', lasting: undefined },
      { type: 'denied', words: 'always', lasting: true },
      { type: 'answered', text: 'always', optionId: 'id of allow_always', lasting: true },
      { type: 'cancelled', lasting: true },
    ];
    for (const answer of others)
      for (const given of [
        options,
        options.slice(0, 1),
        [option('allow_always'), option('reject_once')],
      ])
        expect(JSON.stringify(chosen(answer as RelayAnswer, given))).not.toContain('always');
  });

  const edit = { title: 'Edit notes.txt', kind: 'edit', input: { path: 'notes.txt' } };
  test.each<[string, GivenAnswer, Partial<SubagentConfig>, string, true | undefined]>([
    ['by its button', { optionId: 'approve_lasting' }, {}, 'always permitted. ', true],
    ['not by consent', { approved: true }, {}, 'permitted. ', undefined],
    ['not by the button of consent', { optionId: 'approve' }, {}, 'permitted. ', undefined],
    [
      'not beforehand',
      { approved: false },
      { preApproved: [{ tool: 'agent_tool' }] },
      'permitted. ',
      undefined,
    ],
    ['not by a denial', { optionId: 'deny' }, {}, 'denied. ', undefined],
  ])('becomes lasting for the agent %s', async (_, answer, more, words, lasting) => {
    const asked: AskedQuestion[] = [];
    const relay = acpRelay({ command: process.execPath, args: [AGENT], stateFolder: temporary() });
    const config = { name: 'coder', instructions: 'Do it.', relay, ...more };
    const { result } = runSubagent(config, actsPrompt({ permission: edit }), {
      runtime: createRuntime({ environment: nodeEnvironment() }),
      onQuestion: (question) => {
        asked.push(question);
        return Promise.resolve(answer);
      },
    });
    const { text, toolLedger } = await result;
    expect(text).toBe(words);
    const call = toolLedger.find(({ toolName }) => toolName === 'agent_tool');
    expect(call?.input).toMatchObject({ ...edit, lasting: 'Always allow' });
    expect(call?.lasting).toBe(lasting);
    if (more.preApproved) expect(asked).toEqual([]);
    else
      expect(asked[0]?.options).toEqual([
        { id: 'approve', label: 'Yes' },
        { id: 'deny', label: 'No' },
        {
          id: 'approve_lasting',
          label: 'Yes, and from now on',
          description: 'The agent offers: "Always allow"',
        },
      ]);
  });

  test('does not select a lasting option when the answer covers a single call', () => {
    const options = [option('allow_always'), option('reject_once')];
    expect(permissionOutcome(options, { type: 'permitted' })).toEqual({
      outcome: { outcome: 'cancelled' },
    });
    expect(
      permissionOutcome([...options, option('allow_once')], { type: 'permitted' }),
    ).toMatchObject({ outcome: { optionId: 'id of allow_once' } });
  });

  test('uses the reject-once option if the agent offers it', () => {
    const options = [option('reject_always'), option('allow_once'), option('reject_once')];
    const denied = { type: 'denied', words: 'No' } as const;
    expect(permissionOutcome(options, denied)).toMatchObject({
      outcome: { optionId: 'id of reject_once' },
    });
    expect(permissionOutcome([option('allow_once')], denied)).toEqual({
      outcome: { outcome: 'cancelled' },
    });
  });
});

describe('a tool', () => {
  const started = (status: 'in_progress' | 'completed' | 'failed', refused: boolean) => {
    const tools = new ToolTable();
    const update = { toolCallId: 't', title: 'Edit', kind: 'edit' } as const;
    tools.events({ sessionUpdate: 'tool_call', ...update, status: 'pending' });
    if (refused) tools.refused('t');
    return tools
      .events({ sessionUpdate: 'tool_call_update', toolCallId: 't', status })
      .map(({ type }) => type);
  };

  test('counts as started if it runs after a denial, but not if it only fails', () => {
    expect(started('failed', true)).toEqual([]);
    expect(started('in_progress', true)).toEqual(['tool_started']);
    expect(started('completed', true)).toEqual(['tool_started', 'tool_ended']);
    // A call that never reported its start may have had an effect before it failed.
    expect(started('failed', false)).toEqual(['tool_started', 'tool_ended']);
  });
});

describe('a form', () => {
  const form = (properties: Record<string, unknown>) =>
    fieldsOf({
      mode: 'form',
      message: 'Please say',
      requestedSchema: { type: 'object', properties },
    });
  const said = (text: string) => ({ type: 'answered', text }) as const;

  test('becomes one question with choices and a free-text field', () => {
    const fields = form({
      question_0: {
        type: 'string',
        oneOf: [{ const: 'a', title: 'Soup', description: 'warm' }, { const: 'b' }],
      },
      question_0_custom: { type: 'string', title: 'Other' },
    });
    expect(fields).toHaveLength(1);
    expect(fields?.[0]).toMatchObject({
      text: 'Please say',
      custom: 'question_0_custom',
      options: [
        { id: 'a', label: 'Soup', description: 'warm' },
        { id: 'b', label: 'b' },
      ],
    });
    expect(fields?.[0]?.value(said('soup'))).toBe('a');
    expect(fields?.[0]?.value(said('Salad'))).toBe(NOT_LISTED);
  });

  test("becomes one question per field, and returns values of the field's type", () => {
    const fields = form({
      sure: { type: 'boolean', title: 'Sure?' },
      count: { type: 'integer', description: 'How many?' },
      menu: { type: 'array', items: { type: 'string', enum: ['soup', 'salad'] } },
    });
    expect(fields?.map(({ text }) => text)).toEqual([
      'Please say\nSure?',
      'Please say\nHow many?',
      'Please say',
    ]);
    const values = ['Yes', '7', 'salad'].map((text, at) => fields?.[at]?.value(said(text)));
    expect(values).toEqual([true, 7, ['salad']]);
    const wrong = ['perhaps', 'many', 'pizza'].map((text, at) => fields?.[at]?.value(said(text)));
    expect(wrong).toEqual([undefined, undefined, undefined]);
  });

  it('shows the titles of `enumNames`, and answers with the matching values', () => {
    const fields = form({
      class: { type: 'string', enum: ['e', 'p', 'f'], enumNames: ['Economy', 'Premium'] },
    });
    expect(fields?.[0]?.options).toEqual([
      { id: 'e', label: 'Economy' },
      { id: 'p', label: 'Premium' },
      { id: 'f', label: 'f' },
    ]);
    expect(fields?.[0]?.value(said('premium'))).toBe('p');
  });

  test('does not ask anything for an empty form or a form with more than 20 fields', () => {
    expect(form({})).toBeNull();
    const long = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`f${at}`, {}]));
    expect(form(long)).toBeNull();
  });
});

test('adds up tokens over all turns of a session, and reads the cost from its updates', async () => {
  const usages: RelayEvent[] = [];
  const turns: (() => void)[] = [];
  const script = `
    let turn = 0;
    const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === 'initialize') send({ id, result: { protocolVersion: 1 } });
      if (method === 'session/new') send({ id, result: { sessionId: 's' } });
      if (method !== 'session/prompt') return;
      turn += 1;
      const cost = { amount: turn * 0.5, currency: 'USD' };
      const update = { sessionUpdate: 'usage_update', used: 1, size: 2, cost };
      send({ method: 'session/update', params: { sessionId: 's', update } });
      const usage = {
        inputTokens: turn * 100,
        outputTokens: 'many',
        totalTokens: 0,
        cachedReadTokens: turn * 60,
        thoughtTokens: 'some',
      };
      send({ id, result: { stopReason: 'end_turn', usage } });
    });`;
  const session = await acpRelay({
    command: process.execPath,
    args: ['-e', script],
    stateFolder: temporary(),
  }).start({
    subagentId: 'sub_usage',
    signal: new AbortController().signal,
    scheduler: simulatedEnvironment().scheduler,
    ids: simulatedEnvironment().ids,
    receive: (event) => {
      if (event.type === 'usage') usages.push(event);
      if (event.type === 'turn_ended') turns.shift()?.();
    },
    report: () => {},
  });
  for (const key of ['a', 'b'])
    await new Promise<void>((resolve) => {
      turns.push(resolve);
      session.prompt({ key, text: 'go' });
    });
  await session.release('ended');
  const usage = (inputTokens: number, cost: number) => ({
    type: 'usage',
    inputTokens,
    outputTokens: 0,
    cost,
  });
  const ofTurn = { ...usage(100, 0), cachedInputTokens: 60 };
  expect(usages).toEqual([usage(0, 0.5), ofTurn, usage(0, 0.5), ofTurn]);
});
