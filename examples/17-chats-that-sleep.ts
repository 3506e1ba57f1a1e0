// Usage: npm run example examples/17-chats-that-sleep.ts
//
// Chats whose users take their time to answer. While a subagent is waiting for an answer, its session is unloaded to
// the journal. An answer wakes the session and reaches the subagent that asked. If a user never answers, the pool wakes
// the session at the question's deadline, and the question expires.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { createRuntime, defineSubagent, defineTool, TextSession, type TextPart } from 'offstage';
import { createSessionPool } from 'offstage/journal';
import { nodeEnvironment } from 'offstage/node';
import { sqliteJournal } from 'offstage/sqlite-journal';
import { readNotes, scriptedModel } from 'offstage/testing';

/** The user has three seconds to answer; in a real app it could be a week. */
const TIME_TO_ANSWER_MS = 3000;

const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));
const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'chats'), environment });
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });

const model = scriptedModel({
  scripts: [
    {
      when: 'You order flowers',
      // The model has no memory: it decides only from its input.
      script: ({ prompt, results: [answer] }) =>
        prompt.some(({ role }) => role === 'tool')
          ? { text: wordsOf(answer as { userResponse?: string }) }
          : { calls: [{ name: 'ask_user', input: { question: 'Roses or tulips?' } }] },
    },
  ],
  otherwise: ({ user, results }) => {
    if (results.length > 0) return { text: 'One moment.' };
    const result = readNotes(user)[0]?.text;
    return result === undefined
      ? { calls: [{ name: 'order', input: {} }] }
      : { text: `Done: ${result}.` };
  },
});

function wordsOf({ userResponse }: { userResponse?: string }): string {
  return userResponse === undefined ? 'nothing, since nobody answered' : `${userResponse} ordered`;
}

const order = defineTool({
  name: 'order',
  description: 'Orders flowers',
  parameters: z.object({}),
  execution: 'background',
  pendingMessage: 'On it.',
});

/** Opens the session with this id for the pool. A session that is already in the journal resumes. */
function open(sessionId: string): TextSession {
  const session = new TextSession({
    sessionId,
    runtime,
    model,
    agents: [{ name: 'florist', instructions: 'You talk to the user.', tools: [order] }],
    subagentConfigs: {
      order: defineSubagent({
        name: 'order',
        instructions: 'You order flowers.',
        interactive: true,
        inputTimeout: TIME_TO_ANSWER_MS,
      }),
    },
  });
  session.parts.subscribe((part) => said(sessionId, part));
  return session;
}

const asked = new Map<string, string>();
const done = new Set<string>();
function said(chat: string, part: TextPart): void {
  if (part.type === 'question.asked') {
    console.log(`${chat}: ${part.question}`);
    asked.set(chat, part.requestId);
  } else if (part.type === 'text.done' && part.deliveryId !== null) {
    console.log(`${chat}: ${part.text}`);
    done.add(chat);
  }
}

const chats = createSessionPool({ runtime, open, idleMs: 20 });
await chats.start();
for (const chat of ['ada', 'bob', 'cleo'])
  await chats.use(chat, (session) => session.sendText('Flowers, please'));
await until(() => asked.size === 3 && chats.awakeCount === 0);
console.log('— three wait for an answer, none is in memory —');

await chats.use('bob', (session) => session.answer(asked.get('bob') ?? '', { text: 'tulips' }));
await until(() => done.size === 3 && chats.awakeCount === 0);
await chats.close();
journal.close();
rmSync(folder, { recursive: true });

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => void setTimeout(resolve, 5));
}
