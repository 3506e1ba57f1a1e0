// Two subagents want the user at the same time: one asks, the other stands in line, and each
// gets its own answer.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildTheatre, troubles, type Stage, type Theatre } from './support/stage.ts';

let theatre: Theatre;
let stage: Stage;

beforeAll(async () => {
  theatre = await buildTheatre();
});
afterEach(() => stage.close());
afterAll(() => theatre.close());

describe('two at once', () => {
  test('P2, P3: first come, first served; each answer reaches the one who asked', async () => {
    stage = await theatre.open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.untilSpeaker('sounds');
    await tab.say('Please book me a ride to the airport and a table for two.');

    await watch.until('both ask', ({ questions }) => questions.length === 2);
    const [first, second] = watch.state.questions;
    expect(second?.state).toBe('queued');
    const ride = tab.question('Which ride to the airport');
    const table = tab.question('Which table for 2');
    await table.getByText('2nd in line').waitFor();
    expect(await table.getByRole('button', { disabled: true }).count()).toBe(2);
    await ride.getByText('is being asked').waitFor();
    expect(await ride.getByRole('button', { disabled: false }).count()).toBe(2);

    const isPlaying = (requestId: string | undefined) =>
      watch.until('the question is being said', ({ deliveries }) =>
        deliveries.some(({ deliveryId, state }) => deliveryId === requestId && state === 'playing'),
      );
    await isPlaying(first?.requestId);
    await tab.say('Premium, please.');
    await watch.until(
      'the first is answered',
      ({ questions }) => questions[0]?.state === 'answered',
    );
    await isPlaying(second?.requestId);
    await table.getByText('is being asked').waitFor();
    expect(await table.getByRole('button', { disabled: false }).count()).toBe(2);
    await tab.say('French, please.');
    await watch.until(
      'the second is answered',
      ({ questions }) => questions[1]?.state === 'answered',
    );

    await watch.until('both are done', ({ subagents }) =>
      subagents.every(({ state }) => state === 'completed'),
    );
    expect(watch.state.questions).toMatchObject([
      { requestId: first?.requestId, subagentName: 'ride_booker', answer: 'Premium' },
      { requestId: second?.requestId, subagentName: 'table_booker', answer: 'French' },
    ]);
    const outcomes = new Map(
      watch.state.subagents.map(({ name, outcome }) => [name, outcome?.text]),
    );
    expect(outcomes.get('ride_booker')).toContain('Your Premium ride to the airport is booked');
    expect(outcomes.get('table_booker')).toContain('Your table for 2 at the French is reserved');
    // At no time did two questions have the floor.
    const owners = new Set<string>();
    for (const { question } of watch.of('question.changed')) {
      const { requestId, state } = question;
      if (state === 'presenting' || state === 'open') owners.add(requestId);
      else owners.delete(requestId);
      expect(owners.size).toBeLessThanOrEqual(1);
    }
    expect(tab.sent('question.answer')).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });
});
