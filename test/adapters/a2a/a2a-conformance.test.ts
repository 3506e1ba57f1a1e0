// The A2A relay passes the relay suite with an agent on the official SDK.

import { describe, test } from 'vitest';
import { a2aRelay } from '../../../src/adapters/a2a/index.ts';
import { relayConformance, type RelayConformanceSetup } from '../../suites/relays/index.ts';
import { agentServer } from './support/agent-server.ts';

const setup: RelayConformanceSetup = {
  name: 'an A2A agent',
  shows: ['die', 'deaf', 'garbage'],
  graceMs: 5_000,
  patience: 1_000_000,
  open: async () => {
    const server = await agentServer();
    return {
      relay: a2aRelay({ url: server.url, startTimeoutMs: 3_600_000 }),
      running: () => server.streams(),
      close: () => server.close(),
    };
  },
};

describe('an agent that sends events', () => {
  test.each(relayConformance(setup))('$name', ({ run }) => run());
});
