// A ride by voice alone, in a real browser with real speech: once the page has started, the test only speaks into the
// microphone.

import { describe, expect, test } from 'vitest';
import { sayUntil } from './support/say-until.ts';
import { troubles } from './support/stage.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('a ride by voice alone', () => {
  test('books and delivers a ride by voice', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.untilSpeaker('sounds');

    // The user speaks over the greeting.
    await sayUntil(
      stage,
      tab,
      'the ride is being booked',
      { text: 'Please book me a ride to the airport.', matters: ['ride to the airport'] },
      ({ subagents }) => subagents.length > 0,
    );
    await tab.caption("I'm on it.").waitFor();
    const asked = await watch.until('the question is open', ({ questions }) =>
      questions.find(({ state }) => state === 'open'),
    );
    const card = tab.question('Which ride to the airport would you like?');
    await card.getByText('say it or press it').waitFor();
    expect(await card.getByRole('button').allTextContents()).toEqual([
      expect.stringContaining('Economy'),
      expect.stringContaining('Premium'),
    ]);
    expect(await card.getByRole('button', { disabled: false }).count()).toBe(2);
    // The question was also spoken.
    await tab.caption(/Which ride to the airport.*Economy.*Premium/).waitFor();
    expect(watch.state.deliveries.find(({ kind }) => kind === 'question')).toMatchObject({
      deliveryId: asked.requestId,
      state: 'delivered',
      grade: 'played',
    });

    await sayUntil(
      stage,
      tab,
      'it is answered',
      { text: 'The economy ride, please.', matters: ['economy'] },
      ({ questions }) => questions.some(({ answer }) => answer === 'Economy'),
    );
    await tab.caption('Your Economy ride to the airport is booked.').waitFor();
    const result = await watch.until('the result was heard', ({ deliveries }) =>
      deliveries.find(({ kind, state }) => kind === 'result' && state === 'delivered'),
    );
    expect(result).toMatchObject({ grade: 'played', attempts: 1 });
    expect(watch.state.subagents).toMatchObject([{ name: 'ride_booker', state: 'completed' }]);
    const results = tab.page.getByRole('region', { name: 'Results' });
    await results.getByText('Your Economy ride to the airport is booked.').waitFor();
    await results.getByText('told').waitFor();

    // The transcript grew item by item.
    const spoken = watch.state.transcript.filter(
      // An acknowledgement ("Economy. One moment.") is a filler, and clients send no report for it.
      ({ role, interrupted, filler }) => role === 'assistant' && !interrupted && !filler,
    );
    expect(spoken.length).toBeGreaterThanOrEqual(2);
    for (const { id } of spoken) {
      const reports = tab.playedMs(id);
      expect(reports.length).toBeGreaterThan(5);
      expect(reports).toEqual(reports.toSorted((a, b) => a - b));
    }
    // The user has not typed or pressed anything.
    expect([...tab.sent('answer'), ...tab.sent('send')]).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });
});
