// Booking a ride with options, in text and on each wire. The user chooses in free words.

import type { VoiceWire } from '../../../src/testing/voice-server/index.ts';
import type { Conversation, Crew, Person } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

function rideSubagent({ model, takes, did }: Crew) {
  return {
    name: 'ride_booker',
    instructions:
      'You book rides. Find the rides, let the user choose one, book it, and report the pick-up time.',
    interactive: true,
    model: model('ride_booker'),
    tools: {
      find_rides: work('Finds rides to a place', ['to'], () =>
        takes(2000, {
          rides: [
            { id: 'r1', kind: 'Economy', priceUsd: 18, minutesAway: 6 },
            { id: 'r2', kind: 'Premium', priceUsd: 35, minutesAway: 3 },
          ],
        }),
      ),
      book: work('Books a ride by its id', ['rideId'], ({ rideId }) => {
        did(`book ${rideId}`);
        return takes(1500, { booked: rideId, pickUp: '14:10' });
      }),
    },
  };
}

function cast(crew: Crew) {
  return {
    agents: [
      {
        name: 'lead',
        instructions: ASSISTANT,
        tools: [
          background(
            'book_ride',
            'Books a ride for the user',
            'destination',
            'I am looking for a ride.',
          ),
        ],
      },
    ],
    subagentConfigs: { book_ride: rideSubagent(crew) },
  };
}

async function choosesTheCheaper(person: Person): Promise<void> {
  await person.says('Could you get me a ride to the airport?');
  await person.isAsked(/./);
  await person.waits(9000);
  await person.says('Hm, how far away are they?');
  await person.waits(9000);
  await person.says('Okay, then the cheaper one, please.');
  await person.waitsUntil(() =>
    person.state.deliveries.some(({ text }) => /14:10|2:10/.test(text)),
  );
  await person.waits(12_000);
  person.expect('the cheaper ride is booked, once', person.done.join() === 'book r1');
  person.expect('the user hears the pick-up time', /14:10|2:10|ten past two/i.test(person.said()));
}

const changesTheirMind: Conversation = {
  name: 'ride-correction',
  about: 'The user chooses a ride, and changes the answer at once',
  cast,
  async play(person) {
    await person.says('I need a ride to the main station.');
    await person.isAsked(/./);
    await person.says('Premium sounds good. And what is 15 % of 80, by the way?');
    await person.waits(1300);
    await person.says('No wait, economy after all.');
    await person.waits(30_000);
    person.expect(
      'one ride is booked, or the second wish is refused in words',
      person.done.length === 1,
    );
    person.expect('the sum is answered', /12/.test(person.said()));
  },
};

const byVoice = (['openai-realtime', 'openai-live', 'gemini-live'] as const).map(
  (wire: VoiceWire): Conversation => ({
    name: `ride-${wire}`,
    about: `A ride with options, by voice (${wire})`,
    wire,
    cast,
    play: choosesTheCheaper,
  }),
);

export const rides: readonly Conversation[] = [
  {
    name: 'ride',
    about: 'A ride with options: a question about them, then "the cheaper one"',
    cast,
    play: choosesTheCheaper,
  },
  changesTheirMind,
  ...byVoice,
];
