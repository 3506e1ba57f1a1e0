// Usage: npm run example examples/02-two-questions.ts
//
// Two subagents ask the user at the same time. The questions are asked one at a time, in order. Each answer, typed or
// given with a button, reaches the subagent that asked.

import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { readNotes, scriptedModel, type Script } from 'offstage/testing';

const tools = ['book_ride', 'order_lunch'].map((name) =>
  defineTool({
    name,
    description: name.replace('_', ' '),
    parameters: z.object({}),
    execution: 'background',
    pendingMessage: 'On it.',
  }),
);

/** Asks one question and reports the answer. */
const asks =
  (question: string, labels: readonly string[]): Script =>
  ({ results: [given] }) =>
    given === undefined
      ? {
          calls: [
            {
              name: 'ask_user',
              input: { question, options: labels.map((label) => ({ id: label, label })) },
            },
          ],
        }
      : { text: `${question} You chose ${(given as { userResponse: string }).userResponse}.` };

const model = scriptedModel({
  scripts: [
    { when: 'You book rides', script: asks('Economy or Premium?', ['Economy', 'Premium']) },
    { when: 'You order lunch', script: asks('Soup or salad?', ['Soup', 'Salad']) },
  ],
  otherwise: ({ user, results }) => {
    if (results.length > 0) return { text: 'I am on both.' };
    const result = readNotes(user)[0]?.text;
    if (result !== undefined) return { text: `Done. ${result}` };
    return {
      calls: [
        { name: 'book_ride', input: {} },
        { name: 'order_lunch', input: {} },
      ],
    };
  },
});

const session = new TextSession({
  model,
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools }],
  // Each result is reported separately, even if both are ready.
  consolidation: 'off',
  subagentConfigs: {
    book_ride: defineSubagent({
      name: 'ride_booker',
      instructions: 'You book rides.',
      interactive: true,
    }),
    order_lunch: defineSubagent({
      name: 'lunch_orderer',
      instructions: 'You order lunch.',
      interactive: true,
    }),
  },
});

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
  else if (part.type === 'question.asked') {
    console.log(`${part.subagentName} asks: ${part.question}`);
    void answer(part.requestId, part.subagentName);
  }
});

/** The user answers the ride question in words and the lunch question with a button. */
async function answer(requestId: string, subagentName: string): Promise<void> {
  if (subagentName === 'ride_booker') {
    console.log('user: economy, please');
    await session.sendText('economy, please');
    return;
  }
  const receipt = await session.answer(requestId, { optionId: 'Salad' });
  console.log(`user clicks Salad: ${JSON.stringify(receipt)}`);
}

await session.start();
console.log('user: a ride and some lunch, please');
await session.sendText('a ride and some lunch, please');
await session.nextResult();
await session.nextResult();
await session.close();
