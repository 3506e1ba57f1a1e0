// Example 23 with the real Claude Code and a local endpoint: a user asks Claude by voice for a fix, Claude
// asks a question, and the user cancels (CLAUDE-SESSION-1).

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { messagesEndpoint } from './support/messages-endpoint.ts';

const run = promisify(execFile);
const PROGRAM = new URL('../../examples/23-claude-by-voice.ts', import.meta.url).pathname;

test('fixes a file, asks a question and is cancelled, all by voice', async () => {
  const endpoint = await messagesEndpoint({
    acts: [
      {
        question: 'May add be renamed?',
        options: [
          { id: 'keep', label: 'Keep the name' },
          { id: 'rename', label: 'Rename it' },
        ],
      },
      { untilCancelled: true },
    ],
  });
  onTestFinished(() => endpoint.close());
  const { stdout } = await run(process.execPath, ['--conditions=offstage-source', PROGRAM], {
    env: {
      PATH: process.env['PATH'],
      ANTHROPIC_API_KEY: 'test',
      ANTHROPIC_BASE_URL: endpoint.url,
      CLAUDE_AGENT_SDK: import.meta.resolve('@anthropic-ai/claude-agent-sdk'),
    },
  });
  expect(stdout).toMatch(
    /^user \(by voice\): Please fix[^]*lead \(by voice\): May add be renamed\?[^]*user \(by voice\): Keep the name\.[^]*user \(by voice\): Cancel the fix, please\.[^]*the coder: cancelled\nadd\.js: export const add = \(a, b\) => a - b;\n$/,
  );
  expect(endpoint.prompts.size).toBe(1);
});
