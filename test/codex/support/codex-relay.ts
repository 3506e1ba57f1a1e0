// A relay to the real Codex, which runs in its own folder and talks only to a local endpoint.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { acpRelay } from '../../../src/adapters/acp/index.ts';
import type { Relay } from '../../../src/entries/subagents.ts';

const CODEX_ACP = fileURLToPath(
  new URL('../node_modules/@agentclientprotocol/codex-acp/dist/index.js', import.meta.url),
);

/** `folder`: for its home, its work and its marks. */
export function codexRelay(folder: string, url: string): Relay {
  const home = join(folder, 'home');
  const codexHome = join(home, '.codex');
  const cwd = join(folder, 'work');
  for (const path of [codexHome, cwd]) mkdirSync(path, { recursive: true });
  return acpRelay({
    name: 'Codex',
    command: process.execPath,
    args: [CODEX_ACP],
    cwd,
    stateFolder: join(folder, 'processes'),
    env: {
      HOME: home,
      CODEX_HOME: codexHome,
      FAKE_KEY: 'test',
      NO_BROWSER: '1',
      MODEL_PROVIDER: 'local',
      INITIAL_AGENT_MODE: 'workspace-write',
      CODEX_CONFIG: JSON.stringify({
        model: 'local-model',
        model_provider: 'local',
        approval_policy: 'on-request',
        model_providers: {
          local: { name: 'local', base_url: url, wire_api: 'responses', env_key: 'FAKE_KEY' },
        },
      }),
    },
  });
}
