// Lines and endings that many dialogues share.

import type { Line, WorkEnd } from '../dialogue.ts';

export const airport: Line = {
  says: 'Book me a ride to the airport, please.',
  matters: ['ride', 'airport'],
};
export const tableForFour: Line = {
  says: 'Book a table for four people.',
  matters: ['table', 'four'],
};
export const salesOfLastWeek: Line = {
  says: 'Make me a sales report for last week.',
  matters: ['report', 'last week'],
};

export const premiumRide: WorkEnd = {
  work: 'ride',
  state: 'completed',
  result: /Premium ride to the airport is booked/,
};
export const economyRide: WorkEnd = {
  work: 'ride',
  state: 'completed',
  result: /Economy ride to the airport is booked/,
};
export const openRide: WorkEnd = { work: 'ride', state: 'waiting_for_input' };
export const italianTable: WorkEnd = {
  work: 'table',
  state: 'completed',
  result: /table for 4 at the Italian/,
};
export const frenchTable: WorkEnd = {
  work: 'table',
  state: 'completed',
  result: /table for 4 at the French/,
};
export const openTable: WorkEnd = { work: 'table', state: 'waiting_for_input' };
export const report: WorkEnd = { work: 'report', state: 'completed', result: /brought \$[\d,]+/ };

export const economy: Line = { says: 'Economy.', when: { asked: 'ride' } };
export const premium: Line = {
  says: 'Premium, please.',
  when: { asked: 'ride' },
  matters: ['premium'],
};
