// What people say while the lead agent is speaking.

import type { Dialogue } from '../dialogue.ts';
import {
  airport,
  economy,
  economyRide,
  openTable,
  premium,
  premiumRide,
  report,
  salesOfLastWeek,
  tableForFour,
} from './lines.ts';

const joke = /actor get lost|two agents the same question/;

export const interruptions: readonly Dialogue[] = [
  {
    name: 'a joke is wanted in the middle of a result, which is told afterwards',
    kind: 'interruption',
    isSpokenOnly: true,
    lines: [
      salesOfLastWeek,
      { says: 'Tell me a joke.', when: { overResult: 'report', ms: 1500 }, matters: ['joke'] },
    ],
    work: [report],
    said: [joke],
  },
  {
    name: 'a wish in the middle of a result',
    kind: 'interruption',
    isSpokenOnly: true,
    lines: [salesOfLastWeek, { ...tableForFour, when: { overResult: 'report', ms: 1500 } }],
    work: [report, openTable],
  },
  {
    name: 'stop, in the middle of a result: it is not told again',
    kind: 'interruption',
    isSpokenOnly: true,
    lines: [salesOfLastWeek, { says: 'Stop.', when: { overResult: 'report', ms: 1500 } }],
    work: [report],
    unsaid: [/sold best/],
  },
  {
    name: 'enough, in the middle of a result: it is not told again',
    kind: 'interruption',
    isSpokenOnly: true,
    lines: [salesOfLastWeek, { says: "That's enough.", when: { overResult: 'report', ms: 1500 } }],
    work: [report],
    unsaid: [/sold best/],
  },
  {
    name: 'a wish into the greeting',
    kind: 'interruption',
    isSpokenOnly: true,
    lines: [{ ...airport, when: { overReply: true } }, premium],
    work: [premiumRide],
  },
  {
    name: 'a listening word into a result',
    kind: 'listening',
    isSpokenOnly: true,
    lines: [
      salesOfLastWeek,
      { says: 'Mm-hm.', when: { overResult: 'report', ms: 1500 }, wantsNothing: true },
    ],
    work: [report],
    said: [/sold best/],
  },
  {
    name: 'okay, into a result',
    kind: 'listening',
    isSpokenOnly: true,
    lines: [
      salesOfLastWeek,
      { says: 'Okay.', when: { overResult: 'report', ms: 1500 }, wantsNothing: true },
    ],
    work: [report],
    said: [/sold best/],
  },
  {
    name: 'a listening word into a question, and then the answer',
    kind: 'listening',
    isSpokenOnly: true,
    lines: [
      airport,
      { says: 'Uh-huh.', when: { overQuestion: 'ride', ms: 1500 }, wantsNothing: true },
      economy,
    ],
    work: [economyRide],
  },
  {
    name: 'thank you, after a result',
    kind: 'listening',
    lines: [
      airport,
      premium,
      { says: 'Great, thank you.', when: { told: 'ride' }, matters: ['thank'] },
    ],
    work: [premiumRide],
    said: [/welcome|pleasure|Any time/],
  },
];
