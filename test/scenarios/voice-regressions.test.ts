// Faults that were found in the demo in a real browser, each as the smallest conversation that shows it.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { SubagentConfig } from '../../src/index.ts';
import { rideByVoice, rideConfig } from '../support/ride.ts';

async function conversation(ride: SubagentConfig = rideConfig) {
  const asked: string[] = [];
  const opened = await rideByVoice({ onQuestion: ({ requestId }) => asked.push(requestId) }, ride);
  const { environment, model, play } = opened;
  const book = async (...callIds: readonly string[]): Promise<void> => {
    model().utterance('book me a ride to the airport');
    await environment.settle();
    model().call(
      ...callIds.map((callId, index) => ({
        callId,
        name: 'book_ride',
        // With the same place, it would be the same work.
        arguments: JSON.stringify({ destination: index === 0 ? 'airport' : 'station' }),
      })),
    );
    await environment.settle();
    await play(model().speak('I am on it.'));
    await environment.advance(400);
  };
  return { ...opened, asked, book };
}

describe('faults found in the browser', () => {
  // Two subagents asked at the same time. The screen showed only the active question, so a queued question appeared
  // only when its turn came.
  test('P2: shows a waiting question as queued', async () => {
    const { book, state, asked, model, play, environment } = await conversation();
    await book('call_1', 'call_2');
    expect(state().questions.map(({ state: at }) => at)).toEqual(['presenting', 'queued']);
    expect(asked).toEqual(state().questions.map(({ requestId }) => requestId));
    await play(model().speak('Economy or Premium?'));
    model().utterance('economy');
    await environment.settle();
    expect(state().questions.map(({ state: at }) => at)).toEqual(['answered', 'presenting']);
  });

  // A line for the activity on the card of a working subagent stayed empty, because values that a tool yields before
  // its result were dropped.
  test("shows a tool's progress only while the tool is running", async () => {
    let find: () => void = () => undefined;
    const found = new Promise<void>((resolve) => {
      find = resolve;
    });
    const { book, state, environment } = await conversation({
      ...rideConfig,
      tools: {
        ...rideConfig.tools,
        get_ride_options: tool({
          description: 'Get available ride options',
          inputSchema: z.object({ destination: z.string() }),
          async *execute() {
            yield { progress: 'Asking drivers near you' };
            await found;
            yield [{ id: 'economy', name: 'Economy' }];
          },
        }),
      },
    });
    await book('call_1');
    expect(state().subagents[0]).toMatchObject({
      state: 'running',
      progress: 'Asking drivers near you',
    });
    find();
    await environment.settle();
    expect(state().subagents[0]).toMatchObject({ state: 'waiting_for_input', progress: null });
  });

  // The connection was lost on a wire that ends a transcript only with its turn. The words that had been heard stayed
  // grey on the screen, as if they were still being spoken, and no subagent received them.
  test('ends a reply in progress when the connection is lost', async () => {
    const { environment, model, state, play } = await conversation();
    model().utterance('hello');
    await environment.settle();
    const { itemId, responseId } = model().begin('', 1000);
    const event = { type: 'assistant.transcribed', itemId, responseId, final: false } as const;
    model().events.next({ ...event, text: 'Hello to you.' });
    await play(itemId);
    expect(state().transcript.at(-1)).toMatchObject({ text: 'Hello to you.', final: false });
    model().drop();
    await environment.settle();
    expect(state().transcript.at(-1)).toMatchObject({ text: 'Hello to you.', final: true });
  });
});
