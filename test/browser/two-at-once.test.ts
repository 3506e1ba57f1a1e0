// Two subagents ask the user at the same time: one question is presented, the other is queued, and each gets the right
// answer.

import { describe, expect, test } from 'vitest';
import { sayUntil } from './support/say-until.ts';
import { troubles } from './support/stage.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('two at once', () => {
  test('P2, P3: asks one question at a time and passes each answer to the right subagent', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.untilSpeaker('sounds');
    // If one subagent is already working, the request names only the other one.
    const works = (name: string) => watch.state.subagents.some((each) => each.name === name);
    const wish = () => {
      if (works('ride_booker'))
        return { text: 'Can you book me a table for two people?', matters: ['table for two'] };
      if (works('table_booker'))
        return { text: 'Can you book me a ride to the airport?', matters: ['ride to the airport'] };
      const text = 'Please book me a ride to the airport and a table for two people.';
      return { text, matters: ['ride to the airport', 'table for two'] };
    };
    await sayUntil(
      stage,
      tab,
      'both are at work',
      wish,
      () => works('ride_booker') && works('table_booker'),
    );

    await watch.until('both ask', ({ questions }) => questions.length === 2);
    const [first, second] = watch.state.questions;
    expect(second?.state).toBe('queued');
    const bookings = [
      {
        name: 'ride_booker',
        card: tab.question('Which ride to the airport'),
        choice: 'Premium',
        answer: 'The premium ride, please.',
      },
      {
        name: 'table_booker',
        card: tab.question('Which table for 2'),
        choice: 'French',
        answer: 'French, please.',
      },
    ];
    // The ride asks first, unless the user was misheard.
    if (first?.subagentName === 'table_booker') bookings.reverse();
    const next = bookings.at(-1)?.card;
    await next?.getByText('2nd in line').waitFor();
    expect(await next?.getByRole('button', { disabled: true }).count()).toBe(2);

    for (const [index, { name, card, choice, answer }] of bookings.entries()) {
      await card.getByText(/is being asked|say it or press it/).waitFor();
      expect(await card.getByRole('button', { disabled: false }).count()).toBe(2);
      await watch.until('the question was heard', ({ questions }) =>
        questions.some(({ subagentName, state }) => subagentName === name && state === 'open'),
      );
      await sayUntil(
        stage,
        tab,
        'it is answered',
        { text: answer, matters: [choice] },
        ({ questions }) => questions[index]?.state === 'answered',
      );
    }

    await watch.until('both are done', ({ subagents }) =>
      subagents.every(({ state }) => state === 'completed'),
    );
    expect(watch.state.questions).toMatchObject(
      [first, second].map((asked, index) => ({
        requestId: asked?.requestId,
        subagentName: bookings[index]?.name,
        answer: bookings[index]?.choice,
      })),
    );
    const outcomes = new Map(
      watch.state.subagents.map(({ name, outcome }) => [name, outcome?.text]),
    );
    expect(outcomes.get('ride_booker')).toContain('Your Premium ride to the airport is booked');
    expect(outcomes.get('table_booker')).toContain('Your table for 2 at the French is reserved');
    // Two questions were never presented at the same time.
    const owners = new Set<string>();
    for (const { question } of watch.of('question.changed')) {
      const { requestId, state } = question;
      if (state === 'presenting' || state === 'open') owners.add(requestId);
      else owners.delete(requestId);
      expect(owners.size).toBeLessThanOrEqual(1);
    }
    expect(tab.sent('answer')).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });
});
