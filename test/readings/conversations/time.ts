// Time: reminders that the user requests, and a subagent that sleeps between two looks.

import type { Conversation } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

const MINUTE_MS = 60_000;
const TEN_TO_SEVEN = /0?6:50/;

export const time: readonly Conversation[] = [
  {
    name: 'reminders',
    about: 'The user sets two reminders, moves one of them, and asks which there are',
    cast: () => ({
      agents: [{ name: 'lead', instructions: ASSISTANT, tools: [] }],
      reminders: true,
      timeZone: 'Europe/Berlin',
    }),
    async play(person) {
      await person.says(
        'Remind me in five minutes to take the cake out, and tomorrow at ten to seven to call Anna.',
      );
      await person.waits(15_000);
      person.expect('two reminders are set', person.state.schedules.length === 2);
      await person.waits(5 * MINUTE_MS);
      person.expect('the cake is told', /cake/i.test(person.said().split('\n').at(-1) ?? ''));
      await person.says('Got it. And Anna: rather at half past eight.');
      await person.waits(20_000);
      person.expect('one reminder is left', person.state.schedules.length === 1);
      await person.says('Which reminders do I have now?');
      await person.waits(15_000);
      const last = person.said().split('\n').at(-1) ?? '';
      person.expect('the new time is told', /8:30|half past eight/i.test(last));
      person.expect('the old time is not told', !TEN_TO_SEVEN.test(last));
    },
  },
  {
    name: 'sleeping-task',
    about: 'A subagent looks at a price every ten minutes; the user changes the limit meanwhile',
    cast: ({ model, environment, did }) => {
      const beganAt = environment.clock.now();
      return {
        agents: [
          {
            name: 'lead',
            instructions: ASSISTANT,
            tools: [background('watch_price', 'Watches a price for the user', 'task')],
          },
        ],
        subagentConfigs: {
          watch_price: {
            name: 'watcher',
            instructions:
              'You watch the price of a product, every ten minutes unless told otherwise, until it is as the user wants it. Then you report the price.',
            model: model('watcher'),
            maxSteps: 12,
            maxSleepMs: 24 * 60 * MINUTE_MS,
            tools: {
              get_price: work('Returns the present price', ['product'], () => {
                const minutes = (environment.clock.now() - beganAt) / MINUTE_MS;
                const euros = minutes < 19 ? 120 : 104;
                did(`price ${euros}`);
                return { euros };
              }),
            },
          },
        },
      };
    },
    async play(person) {
      await person.says(
        'Watch the price of the blue tent, every ten minutes, and tell me when it is below 100 euros.',
      );
      await person.waits(5 * MINUTE_MS);
      await person.says('By the way, below 110 is fine too.');
      await person.waits(25 * MINUTE_MS);
      person.expect('the price is told', /104/.test(person.said()));
      person.expect('it was looked at less than six times', person.done.length < 6);
    },
  },
];
