// A third-party agent: it speaks the Agent Client Protocol, runs as a child process, and asks before it changes a
// file in its folder. This agent is included in the examples; replace its command with the command of your own
// agent.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { defineSubagent } from 'offstage';
import { acpRelay } from 'offstage/acp';

export interface TemporaryFolder {
  readonly path: string;
  remove(): void;
}

/**
 * Creates a folder that exists as long as the conversation. With `kept`, the next process finds it again after a crash.
 */
export function temporaryFolder(kept: string | undefined): TemporaryFolder {
  const path = kept ? join(kept, 'menu') : mkdtempSync(join(tmpdir(), 'offstage-demo-'));
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

const agent = fileURLToPath(new URL('../../acp-agent.ts', import.meta.url));

/**
 * @param folder the folder for the menu. Without it, each task gets an empty folder, which is removed after the task.
 */
export function menuEditor(folder?: string) {
  return defineSubagent({
    name: 'menu_editor',
    title: ({ task }) => (typeof task === 'string' ? task : 'The menu'),
    instructions: 'Work in your folder only.',
    relay: acpRelay({
      command: process.execPath,
      args: [agent],
      name: 'the example agent',
      ...(folder !== undefined && { cwd: folder }),
    }),
    timeout: 300_000,
  });
}
