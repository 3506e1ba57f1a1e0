// What people say about running work: how is it going, stop it, add to it, change it, don't start yet.

import type { Dialogue, Line } from '../dialogue.ts';
import {
  airport,
  italianTable,
  openRide,
  openTable,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
  tableForFour,
} from './lines.ts';

const refund: Line = { says: 'Please refund my last order.', matters: ['refund'] };
const refunded = (dollars: number) =>
  ({
    work: 'refund',
    state: 'completed',
    result: new RegExp(`^You get \\$${dollars} back`),
  }) as const;
const notRefunded = { work: 'refund', state: 'completed', result: /is not refunded/ } as const;
const reportOf = (...periods: readonly string[]) =>
  ({
    work: 'report',
    state: 'completed',
    result: new RegExp(periods.map((period) => `${period}[^,.]* brought`).join('.*'), 'is'),
  }) as const;

export const steering: readonly Dialogue[] = [
  {
    name: 'how is the report going, with a ride that waits',
    kind: 'status',
    lines: [
      {
        says: 'Make me a sales report for last week, and book me a ride to the airport.',
        matters: ['report', 'ride'],
      },
      {
        says: 'Um, so how is the report coming along?',
        when: { asked: 'ride' },
        matters: ['report'],
      },
      { ...premium, when: 'calm' },
    ],
    work: [report, premiumRide],
    said: [/report for last week is (?:reading|under way|done)/i],
    unsaid: [/stopped/],
  },
  {
    name: 'is the table booked yet, while it waits for an answer',
    kind: 'status',
    lines: [
      tableForFour,
      { says: 'Is my table booked yet?', when: { asked: 'table' }, matters: ['table'] },
    ],
    work: [openTable],
    said: [/waiting for your answer/],
  },
  {
    name: 'the status of a report that was told already',
    kind: 'status',
    asksAgain: true,
    lines: [
      salesOfLastWeek,
      { says: 'Is the report finished?', when: { told: 'report' }, matters: ['report'] },
    ],
    work: [report],
    said: [/brought/, /report for last week is done/i],
  },
  {
    name: 'stop the one of two',
    kind: 'stop',
    lines: [
      {
        says: 'Make me a sales report for last week, and book me a ride to the airport.',
        matters: ['report', 'ride'],
      },
      // The question takes longer to speak than the report.
      { says: 'Oh, stop the report.', when: { overQuestion: 'ride' }, matters: ['report'] },
      { ...premium, when: 'calm' },
    ],
    work: [{ work: 'report', state: 'cancelled' }, premiumRide],
    said: [/stopped the sales report for last week/],
    unsaid: [/brought/],
  },
  {
    name: 'forget the taxi, by another word for it',
    kind: 'stop',
    lines: [
      salesOfLastWeek,
      { ...airport, when: { running: 'report' } },
      {
        says: 'You know what, forget the taxi. My brother is driving me.',
        when: { asked: 'ride' },
        matters: ['forget', 'taxi'],
      },
    ],
    work: [report, { work: 'ride', state: 'cancelled' }],
  },
  {
    name: 'stop the ride, of two rides, is asked back',
    kind: 'stop',
    lines: [
      {
        says: 'Book me a ride to the airport and one to the station.',
        matters: ['airport', 'station'],
      },
      { says: 'Stop the ride to the station.', when: 'calm', matters: ['station'] },
      { ...premium, when: 'calm' },
    ],
    work: [{ work: 'ride', state: 'cancelled' }, premiumRide],
  },
  {
    name: 'stop what is not there',
    kind: 'stop',
    lines: [
      salesOfLastWeek,
      { says: 'Cancel the table.', when: { running: 'report' }, matters: ['cancel', 'table'] },
    ],
    work: [report],
    unsaid: [/I've stopped/],
  },
  {
    name: 'stop a report that has just been told',
    kind: 'stop',
    asksAgain: true,
    lines: [
      salesOfLastWeek,
      { says: 'Stop the report.', when: { told: 'report' }, matters: ['report'] },
    ],
    work: [report],
    unsaid: [/I've stopped/],
  },
  {
    name: 'stop everything',
    kind: 'stop',
    lines: [
      { says: 'Book me a ride to the airport and a table for four.', matters: ['ride', 'table'] },
      {
        says: 'Cancel everything, please.',
        when: { asked: 'ride' },
        matters: ['cancel', 'everything'],
      },
    ],
    work: [
      { work: 'ride', state: 'cancelled' },
      { work: 'table', state: 'cancelled' },
    ],
  },
  {
    name: 'also include the third quarter',
    kind: 'add',
    lines: [
      salesOfLastWeek,
      {
        says: 'Oh, and also include the third quarter.',
        when: { running: 'report' },
        matters: ['include', 'third', 'quarter'],
      },
    ],
    work: [reportOf('last week', 'the third quarter')],
    said: [/passed that on/],
  },
  {
    name: 'add to a report, and ask for a table',
    kind: 'add',
    lines: [
      salesOfLastWeek,
      {
        says: 'Put last month in as well, and book a table for four people.',
        when: { running: 'report' },
        matters: ['last month', 'table', 'four'],
      },
      { says: 'The Italian one.', when: { asked: 'table' }, matters: ['italian'] },
    ],
    work: [reportOf('last week', 'last month'), italianTable],
  },
  {
    name: 'not last week, last month, while it runs',
    kind: 'change',
    lines: [
      salesOfLastWeek,
      {
        says: 'Sorry, not last week, last month.',
        when: { running: 'report' },
        matters: ['not', 'last month'],
      },
    ],
    work: [reportOf('last month')],
    unsaid: [/last week brought/i],
  },
  {
    name: 'a refund is allowed',
    kind: 'approval',
    lines: [refund, { says: 'Yes, please.', when: { asked: 'refund' }, matters: ['yes'] }],
    work: [refunded(640)],
    said: [/May I refund/],
  },
  {
    name: 'a refund is declined',
    kind: 'approval',
    lines: [refund, { says: 'No, leave it.', when: { asked: 'refund' }, matters: ['no'] }],
    work: [notRefunded],
  },
  {
    name: 'a question is no yes',
    kind: 'approval',
    lines: [
      refund,
      {
        says: 'Yes, but what is the weather like?',
        when: { asked: 'refund' },
        matters: ['weather'],
      },
    ],
    work: [{ work: 'refund', state: 'waiting_for_input' }],
  },
  {
    name: 'yes, but only two hundred',
    kind: 'change',
    lines: [
      refund,
      {
        says: 'Yes, but only two hundred dollars.',
        when: { asked: 'refund' },
        matters: ['two', 'hundred'],
      },
      { says: 'Yes.', when: 'calm', matters: ['yes'] },
    ],
    work: [refunded(200)],
    said: [/May I refund 640/, /May I refund 200/],
  },
  {
    name: 'a change that is taken back',
    kind: 'change',
    lines: [
      refund,
      {
        says: 'Yes, but only two hundred dollars.',
        when: { asked: 'refund' },
        matters: ['two', 'hundred'],
      },
      { says: 'No.', when: 'calm', matters: ['no'] },
      { says: 'Yes.', when: 'calm', matters: ['yes'] },
    ],
    work: [refunded(640)],
    // The approval is for the call that was heard last.
    said: [/^May I refund 640/, /May I refund 200/, /May I refund 640/],
  },
  {
    name: "don't do anything yet",
    kind: 'not yet',
    lines: [
      {
        says: "Don't do anything yet. I need a ride to the airport.",
        matters: ["don't", 'yet'],
      },
      { says: 'Tell me a joke.', when: 'calm', matters: ['joke'] },
    ],
    work: [],
    unsaid: [/on it/],
  },
  {
    name: 'not yet, and then go ahead',
    kind: 'not yet',
    lines: [
      {
        says: "Don't book anything yet. I need a ride to the airport.",
        matters: ["don't", 'yet', 'airport'],
      },
      { says: 'Okay, go ahead.', when: 'calm', matters: ['ahead'] },
    ],
    work: [openRide],
  },
];
