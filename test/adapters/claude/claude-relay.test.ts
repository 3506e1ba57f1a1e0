// What the relay passes to the Claude SDK, and how it interprets the output, with the test's own `query`. The tests
// with the real SDK are in test/claude.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  claudeRelay,
  type ClaudeQuery,
  type ClaudeRelayOptions,
} from '../../../src/adapters/claude/index.ts';
import { answeredInput, endOf, questionsIn, toolOf } from '../../../src/adapters/claude/mapping.ts';
import type { RelayEvent } from '../../../src/entries/subagents.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

interface Given {
  readonly prompt: AsyncIterable<unknown>;
  readonly options: {
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
    readonly sessionId?: string;
    readonly resume?: string;
    readonly hooks: {
      readonly PreToolUse: readonly [
        { readonly hooks: readonly [(input: object) => Promise<object>] },
      ];
    };
    canUseTool(name: string, input: unknown, more: object): Promise<object>;
  };
}

/** Plays Claude: `play` receives the arguments of `query` and yields its messages. */
function stage(play: (given: Given) => AsyncGenerator, options: Partial<ClaudeRelayOptions> = {}) {
  const stateFolder = mkdtempSync(join(tmpdir(), 'offstage-test-claude-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true }));
  const environment = simulatedEnvironment();
  const events: RelayEvent[] = [];
  const query = ((given: Given) =>
    Object.assign(play(given), { interrupt: () => Promise.resolve() })) as never as ClaudeQuery;
  const relay = claudeRelay({ query, stateFolder, ...options });
  const start = (resume?: string) =>
    relay.start({
      subagentId: 'sub_1',
      ...(resume === undefined ? {} : { resume }),
      signal: new AbortController().signal,
      scheduler: environment.scheduler,
      ids: environment.ids,
      receive: (event) => {
        events.push(event);
      },
      report: () => {},
    });
  const until = async (type: RelayEvent['type'], count = 1): Promise<void> => {
    while (events.filter((event) => event.type === type).length < count) await environment.settle();
  };
  return { relay, start, events, until, environment, stateFolder };
}

const success = { type: 'result', subtype: 'success', result: '', total_cost_usd: 0.5 };
const call = (name: string, input: object = {}, id = 'toolu_1') => ({
  tool_name: name,
  tool_input: input,
  tool_use_id: id,
});

test('gives Claude its own home and only the configured environment variables', async () => {
  process.env['OFFSTAGE_TEST_SECRET'] = 'a key';
  onTestFinished(() => void delete process.env['OFFSTAGE_TEST_SECRET']);
  let given: Given | null = null;
  const { start, until, stateFolder } = stage(
    async function* (all) {
      given = all;
      yield success;
    },
    { inheritEnv: ['PATH'], env: { ANTHROPIC_API_KEY: 'k' } },
  );
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('turn_ended');
  const { env, cwd, sessionId } = (given as never as Given).options;
  expect(Object.keys(env).toSorted()).toEqual([
    'ANTHROPIC_API_KEY',
    'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC',
    'CLAUDE_CONFIG_DIR',
    'DISABLE_AUTOUPDATER',
    'DISABLE_ERROR_REPORTING',
    'DISABLE_TELEMETRY',
    'HOME',
    'PATH',
  ]);
  expect(env['HOME']).toContain(stateFolder);
  expect(sessionId).toBe(session.id);
  expect(existsSync(cwd)).toBe(true);
  await session.release('ended');
  expect(existsSync(cwd)).toBe(false);
});

test.each(['while it works', 'while it asks'])(
  'closes only the session whose folder is removed %s',
  async (when) => {
    const { start, until, events, stateFolder } = stage(async function* () {
      if (when === 'while it works') rmSync(stateFolder, { recursive: true });
      yield { ...success, deferred_tool_use: { id: 'toolu_1', name: 'Bash', input: {} } };
    });
    const session = await start();
    session.prompt({ key: 'k', text: 'Go' });
    if (when === 'while it asks') {
      await until('permission');
      rmSync(stateFolder, { recursive: true });
      session.answer('toolu_1', { type: 'permitted', lasting: true });
    }
    await until('closed');
    expect(events.at(-1)).toMatchObject({ message: expect.stringContaining('ENOENT') });
    expect(await session.release('ended')).toBe('idle');
  },
);

test('defers a call until it is answered, then runs it once', async () => {
  const decisions: unknown[] = [];
  let round = 0;
  const { start, until, events } = stage(async function* ({ options }) {
    round += 1;
    const [decide] = options.hooks.PreToolUse[0].hooks;
    decisions.push(await decide(call('Bash', { command: 'rm a' })));
    if (round > 1) decisions.push(await decide(call('Bash', { command: 'rm b' }, 'toolu_2')));
    const deferred = { id: `toolu_${round}`, name: 'Bash', input: { command: 'rm' } };
    yield { ...success, deferred_tool_use: round < 3 ? deferred : null };
  });
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('permission');
  expect(events.at(-1)).toMatchObject({ requestId: 'toolu_1', kind: 'execute', title: 'Bash rm' });
  session.answer('toolu_9', { type: 'permitted' });
  session.answer('toolu_1', { type: 'permitted' });
  session.answer('toolu_1', { type: 'permitted' });
  await until('permission', 2);
  const made = decisions.map(
    (one) =>
      (one as { hookSpecificOutput: { permissionDecision: string } }).hookSpecificOutput
        .permissionDecision,
  );
  expect(made).toEqual(['defer', 'allow', 'defer']);
  await session.release('ended');
});

test('applies a lasting permission to further calls of that kind until the session ends', async () => {
  let decisions: unknown[] = [];
  let round = 0;
  const permissionOf = (decided: object) =>
    (decided as { hookSpecificOutput?: { permissionDecision: string } }).hookSpecificOutput
      ?.permissionDecision;
  const others = [
    call('Bash', { command: 'npm test', timeout: 5 }, 'toolu_2'),
    call('Bash', { command: 'npm test; rm -rf .' }, 'toolu_3'),
    call('Write', { command: 'npm test' }, 'toolu_4'),
    call('mcp__shop__refund', { path: 'a', amount: 9 }, 'toolu_5'),
  ];
  const play = async function* ({ options }: Given) {
    round += 1;
    const [decide] = options.hooks.PreToolUse[0].hooks;
    if (round > 1) {
      decisions.push(permissionOf(await decide(call('Bash', { command: 'npm test' }))));
      for (const one of others) decisions.push(permissionOf(await decide(one)));
      const more = { toolUseID: 'toolu_6', signal: new AbortController().signal };
      decisions.push(await options.canUseTool('Bash', { command: 'npm test' }, more));
    }
    const deferred = { id: 'toolu_1', name: 'Bash', input: { command: 'npm test' } };
    yield { ...success, deferred_tool_use: round === 1 ? deferred : null };
  };
  const { start, until, events } = stage(play);
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('permission');
  expect(events.at(-1)).toMatchObject({
    lasting: 'Bash npm test, as often as it comes, until this task has ended',
  });
  session.answer('toolu_1', { type: 'permitted', lasting: true });
  await until('turn_ended');
  const allowed = { behavior: 'allow', updatedInput: { command: 'npm test' } };
  expect(decisions).toEqual(['allow', 'allow', 'defer', 'defer', 'defer', allowed]);
  // Another process with the same session knows it.
  decisions = [];
  await session.release('suspended');
  const again = await start(session.id);
  again.prompt({ key: 'l', text: 'Go on' });
  await until('turn_ended', 2);
  expect(decisions).toEqual(['allow', 'allow', 'defer', 'defer', 'defer', allowed]);
  expect(events.filter(({ type }) => type === 'permission')).toHaveLength(1);
  await again.release('ended');
});

test.each([{ type: 'permitted' }, { type: 'denied', words: 'always' }] as const)(
  'applies an answer that is not lasting only to its own call: %j',
  async (answer) => {
    let round = 0;
    const { start, until, events } = stage(async function* ({ options }) {
      round += 1;
      const [decide] = options.hooks.PreToolUse[0].hooks;
      await decide(call('Bash', { command: 'npm test' }, `toolu_${round}`));
      const deferred = { id: `toolu_${round}`, name: 'Bash', input: { command: 'npm test' } };
      yield { ...success, deferred_tool_use: round < 3 ? deferred : null };
    });
    const session = await start();
    session.prompt({ key: 'k', text: 'Go' });
    await until('permission');
    session.answer('toolu_1', answer);
    await until('permission', 2);
    expect(events.at(-1)).toMatchObject({ requestId: 'toolu_2' });
    await session.release('ended');
  },
);

test('asks while the call is running if the call cannot be deferred', async () => {
  let answer: unknown;
  const { start, until, events } = stage(async function* ({ options }) {
    const signal = new AbortController().signal;
    answer = await options.canUseTool(
      'Read',
      { file_path: '/etc/passwd' },
      { toolUseID: 't', signal },
    );
    yield success;
  });
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('permission');
  session.answer('t', { type: 'denied', words: 'No' });
  await until('turn_ended');
  expect(answer).toEqual({ behavior: 'deny', message: 'Not permitted: No' });
  expect(events.some(({ type }) => type === 'tool_started')).toBe(false);
  await session.release('ended');
});

test.each([
  ['denies an answered call that is still open before the next prompt', false],
  ['denies no answered call that the transcript shows as done', true],
])('CLAUDE-SESSION-2: a session that continues after Claude was killed %s', async (_, isDone) => {
  let round = 0;
  const told: unknown[] = [];
  const { start, until, events } = stage(async function* ({ prompt, options }) {
    round += 1;
    const made = call('Bash', { command: 'rm a' });
    if (round === 1) {
      const deferred = { id: 'toolu_1', name: 'Bash', input: { command: 'rm a' } };
      yield { ...success, deferred_tool_use: deferred };
    }
    // Claude is killed before it has reported anything about the answer.
    if (round === 2) {
      const project = join(options.env['CLAUDE_CONFIG_DIR'] ?? '', 'projects', 'p');
      mkdirSync(project, { recursive: true });
      const said = [{ id: 'toolu_1' }, ...(isDone ? [{ tool_use_id: 'toolu_1' }] : [])];
      const path = join(project, `${options.resume ?? ''}.jsonl`);
      writeFileSync(path, said.map((line) => JSON.stringify(line)).join('\n'));
      throw new Error('killed');
    }
    if (round !== 3) return;
    const [decide] = options.hooks.PreToolUse[0].hooks;
    if (!isDone) {
      told.push(await decide(made));
      yield success;
    }
    for await (const message of prompt) {
      told.push((message as { message: { content: string } }).message.content);
      break;
    }
    yield success;
  });
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('permission');
  session.answer('toolu_1', { type: 'permitted' });
  await until('closed');
  const again = await start(session.id);
  expect(again.isRunning).toBe(false);
  again.prompt({ key: 'l', text: 'Go on' });
  await until('turn_ended');
  expect(told.at(-1)).toBe('Go on');
  expect(told).toHaveLength(isDone ? 1 : 2);
  if (!isDone) expect(JSON.stringify(told[0])).toMatch(/"deny".*taken back/);
  expect(events.filter(({ type }) => type === 'tool_started')).toEqual([]);
  await again.release('ended');
});

test('asks several questions of one call in sequence', async () => {
  const questions = ['A?', 'B?'].map((question) => ({ question, options: [{ label: 'Yes' }] }));
  const input = { questions };
  let round = 0;
  let answer: unknown;
  const { start, until, events } = stage(async function* ({ options }) {
    round += 1;
    const more = { toolUseID: 'q', signal: new AbortController().signal };
    if (round > 1) answer = await options.canUseTool('AskUserQuestion', input, more);
    const deferred = { id: 'q', name: 'AskUserQuestion', input };
    yield { ...success, deferred_tool_use: round === 1 ? deferred : null };
  });
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('question');
  session.answer('q', { type: 'answered', text: 'Yes', optionId: 'Yes' });
  await until('question', 2);
  session.answer('q:1', { type: 'answered', text: 'Perhaps' });
  await until('turn_ended');
  expect(answer).toEqual({
    behavior: 'allow',
    updatedInput: { questions, answers: { 'A?': 'Yes', 'B?': 'Perhaps' } },
  });
  // The price of a session is a total, so each part counts once.
  const costs = events.flatMap((event) => (event.type === 'usage' ? [event.cost] : []));
  expect(costs).toEqual([0.5, 0]);
  await session.release('ended');
});

test('repeats an open question after a resume without starting a process', async () => {
  let processes = 0;
  const { start, until, events } = stage(async function* () {
    processes += 1;
    yield { ...success, deferred_tool_use: { id: 't', name: 'Write', input: { file_path: 'a' } } };
  });
  const session = await start();
  session.prompt({ key: 'k', text: 'Go' });
  await until('permission');
  await session.release('suspended');
  const again = await start(session.id);
  expect(again.isRunning).toBe(true);
  await until('permission', 2);
  expect(events.at(-1)).toMatchObject({ requestId: 't', title: 'Write a' });
  expect(processes).toBe(1);
  await again.release('ended');
  await expect(start(session.id)).rejects.toMatchObject({ code: 'RELAY_FAILED' });
});

test.each<[Partial<Record<keyof ClaudeRelayOptions, unknown>>, string]>([
  [{ query: undefined }, 'query'],
  [{ cwd: 'here' }, 'cwd'],
  [{ options: { permissionMode: 'bypassPermissions' } }, 'permissionMode'],
  [{ options: { canUseTool: () => null } }, 'canUseTool'],
  [{ unasked: 'Bash' }, 'unasked'],
])('refuses an invalid option by name: %j', (options, named) => {
  const query = (() => null) as never;
  expect(() => claudeRelay({ query, ...options } as ClaudeRelayOptions)).toThrow(
    expect.objectContaining({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(named) as string,
    }) as Error,
  );
});

test("reads tool calls, questions and results from Claude's messages", () => {
  expect(toolOf('mcp__shop__refund', { query: 'x' })).toMatchObject({ title: 'shop: refund x' });
  expect(toolOf('Write', null)).toEqual({ title: 'Write', kind: 'edit', input: null });
  expect(questionsIn({ questions: [] })).toEqual([]);
  expect(answeredInput({ questions: [{ question: 'A?' }] }, [{ type: 'cancelled' }])).toEqual({
    questions: [{ question: 'A?' }],
    answers: {},
  });
  const of = (more: object) => endOf({ type: 'result', subtype: 'success', ...more }).reason;
  expect(of({})).toBe('completed');
  expect(of({ is_error: true })).toBe('failed');
  expect(of({ stop_reason: 'refusal' })).toBe('refused');
  expect(of({ subtype: 'error_max_turns' })).toBe('limit');
});
