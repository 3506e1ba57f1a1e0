// How people answer a question, and how they change an answer.

import type { Dialogue, Line } from '../dialogue.ts';
import {
  airport,
  economyRide,
  frenchTable,
  italianTable,
  openRide,
  premiumRide,
  report,
  tableForFour,
} from './lines.ts';

const ofRide = (says: string, ...matters: readonly string[]): Line => ({
  says,
  when: { asked: 'ride' },
  ...(matters.length > 0 && { matters }),
});
const ofTable = (says: string, ...matters: readonly string[]): Line => ({
  says,
  when: { asked: 'table' },
  ...(matters.length > 0 && { matters }),
});

export const answers: readonly Dialogue[] = [
  {
    name: 'by its name',
    kind: 'answer',
    lines: [airport, ofRide('Economy.')],
    work: [economyRide],
  },
  {
    name: 'by its name in a sentence',
    kind: 'answer',
    lines: [airport, ofRide('I would like the premium one, please.', 'premium')],
    work: [premiumRide],
  },
  {
    name: 'by its place in the list',
    kind: 'answer',
    lines: [airport, ofRide('The second one.', 'second')],
    work: [premiumRide],
  },
  {
    name: 'the last one',
    kind: 'answer',
    lines: [tableForFour, ofTable('The last one, please.', 'last')],
    work: [frenchTable],
  },
  {
    name: 'by its price',
    kind: 'answer',
    lines: [airport, ofRide('The one for twelve dollars.', 'twelve')],
    work: [economyRide],
  },
  {
    name: 'the cheaper one',
    kind: 'answer',
    lines: [airport, ofRide('The cheaper one.', 'cheaper')],
    work: [economyRide],
  },
  {
    name: 'the faster one',
    kind: 'answer',
    lines: [airport, ofRide('Whichever is faster.', 'faster')],
    work: [premiumRide],
  },
  {
    name: 'by its time',
    kind: 'answer',
    lines: [tableForFour, ofTable('The one at half past eight.', 'half past eight')],
    work: [frenchTable],
  },
  {
    name: 'by what it is like',
    kind: 'answer',
    lines: [tableForFour, ofTable('The one by the window.', 'window')],
    work: [italianTable],
  },
  {
    name: 'with a filler before it',
    kind: 'answer',
    lines: [airport, ofRide('Um, economy, I think.', 'economy')],
    work: [economyRide],
  },
  {
    name: 'into the question, once the option was read',
    kind: 'answer',
    lines: [
      airport,
      { says: 'Economy!', when: { overQuestion: 'ride', ms: 3500 }, matters: ['economy'] },
    ],
    work: [economyRide],
  },
  {
    name: 'neither of them',
    kind: 'answer',
    lines: [airport, ofRide('Neither of them.', 'neither')],
    work: [{ work: 'ride', state: 'completed', result: /no ride to the airport/ }],
  },
  {
    name: 'changed in the same breath',
    kind: 'correction',
    lines: [airport, ofRide('Economy, no wait, premium.', 'economy', 'premium')],
    work: [premiumRide],
  },
  {
    name: 'changed in the same breath, with sorry',
    kind: 'correction',
    lines: [airport, ofRide('Premium, sorry, I mean economy.', 'premium', 'economy')],
    work: [economyRide],
  },
  {
    name: 'changed with actually',
    kind: 'correction',
    lines: [tableForFour, ofTable('Italian. Actually, make that French.', 'italian', 'french')],
    work: [frenchTable],
  },
  {
    name: 'changed right after the answer',
    kind: 'correction',
    lines: [
      airport,
      ofRide('Economy.'),
      { says: 'Sorry, I meant premium.', when: { afterMs: 600 }, matters: ['premium'] },
    ],
    // The change may come in time or too late, and the person hears which.
    work: [{ work: 'ride', state: 'completed', result: /ride to the airport is booked/ }],
    said: [/Premium ride to the airport is booked|already|too late/],
  },
  {
    name: 'another place instead',
    kind: 'correction',
    lines: [airport, ofRide('To the station instead.', 'station')],
    work: [{ work: 'ride', state: 'cancelled' }, openRide],
    said: [/Which ride to the station/],
  },
  {
    name: 'another number of guests',
    kind: 'correction',
    lines: [tableForFour, ofTable('Sorry, we are five people.', 'five')],
    work: [
      { work: 'table', state: 'cancelled' },
      { work: 'table', state: 'waiting_for_input' },
    ],
    said: [/Which table for 5/],
  },
  {
    name: 'an answer with a wish behind it',
    kind: 'two wishes',
    lines: [
      airport,
      ofRide('Premium, and make me a sales report for last week.', 'premium', 'report'),
    ],
    work: [premiumRide, report],
  },
  {
    name: 'an answer with a table behind it',
    kind: 'two wishes',
    lines: [
      airport,
      ofRide('Economy, and book a table for four.', 'economy', 'table', 'four'),
      ofTable('French.', 'french'),
    ],
    work: [economyRide, frenchTable],
  },
];
