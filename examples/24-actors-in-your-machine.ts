// Usage: npm run example examples/24-actors-in-your-machine.ts
//
// An app's machine invokes two subagents in parallel. One completes, the other asks a question, and the process is
// killed. The next process restores the machine from the stored snapshot. The subagent that asked resumes from its
// journal, finished work is not repeated, `sendTo` answers the question, and the machine completes with both outcomes.

import { spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tool } from 'ai';
import { assign, createActor, sendTo, setup } from 'xstate';
import { z } from 'zod';
import { createRuntime, defineSubagent } from 'offstage';
import { type SubagentActorSnapshot, subagentLogic } from 'offstage/subagents';
import { sqliteJournal } from 'offstage/sqlite-journal';
import { nodeEnvironment } from 'offstage/node';
import { scriptedModel } from 'offstage/testing';

const [folder] = process.argv.slice(2);
if (folder === undefined) await watch();
else await live(folder);

/** The outer process: starts the program, kills it while a subagent is waiting for an answer, and starts it again. */
async function watch(): Promise<void> {
  const shared = mkdtempSync(join(tmpdir(), 'offstage-example-'));
  try {
    for (const name of ['first', 'second']) {
      const program = [...process.execArgv, fileURLToPath(import.meta.url), shared];
      const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] });
      const seen: string[] = [];
      for await (const line of createInterface(child.stdout)) {
        console.log(`${name} process: ${line}`);
        if (name === 'first' && seen.push(line) === 2) {
          console.log('— SIGKILL —');
          child.kill('SIGKILL');
        }
      }
    }
    console.log(`charged: ${readFileSync(join(shared, 'charges'), 'utf8').trim()}`);
  } finally {
    rmSync(shared, { recursive: true });
  }
}

/** The inner program, which is the same in both processes. */
async function live(shared: string): Promise<void> {
  const environment = nodeEnvironment();
  const runtime = createRuntime({
    environment,
    journal: sqliteJournal({ path: join(shared, 'journal'), environment }),
  });
  const stored = join(shared, 'trip.json');
  const isFirst = !existsSync(stored);
  /** A question stays in the snapshot until it is answered. */
  const asked = new Set<string>();

  const booker = defineSubagent({
    name: 'booker',
    instructions: 'You book one part of a trip.',
    interactive: true,
    model: scriptedModel({
      // A model without memory: it decides only from its input.
      otherwise({ prompt, user, results: [latest] }) {
        const done = prompt.filter(({ role }) => role === 'tool').length;
        if (done === 0) return { calls: [{ name: 'charge_deposit', input: {} }] };
        if (user.includes('hotel')) return { text: 'The hotel is booked' };
        if (done === 1)
          return { calls: [{ name: 'ask_user', input: { question: 'Window or aisle?' } }] };
        return { text: `A seat at the ${(latest as { userResponse: string }).userResponse}` };
      },
    }),
    tools: {
      charge_deposit: tool({
        description: 'Charges the deposit',
        inputSchema: z.object({}),
        execute: () => appendFileSync(join(shared, 'charges'), 'a deposit, '),
      }),
    },
  });

  const trip = setup({
    types: { context: {} as { readonly booked: readonly string[] } },
    actors: { booker: subagentLogic(booker, { runtime }) },
    guards: {
      asks: (_, { context: { questions } }: SubagentActorSnapshot) =>
        questions.some(({ requestId }) => !asked.has(requestId)),
    },
    actions: {
      show(_, { context: { id, questions } }: SubagentActorSnapshot) {
        for (const { requestId, question } of questions) {
          asked.add(requestId);
          console.log(`${id} asks: ${question}`);
        }
      },
      answer: sendTo('flight', (_, { context }: SubagentActorSnapshot) => ({
        type: 'answer',
        requestId: context.questions[0]?.requestId ?? '',
        answer: { text: 'window' },
      })),
      book: assign({
        booked: ({ context }, { text }: { text: string }) => [...context.booked, text],
      }),
    },
  }).createMachine({
    id: 'trip',
    context: { booked: [] },
    type: 'parallel',
    states: {
      flight: {
        initial: 'booking',
        states: {
          booking: {
            invoke: {
              src: 'booker',
              id: 'flight',
              input: { id: 'trip-1/flight', task: 'Book the flight to Lisbon' },
              onSnapshot: {
                guard: { type: 'asks', params: ({ event }) => event.snapshot },
                // The user of the first process disappears before answering.
                actions: (isFirst ? (['show'] as const) : (['show', 'answer'] as const)).map(
                  (type) => ({ type, params: ({ event }) => event.snapshot }),
                ),
              },
              onDone: {
                target: 'booked',
                actions: { type: 'book', params: ({ event }) => event.output },
              },
            },
          },
          booked: { type: 'final' },
        },
      },
      hotel: {
        initial: 'booking',
        states: {
          booking: {
            invoke: {
              src: 'booker',
              id: 'hotel',
              input: { id: 'trip-1/hotel', task: 'Book the hotel in Lisbon' },
              onDone: {
                target: 'booked',
                actions: { type: 'book', params: ({ event }) => event.output },
              },
            },
          },
          booked: { type: 'final' },
        },
      },
    },
    output: ({ context }) => context.booked,
  });

  const snapshot = isFirst ? undefined : JSON.parse(readFileSync(stored, 'utf8'));
  const actor = createActor(trip, { snapshot });
  let { length: shown } = actor.getSnapshot().context.booked;
  actor.subscribe(({ context: { booked } }) => {
    // The write is atomic, because the process may be killed at any time.
    writeFileSync(`${stored}.new`, JSON.stringify(actor.getPersistedSnapshot()));
    renameSync(`${stored}.new`, stored);
    for (const text of booked.slice(shown)) console.log(`booked: ${text}`);
    shown = booked.length;
  });
  actor.start();
}
