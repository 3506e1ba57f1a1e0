// Utterances while something is under way: a request in two pieces, and a slow tool of the lead agent.

import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../../../src/index.ts';
import type { Conversation, Crew } from '../play.ts';
import { ASSISTANT, background, work } from './assistant.ts';

/** A lead agent whose own tool takes 20 seconds. */
function looking({ takes, did }: Crew, detach?: ToolDefinition['detach']) {
  const trains = defineTool({
    name: 'next_train',
    description: 'Finds the next train to a city',
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      did(`next_train ${city}`);
      return takes(20_000, { city, leaves: '14:32', platform: 5 });
    },
    timeout: 60_000,
    ...(detach !== undefined && { detach }),
  });
  return { agents: [{ name: 'lead', instructions: ASSISTANT, tools: [trains] }] };
}

/** A lead agent whose subagent writes emails. */
function mailing({ model, takes, did }: Crew) {
  return {
    agents: [
      {
        name: 'lead',
        instructions: ASSISTANT,
        tools: [background('write_mail', 'Writes and sends a mail', 'request', 'I am on it.')],
      },
    ],
    subagentConfigs: {
      write_mail: {
        name: 'secretary',
        instructions:
          'You write and send mails. Look up each address before you send. Report in one sentence.',
        model: model('secretary'),
        maxSteps: 8,
        tools: {
          address: work('Finds the address of a person', ['person'], ({ person = '' }) =>
            takes(5000, { address: `${person.toLowerCase().split(' ')[0]}@example.com` }),
          ),
          send_mail: work('Sends a mail', ['to', 'cc', 'text'], async ({ to, cc, text }) => {
            await takes(1000, null);
            did(`to ${to} cc ${cc}: ${text}`);
            return { sent: true };
          }),
        },
      },
    },
  };
}

function slow(name: string, wire?: Conversation['wire']): Conversation {
  return {
    name,
    ...(wire !== undefined && { wire }),
    about: `The user asks for something else while a tool takes long${wire === undefined ? '' : `, by voice (${wire})`}`,
    cast: (crew) => looking(crew),
    async play(person) {
      await person.says('When is the next train to Leeds?');
      await person.waits(5000);
      await person.says('By the way: what is eleven times twelve?');
      await person.waits(9000);
      person.expect('the sum does not wait for the train', /132/.test(person.said()));
      await person.waits(30_000);
      person.expect('the train is told', /14[:.]32|2[:.]32/.test(person.said()));
      person.expect('it was looked up once', person.done.length === 1);
    },
  };
}

export const wordsMeanwhile: readonly Conversation[] = [
  slow('slow-tool'),
  slow('slow-tool-gemini', 'gemini-live'),
  {
    name: 'slow-tool-stopped',
    about: 'A tool takes long; the user asks about it, and stops it',
    cast: (crew) => looking(crew, { afterMs: 3000, onWords: true }),
    async play(person) {
      await person.says('When is the next train to Leeds?');
      await person.waits(9000);
      await person.says('How is it going?');
      await person.waits(5000);
      await person.says("Leave it, I'll take the car.");
      await person.waits(30_000);
      person.expect('no train is told', !/14[:.]32|2[:.]32/.test(person.said()));
      person.expect('it was looked up once', person.done.length === 1);
    },
  },
  {
    name: 'request-in-pieces',
    about: 'The second half of a request comes when the first half has begun',
    cast: mailing,
    async play(person) {
      await person.says("Write to Anna that I'm ten minutes late.");
      await person.waits(1500);
      await person.says('And copy Bob.');
      await person.waits(60_000);
      person.expect('one mail was sent', person.done.length === 1);
      person.expect(
        'it says all of it',
        /to anna@example\.com/.test(person.done[0] ?? '') &&
          /cc bob@example\.com/.test(person.done[0] ?? '') &&
          /ten|10/.test(person.done[0] ?? ''),
      );
    },
  },
  {
    name: 'not-yet',
    about: 'The user takes a request back for the moment, and gives it later',
    cast: mailing,
    async play(person) {
      await person.says('I have to write to Anna about tomorrow…');
      await person.waits(1000);
      await person.says("but don't do anything yet, I have to think about it.");
      await person.waits(30_000);
      person.expect('nothing was sent', person.done.length === 0);
      await person.says('OK: tell her that we meet at nine.');
      await person.waits(60_000);
      person.expect('one mail was sent', person.done.length === 1);
      person.expect('with the time', /nine|9/.test(person.done[0] ?? ''));
    },
  },
];
