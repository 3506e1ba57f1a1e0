// Subagents' questions and approvals.

import type { Conversation, Crew } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

function orders({ model, takes, did }: Crew) {
  return {
    agents: [
      {
        name: 'lead',
        instructions: ASSISTANT,
        tools: [
          background('order_pizza', 'Orders a pizza', 'wishes', 'I am looking at the menu.'),
          background(
            'book_ride',
            'Books a ride for the user',
            'destination',
            'I am looking for a ride.',
          ),
        ],
      },
    ],
    subagentConfigs: {
      order_pizza: {
        name: 'pizza_orderer',
        instructions: 'You order pizza. Let the user choose one of the menu before you order.',
        interactive: true,
        model: model('pizza_orderer'),
        tools: {
          menu: work('The menu of today', [], () =>
            takes(1000, { d1: 'Margherita, 9 euros', d2: 'Tonno, 12 euros' }),
          ),
          order: work('Orders by the id of the menu', ['id'], ({ id }) => {
            did(`order ${id}`);
            return takes(1000, { ordered: id, arrivesInMinutes: 35 });
          }),
        },
      },
      book_ride: {
        name: 'ride_booker',
        instructions: 'You book rides. Let the user choose the kind before you book.',
        interactive: true,
        model: model('ride_booker'),
        tools: {
          kinds: work('The kinds of rides', [], () =>
            takes(1500, { economy: '18 euros', premium: '35 euros' }),
          ),
          book: work('Books a ride', ['kind', 'to'], ({ kind, to }) => {
            did(`book ${kind} to ${to}`);
            return takes(1000, { pickUp: '19:40' });
          }),
        },
      },
    },
  };
}

const refunds = ({ model, takes, did }: Crew) => ({
  agents: [
    {
      name: 'lead',
      instructions: ASSISTANT,
      tools: [
        background('refund_order', 'Refunds an order', 'order', 'I am looking into the refund.'),
      ],
    },
  ],
  subagentConfigs: {
    refund_order: {
      name: 'refund_clerk',
      instructions: 'You refund orders. Look the order up, then refund it.',
      interactive: true,
      model: model('refund_clerk'),
      tools: {
        find_order: work('Looks an order up', ['order'], ({ order }) =>
          takes(1000, { order, paidEuros: 80, item: 'a desk lamp' }),
        ),
        refund: work(
          'Pays money back to the customer',
          ['order', 'euros'],
          ({ order, euros }) => {
            did(`refund ${order} ${euros}`);
            return takes(1000, { refunded: euros });
          },
          { needsApproval: true },
        ),
      },
    },
  },
});

export const questions: readonly Conversation[] = [
  {
    name: 'two-questions',
    about: 'Two subagents ask at once; one message answers one of them, and asks something else',
    cast: orders,
    async play(person) {
      await person.says('Order me a pizza, and get me a ride to the opera at eight.');
      await person.isAsked(/./);
      await person.waits(8000);
      await person.says('The one with tuna. Oh, and who wrote Tosca?');
      await person.waits(15_000);
      await person.says('Premium, we are celebrating.');
      await person.waits(30_000);
      person.expect(
        'the tuna pizza and the premium ride are ordered, once each',
        person.done.filter((each) => each === 'order d2').length === 1 &&
          person.done.filter((each) => each.startsWith('book premium')).length === 1 &&
          person.done.length === 2,
      );
      person.expect('the aside is answered', /Puccini/.test(person.said()));
    },
  },
  {
    name: 'approval',
    about: 'An approval with talk about something else, and a question about it, before the yes',
    cast: refunds,
    async play(person) {
      await person.says('Please refund order 4711.');
      await person.isAsked(/./);
      await person.says('What did that order cost me again?');
      await person.waits(6000);
      await person.says('Right. What is the capital of Norway?');
      await person.waits(6000);
      person.expect('nothing was paid before the yes', person.done.length === 0);
      await person.says('Okay. Yes, please refund it.');
      await person.waits(6000);
      if (person.done.length === 0) await person.says('Yes.');
      await person.waits(20_000);
      person.expect('80 euros are refunded, once', person.done.join() === 'refund 4711 80');
      person.expect('the aside is answered', /Oslo/.test(person.said()));
    },
  },
  {
    name: 'approval-half',
    about: 'Yes, but only half: the consent is none, and the change reaches the subagent',
    cast: refunds,
    async play(person) {
      await person.says('Please refund order 4711.');
      await person.isAsked(/./);
      await person.says('Yes, but only half of it.');
      await person.waits(20_000);
      person.expect('nothing was paid without a plain yes', person.done.length === 0);
      await person.says('Yes.');
      await person.waits(20_000);
      person.expect(
        '40 euros are refunded, and nothing else',
        person.done.join() === 'refund 4711 40',
      );
    },
  },
  {
    name: 'no-answer',
    about: 'A question that nobody answers in time',
    cast: (crew) => {
      const { agents, subagentConfigs } = orders(crew);
      const { order_pizza: pizza } = subagentConfigs;
      return {
        agents,
        subagentConfigs: {
          ...subagentConfigs,
          order_pizza: { ...pizza, inputTimeout: 20_000, maxInputRetries: 1 },
        },
      };
    },
    async play(person) {
      await person.says('Order me a pizza, please.');
      await person.isAsked(/./);
      await person.waits(60_000);
      await person.says('Sorry, I was away. What about my pizza?');
      await person.waits(15_000);
      person.expect('nothing was ordered without an answer', person.done.length === 0);
    },
  },
];
