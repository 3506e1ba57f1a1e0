// A relay to the real Claude Code behind the Agent Client Protocol. It runs in its own folder and talks only to a local
// endpoint.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { acpRelay, type AcpRelayOptions } from '../../../src/adapters/acp/index.ts';
import type { Relay } from '../../../src/entries/subagents.ts';

const CLAUDE_ACP = fileURLToPath(
  new URL('../node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js', import.meta.url),
);
const SERVER = fileURLToPath(new URL('stage-server.mjs', import.meta.url));

/** The stage's tools that run without a permission. */
const UNASKED = ['run', 'fail', 'hang', 'die'].map((name) => `mcp__stage__${name}`);

/** `folder`: for its home, its work and its marks. `log`: the file in which its tools record their actions. */
export function claudeAcpRelay(
  folder: string,
  url: string,
  log: string,
  options: Partial<AcpRelayOptions> = {},
): Relay {
  const home = join(folder, 'home');
  const cwd = join(folder, 'work');
  const settings = join(home, '.claude');
  for (const path of [settings, cwd]) mkdirSync(path, { recursive: true });
  writeFileSync(
    join(settings, 'settings.json'),
    JSON.stringify({ permissions: { allow: UNASKED } }),
  );
  return acpRelay({
    name: 'Claude',
    command: process.execPath,
    args: [CLAUDE_ACP],
    cwd,
    stateFolder: join(folder, 'processes'),
    mcpServers: [{ name: 'stage', command: process.execPath, args: [SERVER, log], env: [] }],
    configOptions: { mode: 'default' },
    env: {
      HOME: home,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'test',
      ENABLE_TOOL_SEARCH: 'false',
      IS_SANDBOX: '1',
    },
    ...options,
  });
}
