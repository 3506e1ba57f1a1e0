// An Offstage session as an ACP agent. Its client is the official SDK in another process (ACP-AGENT-1, ACP-SERVED-1,
// 2).

import {
  client,
  methods,
  ndJsonStream,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from '@agentclientprotocol/sdk';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, it, test } from 'vitest';
import { acpAgent } from '../../../src/adapters/acp/index.ts';

const PROGRAM = fileURLToPath(new URL('support/served-program.ts', import.meta.url));

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface EditorOptions {
  readonly forms?: boolean;
  readonly permission?: (
    request: RequestPermissionRequest,
    signal: AbortSignal,
  ) => Promise<RequestPermissionResponse>;
  readonly form?: (request: CreateElicitationRequest) => CreateElicitationResponse;
}

/** An editor that has started the program. */
async function editor(folder: string, { forms = true, permission, form }: EditorOptions = {}) {
  const program = spawn(process.execPath, ['--conditions=offstage-source', PROGRAM, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => program.once('close', () => resolve()));
  onTestFinished(async () => {
    program.kill('SIGKILL');
    await ended;
  });
  const updates: SessionNotification['update'][] = [];
  const asked: (RequestPermissionRequest | CreateElicitationRequest)[] = [];
  const waiting = new Set<() => void>();
  const happened = (): void => {
    for (const look of waiting) look();
  };
  const connection = client({ name: 'test-editor' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      updates.push(update);
      happened();
    })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
      asked.push(params);
      happened();
      return permission?.(params, signal) ?? new Promise<never>(() => {});
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => {
      asked.push(params);
      happened();
      return form?.(params) ?? new Promise<never>(() => {});
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(program.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(program.stdout) as ReadableStream<Uint8Array>,
      ),
    );
  const { agent } = connection;
  const { agentCapabilities } = await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: forms ? { elicitation: { form: {} } } : {},
  });
  return {
    agent,
    asked,
    updates,
    ended,
    agentCapabilities,
    close: () => program.stdin.end(),
    kill: async () => {
      program.kill('SIGKILL');
      await ended;
    },
    open: async () =>
      (await agent.request(methods.agent.session.new, { cwd: folder, mcpServers: [] })).sessionId,
    prompt: (sessionId: string, text: string) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] }),
    until: (isSo: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (!isSo()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    words: () =>
      updates
        .flatMap((update) =>
          update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
            ? [update.content.text]
            : [],
        )
        .join(''),
  };
}

const allow = (optionId: string) => () =>
  Promise.resolve({ outcome: { outcome: 'selected' as const, optionId } });
const deletions = (folder: string): string =>
  existsSync(join(folder, 'done.log')) ? readFileSync(join(folder, 'done.log'), 'utf8') : '';

