// Usage: npm run example examples/23-claude-by-voice.ts
//
// Claude Code by voice: the user asks for a fix, Claude asks a question, and the user cancels the work, all by speech.
// Claude works in a temporary folder. The program needs an Anthropic key (ANTHROPIC_API_KEY) and the Claude Agent SDK
// (`npm install @anthropic-ai/claude-agent-sdk`). If one is missing, it prints which. `CLAUDE_AGENT_SDK` names another
// location of the SDK.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claudeRelay, type ClaudeQuery } from 'offstage/claude';
import { spokenCoder } from './spoken-coder.ts';

const { ANTHROPIC_API_KEY = '', ANTHROPIC_BASE_URL, CLAUDE_AGENT_SDK } = process.env;
const sdk = CLAUDE_AGENT_SDK ?? '@anthropic-ai/claude-agent-sdk';
const query = await import(sdk).then(
  (loaded: { readonly query: ClaudeQuery }) => loaded.query,
  () => null,
);
const missing = [
  ...(ANTHROPIC_API_KEY === '' ? ['a key of Anthropic: set ANTHROPIC_API_KEY'] : []),
  ...(query ? [] : ['the Claude Agent SDK: npm install @anthropic-ai/claude-agent-sdk']),
];

if (!query || missing.length > 0) {
  console.log(`CLAUDE IS NOT ASKED ANYTHING. This program lacks\n- ${missing.join('\n- ')}`);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));
  const code = join(folder, 'add.js');
  writeFileSync(code, 'export const add = (a, b) => a - b;\n');
  const { promise: isAnswered, resolve: answered } = Promise.withResolvers<void>();

  const { session, say, close } = await spokenCoder({
    relay: claudeRelay({
      query,
      cwd: folder,
      env: { ANTHROPIC_API_KEY, ...(ANTHROPIC_BASE_URL ? { ANTHROPIC_BASE_URL } : {}) },
    }),
    instructions:
      'Before you change a file, ask the user with AskUserQuestion whether `add` may be renamed. Then fix what the task says.',
    answer: ({ kind }) => {
      if (kind !== 'question') return 'No.';
      answered();
      return 'Keep the name.';
    },
    log: console.log,
  });
  await say('Please fix the sum in add.js.');
  await isAnswered;
  // The answer is in the journal, and Claude continues with it.
  await new Promise<void>((resolve) => {
    session.store.subscribe(({ context: { questions } }) => {
      if (questions.some(({ state }) => state === 'answered')) resolve();
    });
  });
  await say('Cancel the fix, please.');
  await session.idle();
  const [{ state } = { state: 'none' }] = session.subagents.list();
  console.log(`the coder: ${state}`);
  console.log(`add.js: ${readFileSync(code, 'utf8').trim()}`);
  await close();
  rmSync(folder, { recursive: true });
}
