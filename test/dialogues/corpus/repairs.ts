// What people say if they did not hear, did not understand, or want to know more.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economy,
  economyRide,
  openRide,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
} from './lines.ts';

const again = /Premium ride to the airport is booked/;

export const repairs: readonly Dialogue[] = [
  {
    name: 'sorry, what did you say, after a result',
    kind: 'repair',
    lines: [
      airport,
      premium,
      { says: 'Sorry, what did you say?', when: { told: 'ride' }, matters: ['what', 'say'] },
    ],
    work: [premiumRide],
    said: [again, again],
    asksAgain: true,
  },
  {
    name: 'can you repeat that, after a report',
    kind: 'repair',
    lines: [
      salesOfLastWeek,
      { says: 'Can you repeat that, please?', when: { told: 'report' }, matters: ['repeat'] },
    ],
    work: [report],
    said: [/brought/, /brought/],
    asksAgain: true,
  },
  {
    name: 'what, over a question',
    kind: 'repair',
    lines: [airport, { says: 'What?', when: { asked: 'ride' } }, economy],
    work: [economyRide],
    said: [/Which ride/, /Which ride|Economy.*or Premium/],
    asksAgain: true,
  },
  {
    name: 'say that again, over a question',
    kind: 'repair',
    lines: [
      airport,
      { says: 'Could you say that again?', when: { asked: 'ride' }, matters: ['again'] },
      premium,
    ],
    work: [premiumRide],
    said: [/Which ride/, /Which ride|Economy.*or Premium/],
    asksAgain: true,
  },
  {
    name: 'which one is cheaper, over a question',
    kind: 'repair',
    lines: [
      airport,
      { says: 'Which one is cheaper?', when: { asked: 'ride' }, matters: ['cheaper'] },
      economy,
    ],
    work: [economyRide],
    said: [/Economy.*12 dollars|12 dollars.*Economy|Economy is cheaper/i],
  },
  {
    name: 'how much is premium, over a question',
    kind: 'repair',
    lines: [
      airport,
      { says: 'How much is the premium one?', when: { asked: 'ride' }, matters: ['premium'] },
      { says: 'Then economy.', when: 'calm', matters: ['economy'] },
    ],
    work: [economyRide],
    said: [/24 dollars/],
  },
  {
    name: 'how much was it, after a ride',
    kind: 'repair',
    lines: [
      airport,
      premium,
      { says: 'How much was it?', when: { told: 'ride' }, matters: ['how much'] },
    ],
    work: [premiumRide],
    said: [again, /24 dollars/],
    asksAgain: true,
  },
  {
    name: 'when does the driver come, after a ride',
    kind: 'repair',
    lines: [
      airport,
      economy,
      { says: 'When does it come?', when: { told: 'ride' }, matters: ['when'] },
    ],
    work: [economyRide],
    said: [/Economy ride/, /5 minutes/],
    asksAgain: true,
  },
  {
    name: 'how is it going, while a report is made',
    kind: 'repair',
    lines: [
      salesOfLastWeek,
      { says: 'How is the report going?', when: { running: 'report' }, matters: ['report'] },
    ],
    work: [report],
    said: [/report for last week is/i, /brought/],
    unsaid: [/Nothing is running/],
  },
  {
    name: 'how is it going, while the report is told',
    kind: 'repair',
    isSpokenOnly: true,
    lines: [
      salesOfLastWeek,
      {
        says: 'How is the report going?',
        when: { overResult: 'report', ms: 1500 },
        matters: ['report'],
      },
    ],
    work: [report],
    unsaid: [/Nothing is running/],
    asksAgain: true,
  },
  {
    name: 'words that mean nothing are asked for again',
    kind: 'repair',
    lines: [{ says: 'Blue horses fly sideways.' }],
    work: [],
    said: [/not sure|didn't catch|other words|can't/],
  },
  {
    name: 'words that mean nothing, over a question, do not answer it',
    kind: 'repair',
    lines: [airport, { says: 'My brother has a garden.', when: { asked: 'ride' } }],
    work: [openRide],
  },
];
