// The page is reloaded while a question is open. The question survives and is asked again under the same `requestId`.

import { describe, expect, test } from 'vitest';
import { sayUntil } from './support/say-until.ts';
import { troubles } from './support/stage.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('a reload during a question', () => {
  test('asks again under the original id and then accepts a spoken answer', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.type('book me a ride to the airport');
    const { deliveryId: requestId } = await watch.until(
      'the question is being said',
      ({ deliveries }) =>
        deliveries.find(({ kind, state }) => kind === 'question' && state === 'playing'),
    );
    const card = tab.question('Which ride to the airport');
    await card.waitFor();

    await tab.page.reload();
    await watch.until('the question is put aside', () =>
      watch.of('question.changed').some(({ question }) => question.state === 'parked'),
    );
    await tab.goOnTalking();
    await watch.until('it was said again, and heard', ({ questions }) =>
      questions.some((question) => question.requestId === requestId && question.state === 'open'),
    );
    expect(watch.state.deliveries.find((each) => each.deliveryId === requestId)).toMatchObject({
      state: 'delivered',
      grade: 'played',
    });
    await card.getByText('say it or press it').waitFor();

    const answered = await sayUntil(
      stage,
      tab,
      'it is answered',
      { text: 'The economy ride, please.', matters: ['economy'] },
      ({ questions }) => questions.find(({ state }) => state === 'answered'),
    );
    expect(answered).toMatchObject({ requestId, answer: 'Economy' });
    expect(watch.state.questions).toHaveLength(1);
    await watch.until('the ride is booked', ({ subagents }) =>
      subagents.find(({ state }) => state === 'completed'),
    );
    await tab.caption('Your Economy ride to the airport is booked.').waitFor();
    expect(tab.sent('answer')).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });

  test('repeats a question that was heard but not answered, and then accepts a button press', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.type('book me a table for four');
    const { requestId } = await watch.until('the question is open', ({ questions }) =>
      questions.find(({ state }) => state === 'open'),
    );
    const beingSaid = () =>
      watch
        .of('delivery.changed')
        .filter(
          ({ delivery: { deliveryId, state } }) => deliveryId === requestId && state === 'playing',
        );
    const timesSaid = beingSaid().length;

    await tab.page.reload();
    await tab.goOnTalking();
    await watch.until('it is being said again', () => beingSaid().length > timesSaid);
    await tab.question('Which table for 4').getByRole('button', { name: 'French' }).click();
    const answered = await watch.until('it is answered', ({ questions }) =>
      questions.find(({ state }) => state === 'answered'),
    );
    expect(answered).toMatchObject({ requestId, answer: 'French' });
    const ended = await watch.until('the table is reserved', ({ subagents }) =>
      subagents.find(({ state }) => state === 'completed'),
    );
    expect(ended.outcome?.text).toContain('French');
    expect(troubles(stage, tab)).toEqual([]);
  });
});
