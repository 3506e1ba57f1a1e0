// A conversation with a subagent that asks a question and needs an approval, and whose result is delivered later.

import { z } from 'zod';
import type { Journal, JournalEntry } from '../../../../src/actors/ports/journal.ts';
import {
  defineSubagent,
  defineTool,
  memoryJournal,
  TextSession,
  type Environment,
  type Price,
} from '../../../../src/index.ts';
import { readNotes, scriptedModel } from '../../../../src/testing/index.ts';

/** A journal that keeps its entries for the process that runs after a crash. */
export function storeOf(earlier: readonly JournalEntry[] = []) {
  const inner = memoryJournal();
  for (const each of earlier) inner.append(each);
  const kept = [...earlier];
  const journal: Journal = {
    append(appended) {
      kept.push(appended);
      return inner.append(appended);
    },
    read: (query) => inner.read(query),
  };
  return { journal, kept };
}

interface Story {
  readonly journal: Journal;
  /** The subagent's model never answers its second step. */
  readonly hangs?: () => void;
  readonly price?: Price;
  readonly environment?: Environment;
  /** Called before the user answers a question. */
  readonly thinks?: () => Promise<void>;
}

/** Plays a ride: the subagent asks, charges a card after approval, and its result is delivered. */
export function ride({ journal, hangs, thinks, ...options }: Story) {
  const session = new TextSession({
    ...options,
    sessionId: 'ses_ride',
    journal,
    model: scriptedModel({
      scripts: [
        {
          when: 'You book rides',
          script: ({ prompt }) => {
            const done = prompt.filter(({ role }) => role === 'tool').length;
            if (done === 0)
              return { calls: [{ name: 'ask_user', input: { question: 'Window or aisle?' } }] };
            if (hangs) {
              hangs();
              return new Promise<never>(() => {});
            }
            const isCharged = JSON.stringify(prompt).includes('charged');
            return isCharged ? { text: 'Booked' } : { calls: [{ name: 'charge', input: {} }] };
          },
        },
      ],
      otherwise: ({ user, results }) => {
        if (results.length > 0) return { text: 'On it.' };
        return readNotes(user).length === 0
          ? { calls: [{ name: 'book_ride', input: {} }] }
          : { text: 'Your ride is booked.' };
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
          charge: {
            description: 'Charges the deposit',
            inputSchema: z.object({}),
            needsApproval: true,
            execute: () => ({ receipt: 'charged' }),
          },
        },
      }),
    },
  });
  session.parts.subscribe((part) => {
    if (part.type !== 'question.asked') return;
    const answer = part.options.length > 0 ? { optionId: 'approve' } : { text: 'window' };
    void (async () => {
      await thinks?.();
      await session.answer(part.requestId, answer);
    })();
  });
  return session;
}
