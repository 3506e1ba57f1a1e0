// The ACP relay passes the relay suite with an agent process on the official SDK.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { acpRelay } from '../../../src/adapters/acp/index.ts';
import { relayConformance, type RelayConformanceSetup } from '../../suites/relays/index.ts';
import { AGENT } from './support/agent-path.ts';

const setupOf = (env: Record<string, string> = {}): RelayConformanceSetup => ({
  name: 'an ACP agent',
  shows: ['die', 'deaf', 'garbage'],
  graceMs: 5_000,
  patience: 5_000_000,
  open: () => {
    const root = mkdtempSync(join(tmpdir(), 'offstage-test-acp-'));
    const stateFolder = join(root, 'processes');
    mkdirSync(stateFolder);
    return {
      relay: acpRelay({
        command: process.execPath,
        args: [AGENT],
        cwd: root,
        env: { STATE: root, ...env },
        stateFolder,
        startTimeoutMs: 3_600_000,
      }),
      running: () => readdirSync(stateFolder).length,
      close: () => rmSync(root, { recursive: true, force: true }),
    };
  },
});

describe('an agent that resumes', () => {
  test.each(relayConformance(setupOf()))('$name', ({ run }) => run());
});

describe('an agent that only loads', () => {
  const loading = relayConformance(setupOf({ LOADS: '1' })).filter(({ name }) =>
    name.includes('resume'),
  );
  test.each(loading)('$name', ({ run }) => run());
});
