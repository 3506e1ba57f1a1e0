// The first program of the README: printed as it runs, without a key and with one.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scriptedModel } from '../../src/testing/index.ts';
import { answerOf } from '../support/model-answers.ts';
import { providers, type Provider } from '../support/providers.ts';

const run = promisify(execFile);
const program = new URL('../../examples/00-first-session.ts', import.meta.url);
const source = readFileSync(program, 'utf8');
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** Other words than the script's, so that they can only come from the server. */
const mind = scriptedModel({
  scripts: [
    {
      when: 'Get the options',
      script: [
        { calls: [{ name: 'get_ride_options', input: { destination: 'the airport' } }] },
        ({ results: [options] }) => ({
          calls: [{ name: 'ask_user', input: { question: 'Economy or premium?', options } }],
        }),
        ({ results: [answer] }) => ({
          calls: [{ name: 'confirm_ride', input: { optionId: (answer as Answer).optionId } }],
        }),
        ({ results: [ride] }) => ({ text: `Booked: ${(ride as Answer).optionId}.` }),
      ],
    },
    {
      when: 'You are a friendly travel assistant',
      script: [
        { calls: [{ name: 'book_ride', input: { destination: 'the airport' } }] },
        { text: 'One second, I will get you a ride.' },
        { text: 'All set: premium, to the airport.' },
      ],
    },
  ],
});

interface Answer {
  readonly optionId: string;
}

let server: LLMock;
beforeAll(async () => {
  const openai = providers.find(({ name }) => name === 'openai responses') as Provider;
  server = new LLMock({ port: 0, host: '127.0.0.1', strict: true, logLevel: 'silent' });
  server.on({ predicate: () => true }, (asked) => answerOf(mind, asked, openai));
  await server.start();
});
afterAll(() => server.stop());

test('the README prints the program that the tests run', () => {
  const [printed = ''] = /(?<=^```ts\n)[^]*?(?=^```$)/m.exec(readme) ?? [];
  const body = source.slice(source.indexOf('\n\n') + 2);
  expect(printed).toBe(
    body
      .replace("'../src/index.ts'", "'offstage'")
      .replace("'../src/testing/index.ts'", "'offstage/testing'"),
  );
});

test('and what it prints', async () => {
  const env = { ...process.env, OPENAI_API_KEY: '' };
  const { stdout } = await run(
    process.execPath,
    ['--conditions=offstage-source', program.pathname],
    { env },
  );
  expect(readme).toContain(`\`\`\`\n${stdout}\`\`\`\n`);
});

test('with a key it talks to the model of its provider', async () => {
  const env = {
    ...process.env,
    OPENAI_API_KEY: 'some-key',
    OPENAI_BASE_URL: `${server.url}/v1`,
  };
  const { stdout, stderr } = await run(
    process.execPath,
    ['--conditions=offstage-source', program.pathname],
    { env },
  );
  expect(stderr).toBe('');
  expect(stdout.split('\n')).toEqual([
    'you: Book me a ride to the airport, please.',
    'assistant: One second, I will get you a ride.',
    'ride_booker asks: Economy or premium? (Economy or Premium)',
    'you: Premium',
    'assistant: All set: premium, to the airport.',
    '',
  ]);
});
