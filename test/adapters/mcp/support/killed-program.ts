// A program with a subagent on an MCP server's tool. The test kills the program: `node killed-program.ts <folder> <url>
// <protocol>`.

import { mcpRelay } from '../../../../src/adapters/mcp/index.ts';
import { liveOn } from '../../../support/relay-life.ts';

const [folder = '', url = '', protocol = ''] = process.argv.slice(2);

await liveOn({
  folder,
  relay: mcpRelay({
    url,
    tool: 'work',
    protocol: protocol === '2026-07-28' ? protocol : '2025-11-25',
    // A question that is not repeated is abandoned after this time.
    graceMs: 300,
  }),
  acts: [
    { progress: 'looking' },
    { permission: { title: 'Pay', kind: 'confirmation', input: { amount: 3 } } },
    { question: 'First question?' },
    { question: 'Second question?' },
    { permission: { title: 'Share', kind: 'confirmation', input: { with: 'all' } } },
    { say: 'Done.' },
  ],
  allowed: 'Pay',
});
