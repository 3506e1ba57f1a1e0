// Processes that are killed, and started again.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A process that serves on the same ports in each of its lives. */
export interface Living {
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again; resolves when it is up. */
  start(): Promise<void>;
}

interface Life {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Resolves once it serves; asked again and again. */
  readonly isUp: (output: string) => Promise<boolean>;
}

const MOMENT_MS = 10;

export const moment = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, MOMENT_MS);
  });

export function living({ command, args, env = {}, cwd, isUp }: Life): Living {
  let child: ChildProcess | null = null;
  return {
    async kill() {
      const dying = child;
      child = null;
      if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
      const gone = once(dying, 'exit');
      dying.kill('SIGKILL');
      await gone;
    },
    async start() {
      let output = '';
      const born = spawn(command, args, {
        cwd,
        env: { ...process.env, NODE_ENV: 'production', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [born.stdout, born.stderr])
        stream?.on('data', (data) => {
          output = `${output}${String(data)}`.slice(-4_000);
        });
      child = born;
      // It may be killed while it starts.
      while (child === born && !(await isUp(output))) {
        if (born.exitCode !== null) throw new Error(`${command} ended: ${output}`);
        await moment();
      }
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

/** Tells whether something accepts connections. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Tells whether an address answers, with any status. */
export async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
}
