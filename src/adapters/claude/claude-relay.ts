// A relay to Claude Code through the Claude Agent SDK. A process runs only while Claude is working. When a question or
// permission is open, the call is deferred (`defer`). Another process continues with the call, even after a crash.
//
// The app passes in the SDK; this file does not import it.
//
// Does not: load the user's settings, plugins or instructions, unless the app's SDK options request them.

import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import process from 'node:process';
import { z } from 'zod';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import type { Relay, RelaySession, RelayStart } from '../../actors/ports/relay.ts';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { OffstageError } from '../../values/errors.ts';
import { ownFolder, sweep } from '../agent-process/agent-process.ts';
import { ClaudeSession } from './claude-session.ts';
import type { ClaudeQuery } from './mapping.ts';
import { SessionFile } from './session-file.ts';

/** The options of `claudeRelay`. */
export interface ClaudeRelayOptions {
  /** The SDK's `query`: `import { query } from '@anthropic-ai/claude-agent-sdk'`. */
  readonly query: ClaudeQuery;
  /** The agent's name in messages. @defaultValue 'Claude' */
  readonly name?: string;
  /**
   * Claude's working folder, an absolute path. @defaultValue an empty folder per subagent, removed when the subagent
   * has ended
   */
  readonly cwd?: string;
  /**
   * The names of the environment variables that Claude inherits from this process. If Claude's login is stored in
   * files, it needs `HOME` and `CLAUDE_CONFIG_DIR`. @defaultValue PATH, LANG, LC_ALL, TZ, TMPDIR
   */
  readonly inheritEnv?: readonly string[];
  /** Additional variables for Claude, such as `ANTHROPIC_API_KEY`. @defaultValue {} */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Tools that run without asking for permission. All other tools need permission for each call. @defaultValue Read,
   * Glob, Grep and TodoWrite, unless Claude's rules ask (as for a file outside its folder)
   */
  readonly unasked?: readonly string[];
  /**
   * Further options of `query`, such as `model`, `maxTurns`, `mcpServers` or `systemPrompt`. Options that this relay
   * sets itself (`cwd`, `env`, `hooks`, `canUseTool`, `resume`, `sessionId`, `permissionMode`,
   * `spawnClaudeCodeProcess`) are rejected.
   * @defaultValue {}
   */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The maximum time that Claude may take to stop before it is killed, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /**
   * The folder for conversations, open questions and the marker files of running processes.
   * @defaultValue a folder of this user in the system's temporary directory
   */
  readonly stateFolder?: string;
}

const INHERITED = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SystemRoot'];
const UNASKED = ['Read', 'Glob', 'Grep', 'TodoWrite'];
/** Restricts Claude's network traffic to model requests. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
};
const RESERVED = [
  'abortController',
  'allowDangerouslySkipPermissions',
  'canUseTool',
  'continue',
  'cwd',
  'env',
  'forkSession',
  'hooks',
  'permissionMode',
  'resume',
  'sessionId',
  'spawnClaudeCodeProcess',
  'stderr',
];

const folder = z
  .string()
  .refine((path) => isAbsolute(path), { error: 'expected an absolute path' })
  .optional();
const optionsSchema = z.strictObject({
  query: aFunction,
  name: z.string().min(1).optional(),
  cwd: folder,
  inheritEnv: z.array(z.string().min(1)).optional(),
  env: z.record(z.string(), z.string()).optional(),
  unasked: z.array(z.string().min(1)).optional(),
  options: z
    .record(z.string(), z.unknown())
    .superRefine((given, context) => {
      for (const key of RESERVED)
        if (key in given)
          context.addIssue({
            code: 'custom',
            path: [key],
            message: 'expected an option that the relay does not set itself',
          });
    })
    .optional(),
  graceMs: z.number().min(1).optional(),
  stateFolder: folder,
} satisfies ChecksOf<ClaudeRelayOptions>);

const swept = new Set<string>();

/**
 * Creates a relay to Claude Code, for `defineSubagent({ relay })`. Needs `query` from the package
 * `@anthropic-ai/claude-agent-sdk`. The first process starts when a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function claudeRelay(options: ClaudeRelayOptions): Relay {
  check('claudeRelay(options)', optionsSchema, options);
  const { name = 'Claude' } = options;
  const folderOf = (subagentId: string): string => join(stateFolderOf(options), nameOf(subagentId));
  return {
    name,
    loop: relayLoop,
    capabilities: {
      openQuestionSurvives: true,
      resumes: true,
      steers: false,
      reportsTools: true,
    },
    start: async (start) => begin(name, options, start, folderOf(start.subagentId)),
    discard: (subagentId) => rmSync(folderOf(subagentId), { recursive: true, force: true }),
  };
}

function begin(
  name: string,
  options: ClaudeRelayOptions,
  start: RelayStart,
  own: string,
): RelaySession {
  start.signal.throwIfAborted();
  const { query, unasked, graceMs = 5_000, inheritEnv = INHERITED } = options;
  const marks = join(stateFolderOf(options), 'processes');
  const home = join(own, 'home');
  const cwd = options.cwd ?? join(own, 'work');
  const file = new SessionFile(join(own, 'session.json'));
  if (start.resume !== undefined && file.read()?.id !== start.resume)
    throw new OffstageError(
      'RELAY_FAILED',
      `${name} does not know the session ${JSON.stringify(start.resume)}`,
    );
  for (const path of [marks, home, cwd]) mkdirSync(path, { recursive: true, mode: 0o700 });
  if (!swept.has(marks)) {
    swept.add(marks);
    sweep(marks);
  }
  const inherited = inheritEnv.flatMap((variable): [string, string][] => {
    const value = process.env[variable];
    return value === undefined ? [] : [[variable, value]];
  });
  const env = {
    ...QUIET,
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, '.claude'),
    ...Object.fromEntries(inherited),
    ...options.env,
  };
  if (start.resume === undefined)
    file.write({
      id: uuidOf(`${start.subagentId}:${start.ids.next('cld')}`),
      cost: 0,
      isBegun: false,
      deferred: null,
      answered: null,
      permitted: [],
    });
  return new ClaudeSession({
    name,
    query,
    start,
    file,
    cwd,
    env,
    marks,
    configFolder: env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude'),
    unasked: new Set(unasked ?? UNASKED),
    followsRules: unasked === undefined,
    more: options.options ?? {},
    graceMs,
    removeFolder: () => rmSync(own, { recursive: true, force: true }),
  });
}

function stateFolderOf({ stateFolder }: ClaudeRelayOptions): string {
  return stateFolder ?? ownFolder('claude');
}

/** Returns a folder name that is the same in every process and valid for any id. */
function nameOf(subagentId: string): string {
  return createHash('sha256').update(subagentId).digest('hex').slice(0, 32);
}

/** Derives a UUID, because Claude requires one as the session id. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
