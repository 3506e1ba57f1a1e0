// A stage with the real Claude Code, which runs in its own folder and talks only to a local endpoint.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { claudeRelay, type ClaudeQuery } from '../../../src/adapters/claude/index.ts';
import type { Relay, RelayEvent } from '../../../src/entries/subagents.ts';
import { messagesEndpoint } from './messages-endpoint.ts';

const SERVER = fileURLToPath(new URL('stage-server.mjs', import.meta.url));

/** `log`: the file in which its tools record their actions. */
export function stageRelay(
  query: ClaudeQuery,
  url: string,
  stateFolder: string,
  log?: string,
): Relay {
  return claudeRelay({
    query,
    stateFolder,
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'test',
      IS_SANDBOX: '1',
      ENABLE_TOOL_SEARCH: 'false',
    },
    unasked: ['run', 'fail', 'hang', 'die'].map((name) => `mcp__stage__${name}`),
    options: {
      model: 'claude-sonnet-5',
      mcpServers: {
        stage: { command: process.execPath, args: [SERVER, ...(log === undefined ? [] : [log])] },
      },
    },
  });
}

/** Gives the tools the names that the suite's acts use; Claude's own tools cannot have such names. */
export function titledAsActs(relay: Relay): Relay {
  return {
    ...relay,
    start: (start) =>
      relay.start({
        ...start,
        receive: (event: RelayEvent) =>
          start.receive('title' in event ? { ...event, title: 'Edit notes.txt' } : event),
      }),
  };
}

export async function claudeStage(query: ClaudeQuery) {
  const endpoint = await messagesEndpoint();
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-claude-'));
  mkdirSync(join(folder, 'processes'));
  const relay = stageRelay(query, endpoint.url, folder);
  return {
    relay: titledAsActs(relay),
    endpoint,
    folder,
    running: () => readdirSync(join(folder, 'processes')).length,
    close: () => {
      endpoint.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
