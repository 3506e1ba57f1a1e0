// The first program in the README prints what the README shows.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, expect, it, test } from 'vitest';
import { scriptedModel } from '../../src/testing/index.ts';
import { answerOf } from '../support/model-answers.ts';
import { providers, type Provider } from '../support/providers.ts';

const program = new URL('../../examples/00-first-session.ts', import.meta.url);
const source = readFileSync(program, 'utf8');
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The researcher completes its work only after the conversation has continued. */
const { promise: isPeruTold, resolve: peruIsTold } = Promise.withResolvers<undefined>();
const mind = scriptedModel({
  scripts: [
    { when: 'Write three sentences', script: [{ text: 'Heat pumps save money in the long run.' }] },
    {
      when: 'You are a helpful assistant',
      script: [
        { calls: [{ name: 'research', input: { topic: 'heat pumps' } }] },
        { text: 'I am on it.' },
        { text: 'Lima.' },
        ({ prompt }) => {
          if (!JSON.stringify(prompt).includes('save money in the long run'))
            return { text: 'No report has come.' };
          return {
            text: 'The report is ready: a heat pump costs more than a boiler, and less to run.',
          };
        },
      ],
    },
  ],
});

let server: LLMock;
beforeAll(async () => {
  const openai = providers.find(({ name }) => name === 'openai responses') as Provider;
  server = new LLMock({ port: 0, host: '127.0.0.1', strict: true, logLevel: 'silent' });
  server.on({ predicate: () => true }, async (asked) => {
    if (JSON.stringify(asked.messages).includes('Write three sentences')) await isPeruTold;
    return answerOf(mind, asked, openai);
  });
  await server.start();
});
afterAll(() => server.stop());

test("runs the README's program", () => {
  const [printed = ''] = /(?<=^```ts\n)[^]*?(?=^```$)/m.exec(readme) ?? [];
  expect(printed).toBe(source.slice(source.indexOf('\n\n') + 2));
  expect(printed.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(25);
});

/** Runs the program, and types each line once the printed text matches the line's pattern. */
async function talk(
  env: NodeJS.ProcessEnv,
  typed: readonly (readonly [after: RegExp, line: string])[],
  end: RegExp,
): Promise<{ readonly shown: string; readonly errors: string }> {
  const child = spawn(process.execPath, ['--conditions=offstage-source', program.pathname], {
    env,
  });
  let [shown, errors] = ['', ''];
  const waiting = [...typed];
  const onText = (text: string): void => {
    shown += text;
    const [next] = waiting;
    if (next && next[0].test(shown)) {
      waiting.shift();
      shown += `${next[1]}\n`;
      child.stdin.write(`${next[1]}\n`);
    } else if (shown.includes('Lima')) peruIsTold(undefined);
    if (end.test(shown + errors)) child.kill();
  };
  child.stdout.setEncoding('utf8').on('data', onText);
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
    onText('');
  });
  child.once('spawn', () => onText(''));
  await once(child, 'close');
  return { shown, errors };
}

it('prints the output shown in the README with a model from its provider', async () => {
  const env = { ...process.env, OPENAI_API_KEY: 'some-key', OPENAI_BASE_URL: `${server.url}/v1` };
  const { shown, errors } = await talk(
    env,
    [
      [/^$/, 'Find out about heat pumps, please.'],
      [/on it\.\n$/, 'What is the capital of Peru?'],
    ],
    /boiler/,
  );
  expect(errors).toBe('');
  expect(readme).toContain(`\`\`\`\n${shown}\`\`\`\n`);
});

it('names the missing key', async () => {
  // Without the variables of a test runner, which would send an app's errors elsewhere.
  const { errors } = await talk({ PATH: process.env['PATH'] }, [[/^$/, 'Hello']], /offstage: .*\n/);
  expect(errors).toMatch(/^offstage: lead model: PROVIDER_UNAUTHORIZED: .*OPENAI_API_KEY/);
});
