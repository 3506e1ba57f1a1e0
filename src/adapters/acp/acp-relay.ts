// A relay to any agent that speaks the Agent Client Protocol (ACP), version 1, over stdio: Claude Agent, Codex, Gemini
// CLI, Copilot CLI, OpenClaw and others. Each session has its own process.
//
// Does not: provide files or terminals, because the agent works in its folder with its own tools.

import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import process from 'node:process';
import { z } from 'zod';
import { relayLoop } from '../../actors/subagent/relay-loop.ts';
import type { Relay, RelaySession, RelayStart } from '../../actors/ports/relay.ts';
import { check, type ChecksOf } from '../../values/checks.ts';
import { AcpSession } from './acp-session.ts';
import { AgentProcess, ownFolder, sweep, tracedEnv } from '../agent-process/agent-process.ts';
import { loadSdk } from './load-sdk.ts';

/** The options of `acpRelay`. */
export interface AcpRelayOptions {
  /** The agent's program, such as `claude-agent-acp`. */
  readonly command: string;
  /** @defaultValue [] */
  readonly args?: readonly string[];
  /** The agent's name in messages. @defaultValue the command */
  readonly name?: string;
  /**
   * The agent's working folder, an absolute path. @defaultValue an empty folder per subagent, removed when the subagent
   * has ended
   */
  readonly cwd?: string;
  /**
   * The names of the environment variables that the agent inherits from this process. An agent that stores its login in
   * files needs `HOME`. @defaultValue PATH, LANG, LC_ALL, TZ, TMPDIR
   */
  readonly inheritEnv?: readonly string[];
  /** Additional variables for the agent. @defaultValue {} */
  readonly env?: Readonly<Record<string, string>>;
  /** The MCP servers that the agent connects to, as in `session/new`. @defaultValue [] */
  readonly mcpServers?: readonly Readonly<Record<string, unknown>>[];
  /**
   * The options of the agent's sessions, using the agent's ids and values, such as `{ mode: 'default', model: 'sonnet'
   * }`. They are set before the first prompt of each process. If the agent rejects an option, the session fails with
   * `RELAY_FAILED`, and the error lists the values that the agent offers. Some agents start in a mode that never asks
   * for permission. @defaultValue the agent's defaults
   */
  readonly configOptions?: Readonly<Record<string, string | boolean>>;
  /** Whether the agent's sessions can be resumed. @defaultValue true */
  readonly resumes?: boolean;
  /** The time limit for starting the process and opening a session, in milliseconds. @defaultValue 60000 */
  readonly startTimeoutMs?: number;
  /** The maximum time that the agent may take to stop before it is killed, in milliseconds. @defaultValue 5000 */
  readonly graceMs?: number;
  /**
   * The folder for the marker files of running processes. The files identify the agents of a program that was killed.
   * @defaultValue a folder of this user in the system's temporary directory
   */
  readonly stateFolder?: string;
}

const INHERITED = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SystemRoot'];

const folder = z
  .string()
  .refine((path) => isAbsolute(path), { error: 'expected an absolute path' })
  .optional();
const milliseconds = z.number().min(1).optional();
const optionsSchema = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).optional(),
  name: z.string().min(1).optional(),
  cwd: folder,
  inheritEnv: z.array(z.string().min(1)).optional(),
  env: z.record(z.string(), z.string()).optional(),
  mcpServers: z.array(z.record(z.string(), z.unknown())).optional(),
  configOptions: z.record(z.string().min(1), z.union([z.string(), z.boolean()])).optional(),
  resumes: z.boolean().optional(),
  startTimeoutMs: milliseconds,
  graceMs: milliseconds,
  stateFolder: folder,
} satisfies ChecksOf<AcpRelayOptions>);

const swept = new Set<string>();

/**
 * Creates a relay to an ACP agent, for `defineSubagent({ relay })`. Needs the package `@agentclientprotocol/sdk`. The first
 * process starts when a subagent runs.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function acpRelay(options: AcpRelayOptions): Relay {
  check('acpRelay(options)', optionsSchema, options);
  const { name = options.command, resumes = true } = options;
  return {
    name,
    loop: relayLoop,
    // An agent's open question is lost when its stdio process ends. Version 1 of the protocol cannot add messages to a
    // turn.
    capabilities: { openQuestionSurvives: false, resumes, steers: false, reportsTools: true },
    start: (start) => begin(name, options, start),
    discard: (subagentId) => {
      if (options.cwd !== undefined) return;
      rmSync(ownFolder('work', nameOf(subagentId)), { recursive: true, force: true });
    },
  };
}

async function begin(
  name: string,
  options: AcpRelayOptions,
  start: RelayStart,
): Promise<RelaySession> {
  const { command, args = [], mcpServers = [], configOptions = {} } = options;
  const { startTimeoutMs = 60_000, graceMs = 5_000 } = options;
  start.signal.throwIfAborted();
  const sdk = await loadSdk('acpRelay');
  const marks = options.stateFolder ?? ownFolder('processes');
  mkdirSync(marks, { recursive: true, mode: 0o700 });
  if (!swept.has(marks)) {
    swept.add(marks);
    sweep(marks);
  }
  const own = options.cwd === undefined ? ownFolder('work', nameOf(start.subagentId)) : null;
  const cwd = options.cwd ?? own ?? '';
  const removeFolder = (): void => {
    if (own !== null) rmSync(own, { recursive: true, force: true });
  };
  const env = { ...tracedEnv(start), ...envOf(options) };
  try {
    const agent = await AgentProcess.start({ command, args, cwd, env, marks });
    return await AcpSession.open({
      sdk,
      name,
      agent,
      start,
      cwd,
      mcpServers,
      configOptions,
      startTimeoutMs,
      graceMs,
      removeFolder,
    });
  } catch (error) {
    // The folder of a resumed session contains files that the next attempt needs.
    if (start.resume === undefined) removeFolder();
    throw error;
  }
}

function envOf({ inheritEnv = INHERITED, env = {} }: AcpRelayOptions): Record<string, string> {
  const inherited = inheritEnv.flatMap((variable): [string, string][] => {
    const value = process.env[variable];
    return value === undefined ? [] : [[variable, value]];
  });
  return { ...Object.fromEntries(inherited), ...env };
}

/** Returns a folder name that is the same in every process and valid for any id. */
function nameOf(subagentId: string): string {
  return createHash('sha256').update(subagentId).digest('hex').slice(0, 32);
}
