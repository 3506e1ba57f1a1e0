// Processes that tests kill and restart.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type ClientHttp2Session,
  type ServerHttp2Session,
} from 'node:http2';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A process that serves on the same ports after each restart. */
export interface Living {
  /** Sends SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Restarts the process, and resolves when it is up. */
  start(): Promise<void>;
}

interface Life {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Polls, and resolves to true once the process serves requests. */
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
      const started = spawn(command, args, {
        cwd,
        env: { ...process.env, NODE_ENV: 'production', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [started.stdout, started.stderr])
        stream?.on('data', (data) => {
          output = `${output}${String(data)}`.slice(-4_000);
        });
      child = started;
      // The process may be killed while it is starting.
      while (child === started && !(await isUp(output))) {
        if (started.exitCode !== null) throw new Error(`${command} ended: ${output}`);
        await moment();
      }
    },
  };
}

/** Processes of several versions, one of each, which a deploy replaces. */
export function livingVersions<Version extends string>(
  lifeOf: (version: Version, at: number, isDeploy: boolean) => Living,
  first: Version,
) {
  let lives: readonly Living[] = [lifeOf(first, 0, false)];
  const start = async (): Promise<void> => {
    await Promise.all(lives.map((life) => life.start()));
  };
  const kill = async (): Promise<void> => {
    await Promise.all(lives.map((life) => life.kill()));
  };
  return {
    start,
    kill,
    async deploy(versions: readonly Version[]): Promise<void> {
      await kill();
      // The first version alone is the initial state and not a deploy.
      const isDeploy = versions.length > 1 || versions[0] !== first;
      lives = versions.map((version, at) => lifeOf(version, at, isDeploy));
      await start();
    },
  };
}

/** Forwards each HTTP/2 request to the next of these ports, as a load balancer does. */
export async function openBalancer(port: number, ports: () => readonly number[]) {
  let next = 0;
  const sessions = new Map<number, ClientHttp2Session>();
  const all = new Set<ServerHttp2Session>();
  const sessionOf = (to: number): ClientHttp2Session => {
    const known = sessions.get(to);
    if (known && !known.closed && !known.destroyed) return known;
    const session = connectHttp2(`http://127.0.0.1:${to}`);
    session.on('error', () => sessions.delete(to));
    session.on('close', () => sessions.delete(to));
    sessions.set(to, session);
    return session;
  };
  const server = createHttp2Server();
  server.on('session', (session) => {
    all.add(session);
    session.on('close', () => all.delete(session));
    session.on('error', () => {});
  });
  server.on('stream', (from, headers) => {
    const known = ports();
    const broken = (): void => from.close(constants.NGHTTP2_INTERNAL_ERROR);
    from.on('error', () => {});
    const to = sessionOf(known[(next += 1) % known.length] ?? 0).request(headers);
    to.on('response', (answered) => {
      if (!from.destroyed) from.respond(answered);
    });
    to.on('error', broken);
    to.on('close', () => {
      if (to.rstCode !== 0) broken();
    });
    from.on('close', () => to.close(from.rstCode));
    from.pipe(to);
    to.pipe(from);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const session of [...all, ...sessions.values()]) session.destroy();
      }),
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

/** Returns whether a process accepts connections on the port. */
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

/** Returns whether a URL responds, with any status. */
export async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
}
