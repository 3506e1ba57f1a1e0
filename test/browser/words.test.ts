// The texts on the demo's page during a whole conversation must make sense to a user who knows nothing about Offstage.

import { expect, test } from 'vitest';
import { troubles } from './support/stage.ts';
import type { Tab } from './support/tab.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

/** Expressions that only the authors understand. */
const ours: readonly RegExp[] = [
  // Identifiers and ids.
  /\b[a-z0-9]+_[a-z0-9_]+\b/i,
  /\b[a-z]+[a-z0-9]*[A-Z][a-z]+\b/,
  /\b[A-Z]{2,}_[A-Z_]+\b/,
  // The runtime's counters.
  /\bsteps? \d+/i,
  /\btokens?\b/i,
  /\battempts? \d+/i,
  // The machines' states.
  /\b(?:parked|presenting|superseded|withdrawn|spawning|settled|pending|dismissed)\b/i,
  /\b(?:undefined|null|NaN|Infinity)\b/,
  /\[object|[{}]|=>/,
];

/** Collects all lines and names of controls that ever appear, except in statecharts, which show states on purpose. */
async function readAll(tab: Tab): Promise<() => Promise<readonly string[]>> {
  await tab.page.evaluate(() => {
    const seen = new Set<string>();
    const read = (): void => {
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (element?.closest('.charts, script, noscript') === null) seen.add(node.nodeValue ?? '');
      }
      for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]'))
        if (!element.closest('.charts'))
          for (const name of ['aria-label', 'title', 'placeholder'])
            seen.add(element.getAttribute(name) ?? '');
    };
    new MutationObserver(read).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
    read();
    Object.assign(globalThis, { seen });
  });
  return () => tab.page.evaluate(() => [...(globalThis as unknown as { seen: Set<string> }).seen]);
}

test('shows no internal names, numbers or states on the page', async () => {
  const stage = await open();
  const { watch } = stage;
  const tab = await stage.visit();
  await tab.button('Type instead').waitFor();
  const seen = await readAll(tab);
  // The conversation starts with news.
  await tab.button('An order is out for delivery').click();
  await tab.caption('is out for delivery').waitFor();
  await tab.type('make me a sales report for last week');
  await watch.until('it is under way', ({ subagents }) =>
    subagents.some(({ progress }) => progress !== null),
  );
  // One question is answered, one is queued, one is refused, and one subagent is cancelled.
  await tab.type('book me a ride to the airport and a table for two');
  await tab.question('Which table for 2').getByText('2nd in line').waitFor();
  await tab.question('Which ride').getByRole('button', { name: 'Premium' }).click();
  await tab.button(/^Stop: .*able/).click();
  await tab.type('please refund order 1042');
  await tab
    .question('May I refund')
    .getByRole('button', { name: 'No', exact: true, disabled: false })
    .click();
  await watch.until(
    'all has ended',
    ({ subagents }) => subagents.length >= 4 && subagents.every(({ endedAt }) => endedAt !== null),
  );
  await watch.untilQuiet();
  const lines = await seen();
  const states = watch.state.subagents.map(({ state }) => state).toSorted();
  expect(states).toContain('cancelled');
  expect(lines).toEqual(expect.arrayContaining(['Premium', '2nd in line', 'is being asked']));
  expect(lines.length).toBeGreaterThan(60);
  expect(lines.filter((line) => ours.some((pattern) => pattern.test(line)))).toEqual([]);
  expect(troubles(stage, tab)).toEqual([]);
});
