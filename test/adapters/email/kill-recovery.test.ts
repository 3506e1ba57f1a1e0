// A session on SQLite whose process is killed by SIGKILL at random times, while it sends an e-mail (P4, EMAIL-1).

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { KILL_TIMEOUT_MS, SEEDS } from '../../support/relay-kills.ts';
import { postOffice } from './support/post-office.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));
/** The approximate time from the start of the program until the e-mail has been sent. */
const LIFE_MS = 120;

/** Runs the program once, until it ends or is killed, and returns the lines that it wrote. */
function live(args: readonly string[], killAfterMs?: number): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--conditions=offstage-source', PROGRAM, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    let timer: NodeJS.Timeout | undefined;
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (killAfterMs !== undefined && text.includes('begun'))
        timer ??= setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(timer);
      resolve(text.split('\n').filter(Boolean));
    });
  });
}

test.each(SEEDS)(
  'P4: sends one message despite random kills, and presents it to the user later (seed %i)',
  { timeout: KILL_TIMEOUT_MS },
  async (seed) => {
    const folder = mkdtempSync(join(tmpdir(), 'mail-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const office = await postOffice();
    onTestFinished(() => office.close());
    const args = [folder, String(office.port)];
    let state = seed + 1;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    let lines: readonly string[] = [];
    for (let kills = 0; kills < 4 && !lines.includes('sent'); kills += 1)
      lines = await live(args, Math.floor(random() * LIFE_MS));
    if (!lines.includes('sent')) lines = await live(args);
    expect(lines).toContain('sent');
    // If the process was killed between sending the message and writing its entry, the message may have been sent
    // twice, with the same id.
    expect(new Set(office.mails.map(({ id }) => id)).size).toBe(1);
    const next = await live([...args, 'user']);
    const said = next.filter((line) => line.startsWith('said'));
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/already sent.*Parcel/);
    expect(next.at(-1)).toMatch(/^heard/);
  },
);
