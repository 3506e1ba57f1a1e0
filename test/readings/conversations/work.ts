// Background work: several tasks, failures, limits, and subagents that the app implements itself.

import { leadTools } from '../../../src/entries/subagents.ts';
import { createChildSubagentToolset, createParentSubagentToolset } from '../../../src/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';
import type { Conversation, Crew } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

const FINDINGS: Readonly<Record<string, string>> = {
  solar: 'Solar panels cost 7,000 euros and pay off in nine years.',
  heat: 'A heat pump costs 14,000 euros after the subsidy.',
  window: 'Triple glazing costs 9,500 euros for the whole house.',
};

/** Each entry is owned by the entry after it. */
const OWNERS = [
  'Mill Lane Books',
  'Paper and Pen',
  'Northgate Holding',
  'Alster Invest',
  'Boreas Capital',
  'Quay Partners',
  'Harbour Trust',
];

function researching({ model, takes, did }: Crew, searchMs: (topic: string) => number) {
  return {
    agents: [
      {
        name: 'lead',
        instructions: ASSISTANT,
        tools: [background('research', 'Researches a topic', 'topic', 'I am looking into it.')],
      },
    ],
    subagentConfigs: {
      research: {
        name: 'researcher',
        instructions: 'You research one topic, and report what you found in two sentences.',
        model: model('researcher'),
        maxSteps: 4,
        tools: {
          search: work('Searches the web', ['query'], async ({ query = '' }) => {
            const topic = Object.keys(FINDINGS).find((each) => query.toLowerCase().includes(each));
            did(`search ${topic ?? query}`);
            await takes(searchMs(topic ?? ''), null);
            return { found: topic === undefined ? 'Nothing.' : FINDINGS[topic] };
          }),
        },
      },
    },
  };
}

export const tasks: readonly Conversation[] = [
  {
    name: 'three-tasks',
    about: 'Three tasks of one tool; the user asks how it is going when two are done',
    cast: (crew) => researching(crew, (topic) => (topic === 'window' ? 40_000 : 3000)),
    async play(person) {
      await person.says(
        'Find out for me what solar panels, a heat pump and new windows would cost.',
      );
      await person.waits(20_000);
      await person.says('How is it going?');
      await person.waits(8000);
      person.expect('what is known is told', /7[,.]?000/.test(person.said()));
      await person.waits(50_000);
      person.expect('the last result is told', /9[,.]?500/.test(person.said()));
    },
  },
  {
    name: 'changed-subject',
    about: 'A result comes after the user has changed the subject',
    cast: (crew) => researching(crew, () => 15_000),
    async play(person) {
      await person.says('What does a heat pump cost? Take your time.');
      await person.waits(4000);
      await person.says('Meanwhile: how many minutes has a week?');
      await person.waits(30_000);
      person.expect('the sum is answered', /10[,. ]?080/.test(person.said()));
      person.expect('the result is told', /14[,.]?000/.test(person.said()));
      await person.says('Thanks! And is that before or after the subsidy?');
      await person.waits(10_000);
      person.expect('it is answered from the result', /after/i.test(person.said()));
      person.expect('it was searched once', person.done.length === 1);
    },
  },
  {
    name: 'failure',
    about: 'The work fails; the user is told in plain words',
    cast: (crew) => {
      const { agents, subagentConfigs } = researching(crew, () => 2000);
      const { research } = subagentConfigs;
      const model = scriptedModel({
        environment: crew.environment,
        otherwise: () => {
          throw new Error('HTTP 503 upstream_unavailable (req_8812)');
        },
      });
      return { agents, subagentConfigs: { research: { ...research, model } } };
    },
    async play(person) {
      await person.says('What does a heat pump cost?');
      await person.waits(40_000);
      person.expect('the user hears no code', !/503|upstream|req_8812/.test(person.said()));
      person.expect(
        'the work has failed',
        person.state.subagents.some(({ state }) => state === 'failed'),
      );
      await person.says('Then leave it.');
      await person.waits(8000);
    },
  },
  {
    name: 'step-limit',
    about: 'Each search names the next one, and there are more than steps: the last step hands in',
    cast: ({ model, takes, did }) => ({
      agents: [
        {
          name: 'lead',
          instructions: ASSISTANT,
          tools: [background('find_owner', 'Finds who is behind a company', 'company', 'I ask.')],
        },
      ],
      subagentConfigs: {
        find_owner: {
          name: 'clerk',
          instructions: 'You find out who owns a company, up to the person at the top.',
          model: model('clerk'),
          maxSteps: 4,
          tools: {
            look_up: work(
              'Names the owner of one company',
              ['company'],
              async ({ company = '' }) => {
                did(company);
                await takes(1500, null);
                const at = OWNERS.findIndex((name) => name.toLowerCase() === company.toLowerCase());
                return { company, owner: OWNERS[at + 1] ?? 'not known' };
              },
            ),
          },
        },
      },
    }),
    async play(person) {
      await person.says('Who is behind Mill Lane Books?');
      await person.waits(45_000);
      person.expect('all steps were used', person.done.length === 3);
      person.expect('what was found is told', /Alster/.test(person.said()));
      person.expect('no internals are said', !/maxSteps|step limit|steps/i.test(person.said()));
    },
  },
  {
    name: 'own-subagents',
    about:
      'The lead agent starts subagents by itself; the user asks how far they are, and ends one',
    cast: (crew) => {
      const { subagentConfigs } = researching(crew, () => 6000);
      const { research } = subagentConfigs;
      return {
        agents: [
          {
            name: 'lead',
            instructions: `${ASSISTANT} You have subagents for longer work.`,
            tools: leadTools(
              createParentSubagentToolset({
                agent: {
                  name: 'worker',
                  instructions: research.instructions,
                  model: crew.model('worker'),
                  maxSteps: 6,
                  tools: { ...research.tools, ...createChildSubagentToolset() },
                },
              }),
            ),
          },
        ],
      };
    },
    async play(person) {
      await person.says(
        'Have somebody find out what solar panels cost, and somebody else about heat pumps.',
      );
      await person.waits(6000);
      await person.says('How far are they?');
      await person.waits(6000);
      await person.says('Stop the heat pump one, I do not need it any more.');
      await person.waits(40_000);
      person.expect('the result about solar panels is told', /7[,.]?000/.test(person.said()));
    },
  },
];

