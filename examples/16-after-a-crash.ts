// Usage: npm run example examples/16-after-a-crash.ts
//
// A process is killed while a subagent is waiting for the user. The next process resumes the session from the same
// journal under the same id. The question is asked again under its old id, finished work is not repeated, and the
// answer reaches the subagent that asked.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { nodeEnvironment } from 'offstage/node';
import { sqliteJournal } from 'offstage/sqlite-journal';
import { readNotes, scriptedModel } from 'offstage/testing';

const [folder] = process.argv.slice(2);
if (folder === undefined) await watch();
else await live(folder);

/** The outer process: starts the program, kills it while a question is open, and starts it again. */
async function watch(): Promise<void> {
  const shared = mkdtempSync(join(tmpdir(), 'offstage-example-'));
  try {
    for (const name of ['first', 'second']) {
      const child = spawn(
        process.execPath,
        [...process.execArgv, fileURLToPath(import.meta.url), shared],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      );
      for await (const line of createInterface(child.stdout)) {
        console.log(`${name} process: ${line}`);
        if (name === 'first' && line.includes('asks')) {
          console.log('— SIGKILL —');
          child.kill('SIGKILL');
        }
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
    console.log(`charged: ${readFileSync(join(shared, 'charges'), 'utf8').trim()}`);
  } finally {
    rmSync(shared, { recursive: true });
  }
}

/** The inner program, which is the same in both processes. */
async function live(shared: string): Promise<void> {
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path: join(shared, 'journal'), environment });
  const session = new TextSession({
    // A session whose id is in the journal resumes.
    sessionId: 'ses_of_ada',
    journal,
    environment,
    model: scriptedModel({
      scripts: [
        {
          when: 'You book rides',
          // A model without memory: it decides only from its input.
          script: ({ prompt, results: [latest] }) => {
            const done = prompt.filter(({ role }) => role === 'tool').length;
            if (done === 0) return { calls: [{ name: 'charge_deposit', input: {} }] };
            if (done === 1)
              return { calls: [{ name: 'ask_user', input: { question: 'Window or aisle?' } }] };
            return { text: `Booked: ${(latest as { userResponse: string }).userResponse}` };
          },
        },
      ],
      otherwise: ({ user, results }) => {
        if (results.length > 0) return { text: 'I am on it.' };
        const result = readNotes(user)[0]?.text;
        return result === undefined
          ? { calls: [{ name: 'book_ride', input: {} }] }
          : { text: `Done. ${result}.` };
      },
    }),
    agents: [
      {
        name: 'lead',
        instructions: 'You talk to the user.',
        tools: [
          defineTool({
            name: 'book_ride',
            description: 'Books a ride',
            parameters: z.object({}),
            execution: 'background',
            pendingMessage: 'On it.',
          }),
        ],
      },
    ],
    subagentConfigs: {
      book_ride: defineSubagent({
        name: 'ride_booker',
        instructions: 'You book rides.',
        interactive: true,
        tools: {
          charge_deposit: {
            description: 'Charges the deposit',
            inputSchema: z.object({}),
            execute: (_: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
              appendFileSync(join(shared, 'charges'), `${idempotencyKey}\n`);
              return { charged: true };
            },
          },
        },
      }),
    },
  });
  session.parts.subscribe((part) => {
    if (part.type === 'question.asked') {
      console.log(`${part.subagentName} asks: ${part.question}`);
      // The first process is killed before the user can answer.
      if (isAgain) void session.answer(part.requestId, { text: 'window' });
    } else if (part.type === 'text.done') console.log(`lead: ${part.text}`);
  });
  let isAgain = false;
  session.events.subscribe((event) => {
    if (event.type !== 'session.recovered') return;
    isAgain = true;
    console.log(`goes on after ${event.entries} entries`);
  });
  await session.start();
  if (!isAgain) await session.sendText('a ride, please');
  await session.nextResult();
  await session.close();
  journal.close();
}
