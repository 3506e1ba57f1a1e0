// Dialogues of the same kinds in different words, written without reading the rules. They show whether the fixes for
// the other dialogues generalise.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economyRide,
  frenchTable,
  italianTable,
  openRide,
  premiumRide,
  report,
  salesOfLastWeek,
  tableForFour,
} from './lines.ts';

const atRide = { when: { asked: 'ride' } } as const;
const atTable = { when: { asked: 'table' } } as const;

export const heldOut: readonly Dialogue[] = [
  {
    name: 'held out: a taxi in other words',
    kind: 'request',
    lines: [
      { says: 'I need a cab to the museum.', matters: ['museum'] },
      { says: 'The cheap one will do.', matters: ['cheap'], ...atRide },
    ],
    work: [{ work: 'ride', state: 'completed', result: /Economy ride to the museum/ }],
  },
  {
    name: 'held out: a table with the number first',
    kind: 'request',
    lines: [
      { says: 'For three people, could you find us a table?', matters: ['three', 'table'] },
      { says: 'Italian sounds good.', matters: ['italian'], ...atTable },
    ],
    work: [{ work: 'table', state: 'completed', result: /table for 3 at the Italian/ }],
  },
  {
    name: 'held out: sales of a month',
    kind: 'request',
    lines: [{ says: 'How were our sales last month? Make a report.', matters: ['sales', 'month'] }],
    work: [report],
  },
  {
    name: 'held out: the option with thanks behind it',
    kind: 'answer',
    lines: [
      airport,
      { says: 'Premium would be great, thank you.', matters: ['premium'], ...atRide },
    ],
    work: [premiumRide],
  },
  {
    name: 'held out: whatever costs less',
    kind: 'answer',
    lines: [airport, { says: 'Whatever costs less.', matters: ['less'], ...atRide }],
    work: [economyRide],
  },
  {
    name: 'held out: the expensive one',
    kind: 'answer',
    lines: [
      airport,
      { says: 'The more expensive one, I am in style today.', matters: ['expensive'], ...atRide },
    ],
    work: [premiumRide],
  },
  {
    name: 'held out: the earlier one',
    kind: 'answer',
    lines: [tableForFour, { says: 'The earlier one, please.', matters: ['earlier'], ...atTable }],
    work: [italianTable],
  },
  {
    name: 'held out: in the garden',
    kind: 'answer',
    lines: [
      tableForFour,
      { says: "We'd love to sit in the garden.", matters: ['garden'], ...atTable },
    ],
    work: [frenchTable],
  },
  {
    name: 'held out: number two',
    kind: 'answer',
    lines: [airport, { says: 'Number two.', matters: ['two'], ...atRide }],
    work: [premiumRide],
  },
  {
    name: 'held out: not the first one',
    kind: 'answer',
    lines: [
      airport,
      { says: 'Not economy, the other one.', matters: ['economy', 'other'], ...atRide },
    ],
    work: [premiumRide],
  },
  {
    name: 'held out: changed with scratch that',
    kind: 'correction',
    lines: [
      airport,
      { says: 'Premium. Scratch that, economy.', matters: ['scratch', 'economy'], ...atRide },
    ],
    work: [economyRide],
  },
  {
    name: 'held out: make it six people',
    kind: 'correction',
    lines: [tableForFour, { says: 'Actually, make it six people.', matters: ['six'], ...atTable }],
    work: [
      { work: 'table', state: 'cancelled' },
      { work: 'table', state: 'waiting_for_input' },
    ],
  },
  {
    name: 'held out: pardon',
    kind: 'repair',
    lines: [
      airport,
      { says: 'Pardon me, what was that?', matters: ['what'], ...atRide },
      { says: 'Economy.', ...atRide },
    ],
    work: [economyRide],
  },
  {
    name: 'held out: how long does each take',
    kind: 'repair',
    lines: [
      airport,
      { says: 'How long does each one take?', matters: ['long'], ...atRide },
      { says: 'Premium then.', when: 'calm', matters: ['premium'] },
    ],
    work: [premiumRide],
    said: [/3 min/],
  },
  {
    name: 'held out: drop it',
    kind: 'cancel',
    lines: [airport, { says: 'Drop it, I will walk.', matters: ['drop', 'walk'], ...atRide }],
    work: [{ work: 'ride', state: 'cancelled' }],
  },
  {
    name: 'held out: no need for the report',
    kind: 'cancel',
    lines: [
      salesOfLastWeek,
      {
        says: 'Stop the report, I found the numbers.',
        when: { running: 'report' },
        matters: ['stop', 'report'],
      },
    ],
    work: [{ work: 'report', state: 'cancelled' }],
    unsaid: [/sold best/],
  },
  {
    name: 'held out: two rides and an answer for the first',
    kind: 'two wishes',
    lines: [
      {
        says: 'A ride to the office and one to the harbour, please.',
        matters: ['office', 'harbour'],
      },
      { says: 'Economy for that.', matters: ['economy'], ...atRide },
      { says: 'Premium.', when: 'calm' },
    ],
    work: [
      { work: 'ride', state: 'completed', result: /Economy ride to the office/ },
      { work: 'ride', state: 'completed', result: /Premium ride to the harbour/ },
    ],
  },
  {
    name: 'held out: the order in the middle of a question',
    kind: 'digression',
    lines: [
      airport,
      { says: 'Before that, where is my order?', matters: ['order'], ...atRide },
      { says: 'Okay, premium.', when: 'calm', matters: ['premium'] },
    ],
    work: [premiumRide],
    said: [/oak desk/],
  },
  {
    name: 'held out: give me a minute',
    kind: 'time',
    lines: [
      airport,
      { says: 'Give me a minute.', matters: ['minute'], ...atRide },
      { says: 'Economy it is.', when: { afterMs: 6000 }, matters: ['economy'] },
    ],
    work: [economyRide],
  },
  {
    name: 'held out: maybe later',
    kind: 'time',
    lines: [airport, { says: 'Ask me later.', matters: ['later'], ...atRide }],
    work: [openRide],
  },
];
