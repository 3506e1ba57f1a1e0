// Other things that people bring up while a question is open or work is running: they end it, postpone it, or turn to
// something else.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economy,
  economyRide,
  italianTable,
  openRide,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
  tableForFour,
} from './lines.ts';

export const turnsAside: readonly Dialogue[] = [
  {
    name: 'cancel the ride, over its question',
    kind: 'cancel',
    lines: [
      airport,
      { says: 'Cancel the ride.', when: { asked: 'ride' }, matters: ['cancel', 'ride'] },
    ],
    work: [{ work: 'ride', state: 'cancelled' }],
  },
  {
    name: 'never mind, over a question',
    kind: 'cancel',
    lines: [airport, { says: 'Never mind.', when: { asked: 'ride' }, matters: ['never mind'] }],
    work: [{ work: 'ride', state: 'cancelled' }],
  },
  {
    name: 'I do not want it any more, over a question',
    kind: 'cancel',
    lines: [
      airport,
      { says: "I don't want it any more.", when: { asked: 'ride' }, matters: ['want'] },
    ],
    work: [{ work: 'ride', state: 'cancelled' }],
  },
  {
    name: 'forget the table, over its question',
    kind: 'cancel',
    lines: [
      tableForFour,
      { says: 'Forget the table.', when: { asked: 'table' }, matters: ['forget', 'table'] },
    ],
    work: [{ work: 'table', state: 'cancelled' }],
  },
  {
    name: 'cancel the report while it is made',
    kind: 'cancel',
    lines: [
      salesOfLastWeek,
      { says: 'Cancel the report.', when: { running: 'report' }, matters: ['cancel', 'report'] },
    ],
    work: [{ work: 'report', state: 'cancelled' }],
    unsaid: [/brought/],
  },
  {
    name: 'never mind while the report is made',
    kind: 'cancel',
    lines: [
      salesOfLastWeek,
      { says: 'Never mind.', when: { running: 'report' }, matters: ['never mind'] },
    ],
    work: [{ work: 'report', state: 'cancelled' }],
  },
  {
    name: 'never mind when a detail is asked for',
    kind: 'cancel',
    lines: [
      { says: 'I need a ride.', matters: ['ride'] },
      { says: 'Never mind.', matters: ['never mind'] },
    ],
    work: [],
    said: [/Where would you like to go/, /never mind|forget it|all right/i],
  },
  {
    name: 'a report over the question of a ride',
    kind: 'digression',
    lines: [airport, { ...salesOfLastWeek, when: { asked: 'ride' } }, { ...economy, when: 'calm' }],
    work: [economyRide, report],
  },
  {
    name: 'a table over the question of a ride',
    kind: 'digression',
    lines: [
      airport,
      { ...tableForFour, when: { asked: 'ride' } },
      { ...premium, when: 'calm' },
      { says: 'The Italian one.', when: 'calm', matters: ['italian'] },
    ],
    work: [premiumRide, italianTable],
  },
  {
    name: 'a joke over the question of a ride',
    kind: 'digression',
    lines: [
      airport,
      { says: 'Tell me a joke first.', when: { asked: 'ride' }, matters: ['joke'] },
      { ...premium, when: 'calm' },
    ],
    work: [premiumRide],
    said: [/actor get lost|two agents the same question/],
  },
  {
    name: 'an order over the question of a ride',
    kind: 'digression',
    lines: [
      airport,
      { says: 'Where is my order?', when: { asked: 'ride' }, matters: ['order'] },
      { ...economy, when: 'calm' },
    ],
    work: [economyRide],
    said: [/Order 1042/],
  },
  {
    name: 'a joke while a report is made',
    kind: 'digression',
    lines: [
      salesOfLastWeek,
      { says: 'Tell me a joke.', when: { running: 'report' }, matters: ['joke'] },
    ],
    work: [report],
    said: [/actor get lost|two agents the same question/, /brought/],
  },
  {
    name: 'hold on, over a question, and then the answer',
    kind: 'time',
    lines: [
      airport,
      { says: 'Hold on a second.', when: { asked: 'ride' }, matters: ['hold on'] },
      { says: 'Premium.', when: { afterMs: 4000 }, matters: ['premium'] },
    ],
    work: [premiumRide],
  },
  {
    name: 'let me think, over a question, and then the answer',
    kind: 'time',
    lines: [
      airport,
      { says: 'Let me think.', when: { asked: 'ride' }, matters: ['think'] },
      { says: 'Economy.', when: { afterMs: 6000 }, matters: ['economy'] },
    ],
    work: [economyRide],
  },
  {
    name: 'not now, over a question: it waits',
    kind: 'time',
    lines: [airport, { says: 'Not now.', when: { asked: 'ride' }, matters: ['not now'] }],
    work: [openRide],
  },
];
