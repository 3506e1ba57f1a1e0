// For any events between the pieces of an answer, the lead model owes an answer to the last message that it reads, and
// each message from the user is answered once.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, TextSession } from '../../../../src/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import { providerRefusals } from '../../../../src/testing/doubles/provider-rules.ts';
import { handModel, type HandAnswer } from '../../../support/hand-model.ts';

type Prompt = HandAnswer['asked']['prompt'];

const textOf = (message: Prompt[number]): string =>
  typeof message.content === 'string'
    ? message.content
    : message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');

/** Returns the user's messages that no assistant message follows. */
function owedIn(prompt: Prompt): readonly string[] {
  const answered = prompt.findLastIndex(
    (message) => message.role === 'assistant' && textOf(message) !== '',
  );
  return prompt.slice(answered + 1).flatMap((message) => {
    const words = message.role === 'user' ? textOf(message) : '';
    return /^word \d+$/.test(words) ? [words] : [];
  });
}

/** The next event: a message from the user, a notice, or the next piece of the current answer. */
const happening = fc.constantFrom(
  'words',
  'words',
  'notice',
  'say',
  'say',
  'call',
  'fast call',
  'finish',
  'finish',
  'time',
  'at once',
);

async function talk(script: readonly string[], greeting: boolean) {
  const environment = simulatedEnvironment();
  const { model, answers } = handModel();
  const session = new TextSession({
    environment,
    model,
    agents: [
      {
        name: 'lead',
        instructions: 'Answer.',
        ...(greeting && { greeting: 'Greet the user.' }),
        tools: [
          defineTool({
            name: 'look',
            description: 'Looks',
            parameters: z.looseObject({}),
            execute: () => 'seen',
          }),
          defineTool({
            name: 'wait',
            description: 'Waits',
            parameters: z.looseObject({}),
            execute: () =>
              new Promise(
                (resolve) => void environment.scheduler.schedule(() => resolve('seen'), 50),
              ),
          }),
        ],
      },
    ],
  });
  session.parts.subscribe();
  await session.start();
  const words: string[] = [];
  const said: string[] = [];
  const over = new Set<HandAnswer>();
  const spoken = new Set<HandAnswer>();
  /** The answers that contain a call and continue after its result. */
  const called = new Set<HandAnswer>();
  const current = () => answers.findLast((answer) => !over.has(answer));
  const sayIn = (answer: HandAnswer): void => {
    if (spoken.has(answer)) return answer.text(' and so on');
    if (called.has(answer)) return undefined;
    spoken.add(answer);
    said.push(...owedIn(answer.asked.prompt));
    return answer.text(`Answer ${answers.length}`);
  };
  const play = (what: string): void => {
    const answer = current();
    if (what === 'words') {
      words.push(`word ${words.length}`);
      void session.sendText(words.at(-1)!);
    } else if (what === 'notice') session.notifyBackground(`News after ${words.length}`);
    else if (answer && what === 'say') sayIn(answer);
    else if (answer && (what === 'call' || what === 'fast call') && !spoken.has(answer)) {
      if (answer.asked.toolChoice?.type === 'none') return;
      called.add(answer);
      answer.call(what === 'call' ? 'wait' : 'look');
    } else if (answer && what === 'finish') {
      if (!called.has(answer) && !spoken.has(answer)) sayIn(answer);
      over.add(answer);
      answer.finish();
    }
  };
  for (const what of script) {
    play(what);
    if (what === 'time') await environment.advance(20);
    else if (what !== 'at once') await environment.settle();
  }
  for (let rest = 0; rest < 40; rest += 1) {
    await environment.advance(2000);
    play('finish');
  }
  await environment.advance(2000);
  await session.close();
  return { answers, words, said };
}

test('answers each user message once, in a reply that follows the last message that the model read', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(happening, { maxLength: 24 }),
      fc.boolean(),
      async (script, greeting) => {
        const { answers, words, said } = await talk(script, greeting);
        expect(said).toEqual(words);
        for (const { asked } of answers) {
          const { prompt } = asked;
          expect(
            providerRefusals({ prompt }, ['anthropic', 'openai-chat', 'openai-responses']),
          ).toEqual([]);
        }
      },
    ),
    { numRuns: 150 },
  );
});