/** The user stops one of two tasks, adds to the other one and asks about it, in these words. */
function steered(
  name: string,
  wire: Conversation['wire'],
  language: string,
  [both, stop, tell, ask]: readonly [string, string, string, string],
): Conversation {
  return {
    name,
    ...(wire !== undefined && { wire }),
    about: `The user stops one of two tasks, adds to the other, and asks about it (${language})`,
    cast: (crew) => researching(crew, () => 30_000),
    async play(person) {
      await person.says(both);
      await person.waits(12_000);
      await person.says(stop);
      await person.waits(8000);
      const states = () => person.state.subagents.map(({ state }) => state).toSorted();
      person.expect('one task was stopped', states().join() === 'cancelled,running');
      await person.says(tell);
      await person.waits(8000);
      await person.says(ask);
      await person.waits(8000);
      person.expect('nothing was begun anew', person.state.subagents.length === 2);
      await person.waits(80_000);
      person.expect('the other task is done', states().join() === 'cancelled,completed');
      person.expect('its result is told', /7[,. ]?000/.test(person.said()));
    },
  };
}

export const steering: readonly Conversation[] = [
  steered('steering', undefined, 'English', [
    'Find out what a heat pump costs, and what solar panels cost.',
    "Stop the heat pump one, we don't need that any more.",
    'And for the other one: also the price in Austria, please.',
    'How is it going?',
  ]),
  steered('steering-realtime', 'openai-realtime', 'Portuguese', [
    'Descobre quanto custa uma bomba de calor e quanto custam painéis solares.',
    'Deixa lá a bomba de calor.',
    'Nos painéis, vê também o preço na Áustria.',
    'Então, como é que está isso?',
  ]),
  steered('steering-gemini', 'gemini-live', 'German', [
    'Finde heraus, was eine Wärmepumpe kostet, und was Solarzellen kosten.',
    'Das mit der Wärmepumpe brauche ich doch nicht.',
    'Und bei den Solarzellen bitte auch den Preis in Österreich.',
    'Wie weit bist du denn?',
  ]),
];
