// A tool that runs only if the user approves exactly this call. The user sees and hears the arguments, and answers by
// voice or with the buttons on the card.

import { describe, expect, test } from 'vitest';
import { sayUntil } from './support/say-until.ts';
import { troubles } from './support/stage.ts';
import { overflowing } from './support/tab.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

const CALL = ['order', '1042', 'dollars', '640'];

describe('a refund', () => {
  test('P3: does not make a refund if the user denies the approval by voice', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.startTalking();
    await tab.untilSpeaker('sounds');
    await sayUntil(
      stage,
      tab,
      'a refund is looked into',
      { text: 'Please refund my last order.', matters: ['refund'] },
      ({ subagents }) => subagents.length > 0,
    );
    const card = tab.question('May I refund');
    await card.getByText('It does this only if you approve it.').waitFor();
    await card.locator('dl').waitFor();
    expect(await card.locator('dt, dd').allTextContents()).toEqual(CALL);
    await tab.caption('May I refund 640 dollars for order 1042?').waitFor();
    await watch.until('the question is open', ({ questions }) =>
      questions.some(({ state }) => state === 'open'),
    );
    await sayUntil(
      stage,
      tab,
      'it is denied',
      { text: 'No, not yet.', matters: ['not yet'] },
      ({ questions }) => questions.some(({ state }) => state === 'answered'),
    );
    await tab.caption('order 1042, an oak desk, is not refunded.').waitFor();
    await tab.type('where is my order?');
    await tab.caption('Order 1042, an oak desk, is being packed.').waitFor();
    expect(tab.sent('answer')).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });

  test('P3: makes one refund if the user approves by button', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit({ width: 375, height: 740, colorScheme: 'dark' });
    await tab.button('Type instead').click();
    await tab.type('please refund order 1042');
    const card = tab.question('May I refund');
    await card.locator('dl').waitFor();
    expect(await card.locator('dt, dd').allTextContents()).toEqual(CALL);
    expect(await overflowing(tab)).toEqual([]);
    // The list names the task by its arguments, which the server does not send.
    const tasks = tab.page.getByRole('region', { name: 'Subagents' });
    await tasks.getByText('A refund of order 1042', { exact: true }).waitFor();
    // A request about an order in the meantime does not approve the refund.
    await tab.type('where is my order?');
    await tab.caption('Order 1042, an oak desk, is being packed.').waitFor();
    await card.getByRole('button', { name: 'Yes', disabled: false }).dblclick();
    await tab.caption('You get 640 dollars back for order 1042, an oak desk.').waitFor();
    await watch.untilQuiet();
    const results = tab.page.getByRole('region', { name: 'Results' });
    expect(await results.getByText('You get $640 back').count()).toBe(1);
    expect(watch.state.questions.map(({ state, answer }) => ({ state, answer }))).toEqual([
      { state: 'answered', answer: 'Yes' },
    ]);
    // A second refund does not ask a question.
    await tab.type('please refund order 1042');
    await tab.caption('Order 1042 was refunded before.').waitFor();
    expect(watch.state.questions).toHaveLength(1);
    expect(troubles(stage, tab)).toEqual([]);
  });
});

test('P3: lets a third-party agent change a file after the user has said yes', async () => {
  const stage = await open();
  const { watch } = stage;
  const tab = await stage.visit();
  await tab.startTalking();
  await tab.untilSpeaker('sounds');
  await sayUntil(
    stage,
    tab,
    'the wish is passed on',
    { text: 'Please put soup on the menu.', matters: ['menu'] },
    ({ subagents }) => subagents.length > 0,
  );
  const card = tab.question('May the agent do this');
  await card.locator('dl').waitFor();
  expect(await card.locator('dl').textContent()).toContain('menu.txt');
  await watch.until('the question is open', ({ questions }) =>
    questions.some(({ state }) => state === 'open'),
  );
  await sayUntil(
    stage,
    tab,
    'it is allowed',
    { text: 'Yes, please.', matters: ['yes'] },
    ({ questions }) => questions.some(({ state }) => state === 'answered'),
  );
  await tab.caption(/ is on the menu\./).waitFor();
  expect(watch.state.questions.map(({ state }) => state)).toEqual(['answered']);
  expect(tab.sent('answer')).toEqual([]);
  expect(troubles(stage, tab)).toEqual([]);
});