describe('a turn', () => {
  test('sends a question as a form, work as a tool call, and the result before the turn ends', async () => {
    const folder = temporary();
    const one = await editor(folder, {
      form: () => ({ action: 'accept', content: { answer: 'b' } }),
    });
    expect(one.agentCapabilities).toMatchObject({ loadSession: true });
    const id = await one.open();
    expect(await one.prompt(id, 'paint the door')).toEqual({ stopReason: 'end_turn' });
    expect(one.asked).toMatchObject([
      {
        sessionId: id,
        mode: 'form',
        message: 'Which colour?',
        requestedSchema: {
          properties: { answer: { oneOf: [{ const: 'r' }, { const: 'b', title: 'Blue' }] } },
        },
      },
    ]);
    expect(one.words()).toMatch(/I paint\.[^]*Painted: Blue\./);
    const calls = one.updates.filter(({ sessionUpdate }) => sessionUpdate.startsWith('tool_call'));
    expect(calls[0]).toMatchObject({ title: 'painter: Paints', kind: 'think' });
    expect(calls.at(-1)).toMatchObject({ status: 'completed' });
    expect(one.updates).toContainEqual({
      sessionUpdate: 'plan',
      entries: [{ content: 'Paints', priority: 'medium', status: 'in_progress' }],
    });
    // The result was delivered once.
    expect(one.words().match(/Painted/g)).toHaveLength(1);
    one.close();
    await one.ended;
  });

  test('asks in plain text if the editor does not support forms, and reads the answer from the next prompt', async () => {
    const one = await editor(temporary(), { forms: false });
    const id = await one.open();
    expect(await one.prompt(id, 'paint the door')).toEqual({ stopReason: 'end_turn' });
    expect(one.words()).toContain('Which colour?\n- Red\n- Blue\n');
    expect(await one.prompt(id, 'Red')).toEqual({ stopReason: 'end_turn' });
    expect(one.words()).toContain('Painted: Red.');
    expect(one.asked).toEqual([]);
  });

  test.each([
    ['allow', 'deleted a.txt\n'],
    ['approve_lasting', 'deleted a.txt\n'],
    ['reject', ''],
    ['something else', ''],
  ])(
    'requests permission for a single call, which is answered with "%s"',
    async (optionId, deleted) => {
      const folder = temporary();
      const one = await editor(folder, { permission: allow(optionId) });
      const id = await one.open();
      await one.prompt(id, 'remove it');
      expect(one.asked).toMatchObject([
        {
          toolCall: { rawInput: { toolName: 'delete_file', input: { path: 'a.txt' } } },
          options: [{ kind: 'allow_once' }, { kind: 'reject_once' }, { kind: 'allow_always' }],
        },
      ]);
      expect(deletions(folder)).toBe(deleted);
    },
  );

  it('sends the complete text of a permission request when it is too long for a title', async () => {
    const one = await editor(temporary(), { permission: allow('reject') });
    await one.prompt(await one.open(), 'remove it, it has a long name');
    const [{ toolCall } = { toolCall: null }] = one.asked as RequestPermissionRequest[];
    const text = toolCall?.content?.map((part) => JSON.stringify(part)).join('') ?? '';
    expect(text).toContain(`${'x'.repeat(3_000)}.txt`);
    expect(toolCall?.title).not.toContain('xxx');
  });

  test('stops the work and withdraws open requests when cancelled (ACP-SERVED-1)', async () => {
    const folder = temporary();
    const withdrawn = Promise.withResolvers<void>();
    const one = await editor(folder, {
      permission: (_request, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            withdrawn.resolve();
            resolve({ outcome: { outcome: 'selected', optionId: 'allow' } });
          });
        }),
    });
    const id = await one.open();
    const turn = one.prompt(id, 'remove it');
    await one.until(() => one.asked.length > 0);
    await one.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    await withdrawn.promise;
    expect(deletions(folder)).toBe('');
    const before = one.updates.length;
    // The session stays alive and shows nothing between turns (ACP-SERVED-2).
    expect(await one.prompt(id, 'hello')).toEqual({ stopReason: 'end_turn' });
    expect(one.updates.length).toBeGreaterThan(before);
  });

  it('withdraws a permission request when the next prompt arrives, and then repeats it once', async () => {
    const folder = temporary();
    const takenBack: string[] = [];
    const one = await editor(folder, {
      // An editor that never answers a request after it has been withdrawn.
      permission: ({ toolCall }, signal) =>
        new Promise(() => {
          signal.addEventListener('abort', () => takenBack.push(toolCall.toolCallId));
        }),
    });
    const id = await one.open();
    const first = one.prompt(id, 'remove it');
    await one.until(() => one.asked.length === 1);
    const second = one.prompt(id, 'hello');
    expect(await first).toEqual({ stopReason: 'end_turn' });
    await one.until(() => one.asked.length === 2);
    expect(takenBack).toHaveLength(1);
    await one.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await second).toEqual({ stopReason: 'cancelled' });
    expect(one.asked).toHaveLength(2);
  });

  test('lets the user keep talking while work continues', async () => {
    const one = await editor(temporary());
    const id = await one.open();
    const first = one.prompt(id, 'work on it');
    await one.until(() => one.words().includes('I work.'));
    const second = one.prompt(id, 'hello');
    expect(await first).toEqual({ stopReason: 'end_turn' });
    await one.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await second).toEqual({ stopReason: 'cancelled' });
  });

  test('refuses empty prompts and unknown sessions', async () => {
    const one = await editor(temporary());
    await expect(one.prompt('nobody', 'hello')).rejects.toMatchObject({ code: -32_002 });
    const id = await one.open();
    await expect(one.prompt(id, ' ')).rejects.toMatchObject({ code: -32_602 });
    await expect(
      one.agent.request(methods.agent.session.resume, {
        sessionId: 'nobody',
        cwd: '/',
        mcpServers: [],
      }),
    ).rejects.toMatchObject({ code: -32_002 });
    await one.agent.request(methods.agent.session.close, { sessionId: id });
    await expect(one.prompt(id, 'hello')).rejects.toMatchObject({ code: -32_002 });
  });
});

describe('another process', () => {
  test.each(['killed', 'left'])(
    'resumes the session by its id after the first process was %s',
    async (how) => {
      const folder = temporary();
      const first = await editor(folder);
      const id = await first.open();
      await first.prompt(id, 'hello');
      first.prompt(id, 'remove it').catch(() => {});
      await first.until(() => first.asked.length > 0);
      if (how === 'killed') await first.kill();
      else {
        first.close();
        await first.ended;
      }
      const second = await editor(folder, { permission: allow('allow') });
      await second.agent.request(methods.agent.session.load, {
        sessionId: id,
        cwd: folder,
        mcpServers: [],
      });
      expect(second.updates).toContainEqual({
        sessionUpdate: 'user_message_chunk',
        content: { type: 'text', text: 'remove it' },
      });
      // The user has not given permission yet.
      expect(deletions(folder)).toBe('');
      expect(await second.prompt(id, 'Where are we?')).toEqual({ stopReason: 'end_turn' });
      expect(second.asked).toHaveLength(1);
      expect(deletions(folder)).toBe('deleted a.txt\n');
      expect(second.words().match(/It is so/g)).toHaveLength(1);
    },
  );
});

test.each([
  [{}, 'open'],
  [{ open: (): null => null, output: {} }, 'output'],
  [{ open: (): null => null, port: 1 }, 'port'],
])('refuses invalid options by name: %o', async (options, name) => {
  await expect(acpAgent(options as never)).rejects.toThrow(name);
});
