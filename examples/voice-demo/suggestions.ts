// Four things to try. They are printed at the start and on the page.

import type { Suggestion } from './shared/protocol.ts';

export function suggestions(webhook: string): readonly Suggestion[] {
  return [
    {
      title: 'A report',
      say: 'Make me a sales report for last week.',
      hint: 'It takes a while. Go on chatting: you are told when it is ready.',
    },
    {
      title: 'A ride',
      say: 'Book me a ride to the airport.',
      hint: 'It asks which one. Say it, type it, or press the button.',
    },
    {
      title: 'Two at once',
      say: 'Book me a ride to the airport and a table for two.',
      hint: 'Both will ask you. The first to ask is the first to be answered.',
    },
    {
      title: 'Something urgent',
      run: webhook,
      hint: 'Run this in a terminal while you are being talked to.',
    },
  ];
}
