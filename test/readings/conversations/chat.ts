// A chat of 25 turns with small talk, background work, a question, an approval, a failure, and a correction.

import { z } from 'zod';
import { defineTool } from '../../../src/index.ts';
import type { Conversation, Crew } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

/** The user's utterances, and how many milliseconds the user waits after each one. */
export const LINES: readonly (readonly [text: string, waitsMs: number])[] = [
  ['Good morning!', 4000],
  ['What day of the week was the first of January 2000?', 5000],
  ['I want to have dinner with six friends on Friday. Can you find a place?', 6000],
  ['It should not be too expensive, by the way.', 14_000],
  ['What was the first one again?', 6000],
  ['Good. Then book a table there for seven at eight.', 12_000],
  ['Outside, please.', 14_000],
  ['Great. How do I best get there from the centre?', 6000],
  ['Get me a ride there on Friday at half past seven.', 5000],
  ['Is it going to rain on Friday?', 14_000],
  ['The cheap one.', 14_000],
  ['Thanks. What is a good present for a host?', 6000],
  ['Nice idea. What does a bottle of good olive oil cost?', 5000],
  ['How is it going?', 16_000],
  ['Then order two bottles of it.', 12_000],
  ['What will that come to?', 5000],
  ['Yes, go ahead.', 14_000],
  ['Yes.', 5000],
  ['Remind me: what time is dinner?', 5000],
  ['And the ride?', 5000],
  ['Can you recommend a film for tonight?', 5000],
  ['Something shorter.', 5000],
  ['How long does it run?', 5000],
  ['Perfect. Anything that is still open?', 5000],
  ['Then good night!', 5000],
];

export function chatCast({ model, takes, did }: Crew) {
  const weather = defineTool({
    name: 'weather',
    description: 'The weather forecast for a day',
    parameters: z.object({ day: z.string() }),
    execute: ({ day }) => ({ day, forecast: 'dry, 24 degrees' }),
  });
  return {
    agents: [
      {
        name: 'lead',
        instructions: ASSISTANT,
        tools: [
          background(
            'research',
            'Finds something out: a place to eat, a way, a price',
            'topic',
            'I am looking into it.',
          ),
          background(
            'book_table',
            'Books a table in a restaurant that the user has chosen',
            'request',
            'I am asking them.',
          ),
          background('book_ride', 'Books a ride', 'request', 'I am looking for a ride.'),
          background('order', 'Orders goods for the user', 'request', 'I am on it.'),
          weather,
        ],
      },
    ],
    subagentConfigs: {
      research: {
        name: 'researcher',
        instructions: 'You find things out, and report them briefly.',
        model: model('researcher'),
        tools: {
          search: work('Searches the web', ['query'], ({ query = '' }) =>
            takes(3000, {
              found: /oil/i.test(query)
                ? 'Good olive oil: Frantoio, 14 euros a bottle.'
                : '1. Da Enzo (about 20 euros a head, has a garden). 2. Lume (about 45 euros a head).',
            }),
          ),
        },
      },
      book_table: {
        name: 'table_booker',
        instructions: 'You book tables. Ask the user whether they want to sit inside or outside.',
        interactive: true,
        model: model('table_booker'),
        tools: {
          reserve: work('Reserves a table', ['place', 'people', 'time', 'where'], (wish) => {
            did(`reserve ${wish['place']} ${wish['people']} ${wish['where']}`);
            return takes(2000, { reserved: true, name: 'Smith' });
          }),
        },
      },
      book_ride: {
        name: 'ride_booker',
        instructions: 'You book rides. Let the user choose one of the offers before you book.',
        interactive: true,
        model: model('ride_booker'),
        tools: {
          offers: work('Finds offers for a ride', ['to', 'time'], () =>
            takes(2000, { o1: 'Shared van, 9 euros', o2: 'Taxi, 24 euros' }),
          ),
          book: work('Books an offer', ['offer'], ({ offer }) => {
            did(`book ${offer}`);
            return takes(2000, { pickUp: '19:20', at: 'town hall' });
          }),
        },
      },
      order: {
        name: 'buyer',
        instructions: 'You order goods in shops.',
        interactive: true,
        model: model('buyer'),
        tools: {
          place_order: work(
            'Orders something and pays for it',
            ['item', 'count', 'totalEuros'],
            ({ item, count }) => {
              did(`order ${count} ${item}`);
              return takes(2000, { arrives: 'Thursday' });
            },
            { needsApproval: true },
          ),
        },
      },
    },
  };
}

export const chat: readonly Conversation[] = [
  {
    name: 'chat',
    about: 'A chat of 25 turns',
    cast: chatCast,
    async play(person) {
      for (const [text, waitsMs] of LINES) {
        await person.says(text);
        await person.waits(waitsMs);
      }
      await person.waits(10_000);
      person.expect(
        'the table is reserved outside',
        person.done.some((each) => /^reserve .* (7|seven) .*out/i.test(each)),
      );
      person.expect('the cheap ride is booked', person.done.includes('book o1'));
      person.expect(
        'the oil is ordered, once',
        person.done.filter((each) => each.startsWith('order ')).length === 1,
      );
    },
  },
];
