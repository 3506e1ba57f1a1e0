// A private PostgreSQL server for the tests of one run, in a temporary folder and on a Unix socket. It survives crashes
// of processes but not of the machine, because it does not sync to disk.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestProject } from 'vitest/node';
import { findPostgres } from './find-postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the server's socket. */
    postgresHost: string;
  }
}

const USER = 'offstage';
const DATABASE = 'postgres';
const SETTINGS = [
  'listen_addresses=',
  'fsync=off',
  'full_page_writes=off',
  'max_connections=60',
  'log_min_messages=log',
];

export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const programs = findPostgres();
  if (programs === undefined || !existsSync(join(programs, 'initdb')))
    throw new Error(`No programs of PostgreSQL in ${programs}: POSTGRES_BIN names their folder`);
  const folder = mkdtempSync(join(tmpdir(), 'offstage-pg-'));
  const data = join(folder, 'data');
  // The server refuses to run as root.
  const identity = process.getuid?.() === 0 ? idOf('postgres') : {};
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid ?? 0);
  execFileSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...identity, cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const settings = SETTINGS.flatMap((setting) => ['-c', setting]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-k', folder, ...settings], {
    ...identity,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stop = async (): Promise<void> => {
    await stopped(server);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(server);
  } catch (error) {
    await stop();
    throw error;
  }
  provide('postgresHost', folder);
  return stop;
}

/** Returns the options that a test uses to connect. */
export const connectionTo = (host: string) => ({ host, user: USER, database: DATABASE });

function idOf(user: string): { uid?: number; gid?: number } {
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, user], { encoding: 'utf8' }).trim());
  return { uid: id('-u'), gid: id('-g') };
}

/** @throws with the server's output if the server ends before it is ready */
async function ready({ stderr }: ChildProcess): Promise<void> {
  if (!stderr) throw new Error('Expected the server to have an output');
  const said: string[] = [];
  for await (const line of createInterface({ input: stderr })) {
    if (line.includes('ready to accept connections')) {
      stderr.resume();
      return;
    }
    said.push(line);
  }
  throw new Error(`PostgreSQL does not start:\n${said.join('\n')}`);
}

/** Stops the server and disconnects all clients. */
async function stopped(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    server.once('exit', () => resolve());
    server.kill('SIGINT');
  });
}
