// The MCP relay passes the relay suite with servers of both generations.

import { describe, test } from 'vitest';
import { mcpRelay } from '../../../src/adapters/mcp/index.ts';
import { relayConformance, type RelayConformanceSetup } from '../../suites/relays/index.ts';
import { actingServer } from './support/acting-server.ts';

const setupOf = (
  protocol: '2025-11-25' | '2026-07-28',
  shows: RelayConformanceSetup['shows'],
): RelayConformanceSetup => ({
  name: `a tool of an MCP server (${protocol})`,
  shows,
  graceMs: 10_000,
  patience: 100_000,
  pollMs: 20,
  open: async () => {
    const server = await actingServer({ protocol });
    return {
      relay: mcpRelay({
        url: server.url,
        tool: 'work',
        protocol,
        graceMs: 10_000,
        startTimeoutMs: 1_000_000_000,
      }),
      running: () => server.running(),
      close: () => server.close(),
    };
  },
});

describe('2025-11-25', () => {
  const cases = relayConformance(setupOf('2025-11-25', ['die', 'deaf', 'garbage']));
  test.each(cases)('$name', ({ run }) => run());
});

// A request without a stream has one answer; garbage instead of it counts as a lost connection.
describe('2026-07-28', () => {
  const cases = relayConformance(setupOf('2026-07-28', ['die', 'deaf']));
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run());
});
