import { readFileSync } from 'node:fs';
import { NEVER, Subject } from 'rxjs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { doctorIn, type MakeTransport } from '../../src/cli/doctor/doctor.ts';
import {
  examine,
  isInCaretRange,
  type Machine,
  REQUIREMENTS,
} from '../../src/cli/doctor/findings.ts';
import { geminiLive } from '../../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../../src/adapters/openai-realtime/index.ts';
import type { TransportEvent } from '../../src/voice/connection/transport.ts';
import { spokenLead } from '../../src/voice/spoken-lead.ts';

const KEY = 'sk-proj-0123456789abcdef';

function machine(more: Partial<Machine> = {}): Machine {
  return {
    nodeVersion: '24.21.0',
    variables: {},
    installed: () => '7.0.1',
    range: () => null,
    voiceFolder: () => '/voice',
    ...more,
  };
}

async function run(
  args: readonly string[],
  {
    connectable = new Map<string, MakeTransport>(),
    ...more
  }: Partial<Machine> & {
    connectable?: Map<string, MakeTransport>;
  } = {},
) {
  let printed = '';
  const say = (text: string) => (printed += text);
  const command = doctorIn({ machine: machine(more), connectable });
  const status = await command.run(args, say, say);
  return { status, printed };
}

const texts = (found: Machine, name: string): string[] =>
  examine(found, [name])
    .flatMap(({ findings }) => findings)
    .map(({ status, text }) => `${status}: ${text}`);

describe('keys', () => {
  test('FINDINGS-1: never prints a key, not even a malformed one', async () => {
    for (const value of [KEY, ` ${KEY}`, `"${KEY}"`, `${KEY} ${KEY}`]) {
      const { printed } = await run([], {
        variables: { OPENAI_API_KEY: value, GOOGLE_API_KEY: value },
      });
      expect(printed).not.toContain('0123456789');
      expect(printed).toContain('OPENAI_API_KEY');
    }
  });

  test('uses the first of several keys and names the others', () => {
    const variables = { GEMINI_API_KEY: KEY, GOOGLE_API_KEY: KEY };
    expect(texts(machine({ variables }), 'gemini-live')).toEqual(
      expect.arrayContaining([
        'ok: The key is taken from GOOGLE_API_KEY',
        'note: GEMINI_API_KEY is set too, and not used',
      ]),
    );
  });

  test('treats an empty variable as missing', () => {
    const found = texts(machine({ variables: { OPENAI_API_KEY: '' } }), 'openai-realtime');
    expect(found).toContain('missing: No key: set OPENAI_API_KEY');
  });

  test.each([
    [`${KEY}\n`, 'begins or ends with white space'],
    [`'${KEY}'`, 'is in quotation marks that are part of it'],
    ['<your key>', 'has white space in it'],
    ['your-key-here', 'looks like a placeholder'],
  ])('%j', (value, problem) => {
    const found = texts(machine({ variables: { OPENAI_API_KEY: value } }), 'openai-live');
    expect(found).toContain(`missing: The key in OPENAI_API_KEY ${problem}`);
  });

  test.each([
    ['openai-realtime', openaiRealtime],
    ['openai-live', openaiLive],
    ['gemini-live', geminiLive],
  ])('lists the keys that %s accepts, in the order in which it looks for them', (name, make) => {
    const { keys } = REQUIREMENTS.find((one) => one.name === name)!;
    for (const key of keys) vi.stubEnv(key, undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    let message = '';
    try {
      make();
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message.match(/[A-Z]+_[A-Z_]*API_KEY/g)).toEqual(keys);
  });
});

test('shows only the host of a URL, because the rest may contain a secret', () => {
  const variables = {
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: 'https://me:secret@proxy.test/v1?key=secret',
  };
  const found = texts(machine({ variables }), 'openai-realtime').join('\n');
  expect(found).toContain('at proxy.test');
  expect(found).not.toContain('secret');
});

describe('packages', () => {
  test('names a missing variable and explains how to set it', () => {
    const found = texts(machine({ installed: () => null }), 'local-voice');
    expect(found).toContain('missing: The package ws is missing: run npm install ws');
  });

  test('reports missing packages of the local voice only if the local voice is selected', () => {
    const without = machine({ voiceFolder: () => null });
    const remedy =
      'missing: The packages of the local voice are missing: run npx offstage voice install';
    expect(texts(without, 'local-voice')).toContain(remedy);
    expect(texts(without, 'openai-realtime')).not.toContain(remedy);
    expect(texts(machine({}), 'local-voice')).toContain(
      'ok: The packages of the local voice are in /voice',
    );
  });

  test('refuses a package whose major version differs', () => {
    const found = texts(
      machine({ installed: () => '6.4.0', range: () => '^7.0.0' }),
      'local-voice',
    );
    expect(found).toContain(
      'missing: ai 6.4.0 is installed, ^7.0.0 is needed: run npm install ai@^7.0.0',
    );
  });

  test.each([
    ['7.0.0', '^7.0.0', true],
    ['7.12.3', '^7.0.0', true],
    ['8.0.0', '^7.0.0', false],
    ['6.9.9', '^7.0.0', false],
    ['7.0.9', '^7.1.0', false],
    ['0.1.2', '^0.1.1', true],
    ['0.2.0', '^0.1.1', false],
    ['0.1.0', '^0.1.1', false],
    ['0.0.31', '^0.0.31', true],
    ['0.0.32', '^0.0.31', false],
    ['7.1.0-beta.1', '^7.0.0', true],
  ])('%s in %s: %s', (version, range, isIn) => {
    expect(isInCaretRange(version, range)).toBe(isIn);
  });

  test('reports a Node version that is too old', async () => {
    const { status, printed } = await run([], { nodeVersion: '22.12.0' });
    expect(status).toBe(1);
    expect(printed).toContain('Node 22.13 or newer is needed, this is 22.12.0');
  });
});

describe('the exit status', () => {
  test('fails if a transport named in the call lacks something, but not for other transports', async () => {
    expect((await run([])).status).toBe(0);
    expect((await run(['gemini-live'])).status).toBe(1);
    expect((await run(['gemini-live'], { variables: { GEMINI_API_KEY: KEY } })).status).toBe(0);
  });

  test.each([[['gemini']], [['--nonsense']]])('fails for the invalid call %j', async (args) => {
    const { status, printed } = await run(args);
    expect(status).toBe(2);
    expect(printed).toContain('offstage doctor [adapter');
  });
});

test("has a selectable row for each of the package's adapters", async () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    exports: Record<string, { 'offstage-source'?: string }>;
  };
  const adapters = Object.entries(exports).flatMap(
    ([subpath, { 'offstage-source': source = '' }]) => {
      const [, name = ''] = subpath.split('/');
      return source.startsWith('./src/adapters/') ? [name] : [];
    },
  );
  const rows = REQUIREMENTS.map(({ name }) => name);
  expect(rows.toSorted()).toEqual([...new Set(adapters)].toSorted());
  const { status, printed } = await run(['restate', 'acp', 'postgres-journal'], {
    installed: (name) => (name === 'pg' ? null : '8.23.0'),
  });
  expect(status).toBe(1);
  expect(printed).toContain('The package pg is missing: run npm install pg');
  expect(printed).toContain('Needs a Restate server');
  expect((await run(['--all'])).printed).toContain('encrypted-journal: ready');
});

