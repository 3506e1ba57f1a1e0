// The process of an agent. It receives only the given environment, runs in its own process group and folder, and is
// killed together with its children.
//
// Invariants
//   ACP-PROCESS-1. An agent process ends soon after this process. When this process exits, it kills the agent's group.
//       If this process itself is killed, the next program finds the group by its marker file at startup and kills it.
//   ACP-PROCESS-2. A process whose marker is found is killed only if its id and start time match the marker and the
//       marker's owner has ended.

import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Readable, Writable } from 'node:stream';
import { ConfigurationError, messageOf, OffstageError } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';
import type { Scheduler } from '../../actors/ports/environment.ts';
import type { RelayStart } from '../../actors/ports/relay.ts';

export interface AgentCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The folder of the marker files. */
  readonly marks: string;
}

const MAX_LOG = 4_000;

/** How a process ended. */
export interface Exit {
  readonly message: string;
}

/** The running agent processes, which are killed when this process exits. */
const running = new Set<AgentProcess>();
let isWatching = false;

/** Passes the trace context to the agent process through environment variables, as OpenTelemetry specifies. */
export function tracedEnv({ traceparent }: RelayStart): Readonly<Record<string, string>> {
  const value = traceparent?.();
  return value === undefined ? {} : { TRACEPARENT: value };
}

export class AgentProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process has exited. */
  readonly exited: Promise<Exit>;
  /** The child process, for libraries that communicate with it directly. */
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #mark: string;
  #log = '';
  #hasExited = false;

  /** @throws {OffstageError} `RELAY_FAILED` if the process cannot be started. */
  static start(command: AgentCommand): Promise<AgentProcess> {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown): void =>
        reject(
          new OffstageError(
            'RELAY_FAILED',
            `Expected to start ${command.command} in ${command.cwd}: ${messageOf(cause)}`,
            { cause },
          ),
        );
      try {
        const child = spawned(command);
        child.once('error', fail);
        child.once('spawn', () => {
          child.removeListener('error', fail);
          resolve(new AgentProcess(child, command.marks));
        });
      } catch (error) {
        fail(error);
      }
    });
  }

  /** Starts the process without waiting. A program that cannot be started is treated as if it had exited. */
  static begin(command: AgentCommand): AgentProcess {
    return new AgentProcess(spawned(command), command.marks);
  }

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>, marks: string) {
    const pid = child.pid ?? 0;
    this.child = child;
    this.stdin = child.stdin;
    this.stdout = child.stdout;
    this.#mark = join(marks, `${pid}.json`);
    const mark = {
      pid,
      startedAt: startOf(pid),
      owner: process.pid,
      ownerStartedAt: startOf(process.pid),
    };
    if (pid > 0) writeFileSync(this.#mark, JSON.stringify(mark), { mode: 0o600 });
    running.add(this);
    killAtExit();
    // A pipe to a process that has ended reports an error.
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-MAX_LOG);
    });
    this.exited = new Promise((resolve) => {
      child.on('error', (error) => {
        if (pid > 0) return;
        this.#hasExited = true;
        running.delete(this);
        resolve({ message: messageOf(error) });
      });
      child.once('exit', (code, signal) => {
        this.#hasExited = true;
        // The children of the process are ended together with it.
        this.signal('SIGKILL');
        running.delete(this);
        rmSync(this.#mark, { force: true });
        const how = signal === null ? `it ended with code ${code ?? 0}` : `it ended by ${signal}`;
        const log = this.#log.trim();
        resolve({ message: log === '' ? how : `${how}; its log ends: ${clip(log, 1_000)}` });
      });
    });
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** Sends a signal to the process and its children. */
  signal(name: 'SIGTERM' | 'SIGKILL'): void {
    killGroup(this.child.pid ?? 0, name);
  }

  /** Asks the process to exit, and kills it if it is still running after `graceMs`. Returns whether it was killed. */
  async end(scheduler: Scheduler, graceMs: number): Promise<boolean> {
    if (this.#hasExited) return false;
    let isKilled = false;
    this.stdin.end();
    this.signal('SIGTERM');
    const cancel = scheduler.schedule(() => {
      isKilled = true;
      this.signal('SIGKILL');
    }, graceMs);
    await this.exited;
    cancel();
    return isKilled;
  }
}

function spawned({ command, args, cwd, env }: AgentCommand) {
  return spawn(command, args, {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    // A separate process group can be killed as a whole.
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
}

function killAtExit(): void {
  if (isWatching) return;
  isWatching = true;
  process.once('exit', () => {
    for (const one of running) one.signal('SIGKILL');
  });
}

function killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (pid <= 1) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // The process has exited.
  }
}

/**
 * Returns a process's start time in the system's notation; null if the process is gone or the system does not report
 * the time.
 */
function startOf(pid: number): string | null {
  if (process.platform === 'win32') return null;
  return existsSync('/proc/self/stat') ? startInProc(pid) : startByPs(pid);
}

/** For systems without `/proc`, such as macOS. The time has a resolution of one second. */
export function startByPs(pid: number): string | null {
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return started === '' ? null : started;
  } catch {
    return null;
  }
}

function startInProc(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program name, in parentheses, may contain any character.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

interface Mark {
  readonly pid: number;
  readonly startedAt: string | null;
  readonly owner: number;
  readonly ownerStartedAt: string | null;
}

/** Kills the agents whose owners were killed. Returns the number of killed agents. */
export function sweep(marks: string): number {
  let killed = 0;
  for (const name of readdirSync(marks)) {
    const path = join(marks, name);
    const mark = readMark(path);
    if (mark && isAlive(mark.owner, mark.ownerStartedAt)) continue;
    if (mark && mark.startedAt !== null && startOf(mark.pid) === mark.startedAt) {
      killGroup(mark.pid, 'SIGKILL');
      killed += 1;
    }
    rmSync(path, { force: true });
  }
  return killed;
}

function readMark(path: string): Mark | null {
  try {
    const { pid, startedAt, owner, ownerStartedAt } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as Partial<Mark>;
    if (typeof pid !== 'number' || typeof owner !== 'number') return null;
    return { pid, owner, startedAt: startedAt ?? null, ownerStartedAt: ownerStartedAt ?? null };
  } catch {
    return null;
  }
}

function isAlive(pid: number, startedAt: string | null): boolean {
  if (startedAt !== null) return startOf(pid) === startedAt;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * Creates and returns a folder that only this user can read.
 * @throws {ConfigurationError} `CANNOT_OPEN` if it belongs to another user.
 */
export function ownFolder(...parts: readonly string[]): string {
  // Uses the numeric user id, because a user in a container may have no name.
  const base = join(tmpdir(), `offstage-acp-${process.getuid?.() ?? userInfo().username}`);
  mkdirSync(base, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(base);
  if (process.getuid && uid !== process.getuid())
    throw new ConfigurationError(
      'CANNOT_OPEN',
      `Expected ${base} to belong to this user, it belongs to user ${uid}: set \`cwd\` and \`stateFolder\``,
    );
  const folder = join(base, ...parts);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
