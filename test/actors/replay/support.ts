// A conversation that has been played, for use in replays.

import { z } from 'zod';
import { replaySession, type ReplayStep } from '../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { defineTool, createSubAgentTool } from '../../../src/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { castOf, configOf, type TalkOptions } from '../../support/text-talk.ts';

/** A ride that needs a helper and a question, and an inline tool. */
export function rideStory(): TalkOptions {
  const helperScript = turns(calls(['look', {}, 'l1']), say('{"found": "a map"}'));
  const model = castOf({ subagents: { helper: { script: helperScript } } });
  const helper = createSubAgentTool(
    {
      ...configOf('helper'),
      model,
      tools: { look: simpleTool(() => ({ found: 'a map' })) },
      outputSchema: z.object({ found: z.string() }),
    },
    z.object({}),
  );
  return {
    tools: [
      defineTool({
        name: 'weather',
        description: 'Looks at the sky',
        parameters: z.object({}),
        execute: () => ({ sky: 'blue' }),
      }),
    ],
    subagents: {
      ride: {
        script: turns(
          calls(['helper', {}, 'r1']),
          calls(['ask_user', { question: 'Which class?' }, 'r2']),
          ({ results }) => say(`Ride booked: ${JSON.stringify(results.at(-1))}`),
        ),
        config: { interactive: true, tools: { helper } },
      },
    },
  };
}

/** Plays until the user is asked for the class. */
export async function inMidQuestion(of: World = world()) {
  const talk = textLife(of, rideStory());
  await talk.start();
  await talk.session.sendText('use ride and weather');
  await of.environment.settle();
  await of.environment.advance(1000);
  const question = talk.state().questions.find(({ state }) => state === 'open');
  if (!question) throw new Error('Expected an open question');
  return { of, talk, question };
}

export async function wholeRide() {
  const { of, talk, question } = await inMidQuestion();
  const after = of.entries.length;
  await talk.session.answer(question.requestId, { text: 'comfort' });
  await of.environment.settle();
  await of.environment.advance(5000);
  return { of, talk, question, after };
}

/** Returns the step for the last entry. */
export function replayed(entries: Iterable<JournalEntry>): ReplayStep {
  let last: ReplayStep | undefined;
  for (const step of replaySession(entries)) last = step;
  if (!last) throw new Error('Expected entries');
  return last;
}