test('prints its findings as JSON with --json', async () => {
  const { printed } = await run(['openai-realtime', '--json'], {
    variables: { OPENAI_API_KEY: KEY },
  });
  expect(JSON.parse(printed)).toMatchObject([
    { name: 'this machine', isReady: true },
    { name: 'openai-realtime', isReady: true },
  ]);
});

describe('--connect', () => {
  const variables = { OPENAI_API_KEY: KEY };
  const transport = (...events: TransportEvent[]): MakeTransport => {
    const source = new Subject<TransportEvent>();
    return () =>
      Promise.resolve({
        name: 'test',
        lead: spokenLead,
        capabilities: openaiRealtime({ apiKey: KEY }).capabilities,
        connect: () => {
          queueMicrotask(() => events.forEach((event) => source.next(event)));
          return {
            events: source,
            audio: NEVER,
            sendAudio() {},
            send() {},
            close: () => Promise.resolve(),
          };
        },
      });
  };
  const tried = (make: MakeTransport) =>
    run(['openai-realtime', '--connect'], {
      variables,
      connectable: new Map([['openai-realtime', make]]),
    });

  test('reports that a connection is ready', async () => {
    const { status, printed } = await tried(transport({ type: 'transport.ready' }));
    expect(status).toBe(0);
    expect(printed).toMatch(/Connected in \d+ ms/);
  });

  test('explains why a connection was refused', async () => {
    const reason = 'The server refused the connection (HTTP 401)';
    const closed = { type: 'transport.closed', code: 401, reason, retryable: false } as const;
    const { status, printed } = await tried(transport(closed));
    expect(status).toBe(1);
    expect(printed).toContain(`MISSING ${reason}`);
  });

  test('reports a transport that cannot be constructed', async () => {
    const { status, printed } = await tried(() => Promise.reject(new Error('no such adapter')));
    expect(status).toBe(1);
    expect(printed).toContain('no such adapter');
  });
});

describe('for programs', () => {
  test('refuses an unknown adapter and lists the known ones', () => {
    expect(() => examine(machine(), ['gemini'])).toThrow(
      /^examine\(machine, names\): expected names in a list, of openai-realtime, .*, got "gemini"$/,
    );
  });

  test('throws an error that names a function missing from its `machine` argument', () => {
    const { installed: _, ...broken } = machine();
    expect(() => examine(broken as Machine, [])).toThrow('`installed`: expected a function');
  });
});
