// Requests, in one utterance or in several.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economy,
  economyRide,
  italianTable,
  openRide,
  openTable,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
  tableForFour,
} from './lines.ts';

export const requests: readonly Dialogue[] = [
  {
    name: 'a ride, asked and answered',
    kind: 'request',
    lines: [airport, premium],
    work: [premiumRide],
    said: [/Which ride to the airport/, /Premium ride to the airport is booked/],
  },
  {
    name: 'a report, and nothing else',
    kind: 'request',
    lines: [salesOfLastWeek],
    work: [report],
    said: [/report/i, /brought/],
  },
  {
    name: 'an order by its number',
    kind: 'request',
    lines: [{ says: 'Where is order ten forty two?', matters: ['order'] }],
    work: [],
    said: [/Order 1042, an oak desk/],
  },
  {
    name: 'a greeting gets a greeting',
    kind: 'request',
    lines: [{ says: 'Hello there!' }],
    work: [],
    said: [/Hello|Hi!/],
  },
  {
    name: 'what nobody here can do is refused with what can be done',
    kind: 'request',
    lines: [{ says: 'What is the weather in Berlin?', matters: ['weather'] }],
    work: [],
    said: [/can't check the weather/],
  },
  {
    name: 'the place comes with the second line',
    kind: 'detail',
    lines: [
      { says: 'I need a ride.', matters: ['ride'] },
      { says: 'To the airport.', matters: ['airport'] },
      economy,
    ],
    work: [economyRide],
    said: [/Where would you like to go/, /Economy ride/],
  },
  {
    name: 'the number of guests comes with the second line',
    kind: 'detail',
    lines: [
      { says: 'Please book a table.', matters: ['table'] },
      { says: 'For four people.', matters: ['four'] },
      { says: 'The Italian one.', when: { asked: 'table' }, matters: ['italian'] },
    ],
    work: [italianTable],
    said: [/how many people/i],
  },
  {
    name: 'the period comes with the second line',
    kind: 'detail',
    lines: [
      { says: 'I want a sales report.', matters: ['report'] },
      { says: 'For last month.', matters: ['last month'] },
    ],
    work: [report],
    said: [/which period/i, /brought/],
  },
  {
    name: 'a table with its time and the number of guests',
    kind: 'detail',
    lines: [
      { says: 'Book a table at seven thirty for four.', matters: ['table', 'four'] },
      { says: 'Italian.', when: { asked: 'table' } },
    ],
    work: [italianTable],
    unsaid: [/table for 7|table for 30/],
  },
  {
    name: 'the number of guests before the time',
    kind: 'detail',
    lines: [
      { says: 'A table for four at seven thirty, please.', matters: ['table', 'four'] },
      { says: 'Italian.', when: { asked: 'table' } },
    ],
    work: [italianTable],
  },
  {
    name: 'the time of a table is no number of guests',
    kind: 'detail',
    lines: [
      { says: 'Book a table for eight thirty.', matters: ['table', 'eight'] },
      { says: 'Four.', matters: ['four'] },
      { says: 'Italian.', when: { asked: 'table' } },
    ],
    work: [italianTable],
    said: [/how many people/i],
  },
  {
    name: 'a ride and a table in one sentence',
    kind: 'two wishes',
    lines: [
      { says: 'Book me a ride to the airport and a table for four.', matters: ['ride', 'table'] },
      premium,
      { says: 'The Italian one.', when: { asked: 'table' }, matters: ['italian'] },
    ],
    work: [premiumRide, italianTable],
  },
  {
    name: 'a report and a ride in one sentence',
    kind: 'two wishes',
    lines: [
      {
        says: 'Make me a sales report for last week, and book me a ride to the airport.',
        matters: ['report', 'ride'],
      },
      economy,
    ],
    work: [report, economyRide],
  },
  {
    name: 'two rides in one sentence',
    kind: 'two wishes',
    lines: [
      {
        says: 'Book me a ride to the airport and one to the station.',
        matters: ['airport', 'station'],
      },
      premium,
    ],
    work: [premiumRide, openRide],
    said: [/Which ride to the station/],
  },
  {
    name: 'a second wish while the first is worked on',
    kind: 'two wishes',
    lines: [salesOfLastWeek, { ...tableForFour, when: { running: 'report' } }],
    work: [report, openTable],
  },
  {
    name: 'thanks and a new wish',
    kind: 'two wishes',
    lines: [
      salesOfLastWeek,
      {
        says: 'Thank you. And a ride to the airport, please.',
        when: { told: 'report' },
        matters: ['ride', 'airport'],
      },
      economy,
    ],
    work: [report, economyRide],
  },
  {
    name: 'a question and a wish',
    kind: 'two wishes',
    lines: [
      {
        says: 'Where is my order, and can you book me a ride to the airport?',
        matters: ['order', 'ride'],
      },
      premium,
    ],
    work: [premiumRide],
    said: [/Order 1042/],
  },
];
