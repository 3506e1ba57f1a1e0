// The table in docs/relays.md matches the capabilities that the relays declare.

import { readFileSync } from 'node:fs';
import { ToolLoopAgent } from 'ai';
import { expect, test } from 'vitest';
import { a2aRelay } from '../../src/adapters/a2a/index.ts';
import { acpRelay } from '../../src/adapters/acp/index.ts';
import { claudeRelay, type ClaudeQuery } from '../../src/adapters/claude/index.ts';
import { mcpRelay } from '../../src/adapters/mcp/index.ts';
import { agentRelay, type Relay } from '../../src/entries/subagents.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const url = 'https://agents.example.com';
const query: ClaudeQuery = () => {
  throw new Error('A table needs no Claude');
};
const relays: Readonly<Record<string, Relay>> = {
  '`acpRelay`': acpRelay({ command: 'an-agent' }),
  '`claudeRelay`': claudeRelay({ query }),
  '`mcpRelay`, 2025-11-25': mcpRelay({ url, tool: 'go' }),
  '`mcpRelay`, 2026-07-28': mcpRelay({ url, tool: 'go', protocol: '2026-07-28' }),
  '`a2aRelay`': a2aRelay({ url }),
  '`agentRelay`': agentRelay(new ToolLoopAgent({ model: scriptedModel({}) })),
};
const COLUMNS = ['openQuestionSurvives', 'resumes', 'steers', 'reportsTools'] as const;

test('lists the capabilities of each relay in docs/relays.md', () => {
  const page = readFileSync(new URL('../../docs/relays.md', import.meta.url), 'utf8');
  const [, written = ''] = /^\| relay \|.*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = Object.entries(relays).map(([name, { capabilities }]) => {
    const cells = COLUMNS.map((column) => (capabilities[column] ? 'yes' : 'no'));
    return `| ${[name, ...cells].join(' | ')} |\n`;
  });
  expect(written).toBe(rows.join(''));
});
