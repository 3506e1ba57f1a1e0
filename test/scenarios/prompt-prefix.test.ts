// Providers cache the beginning of a request that they have read before, and charge a tenth for it. So each request of
// a subagent and of the lead agent begins with the bytes of the previous one: a sent part never changes.

import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import type { ScriptedPrompt } from '../../src/testing/index.ts';
import { textLife, world } from '../support/crashes.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { instructionsOf, type TalkOptions } from '../support/text-talk.ts';

/** Records each request in parts, as JSON. */
function noting(requests: LanguageModelV4CallOptions[]): TalkOptions['wire'] {
  return (mind) => ({
    ...mind,
    doGenerate: (call: LanguageModelV4CallOptions) => {
      requests.push(call);
      return mind.doGenerate(call);
    },
    doStream: (call: LanguageModelV4CallOptions) => {
      requests.push(call);
      return mind.doStream(call);
    },
  });
}

const isOf = (instructions: string) => (request: LanguageModelV4CallOptions) =>
  request.prompt.some(({ role, content }) => role === 'system' && content.includes(instructions));

function expectOnePrefix(requests: readonly LanguageModelV4CallOptions[]): void {
  for (const [index, request] of requests.entries()) {
    const before = requests[index - 1];
    if (!before) continue;
    expect(JSON.stringify(request.tools)).toBe(JSON.stringify(before.tools));
    const sent = before.prompt.map((message) => JSON.stringify(message));
    const now = request.prompt.map((message) => JSON.stringify(message));
    expect(now.slice(0, sent.length)).toEqual(sent);
    expect(now.length).toBeGreaterThan(sent.length);
  }
}

const turns = [
  calls(['look'], ['look']),
  calls(['ask_user', { question: 'Which one?' }]),
  { ...calls(['look']), text: 'The first one, then.' },
  calls(['ask_user', { question: 'Sure?' }], ['ask_user', { question: 'Really?' }]),
  say('Done.'),
] as const;

const worker = {
  // The script decides by its prompt, so that the model of another process continues.
  script: ({ prompt }: ScriptedPrompt) =>
    turns[prompt.filter(({ role }) => role === 'assistant').length] ?? say('Done.'),
  config: {
    interactive: true,
    maxSteps: 20,
    tools: { look: simpleTool(() => ({ found: [1, 2] })) },
  },
};

/** Answers the subagent's questions; after a crash the open one is asked again. */
async function toTheEnd(life: ReturnType<typeof textLife>): Promise<void> {
  for (let said = 0; said < 4 && life.state().subagents[0]?.endedAt === null; said += 1)
    await life.type('yes');
  expect(life.state().subagents).toMatchObject([{ state: 'completed' }]);
}

test.each([false, true])(
  'keeps each prompt a prefix of the next across steps, tools, questions and a crash: %s',
  async (crashes) => {
    const requests: LanguageModelV4CallOptions[] = [];
    const of = world();
    const options: TalkOptions = { subagents: { ride: worker }, wire: noting(requests) };
    let life = textLife(of, options);
    await life.start();
    await life.type('use ride');
    await life.type('the first');
    const ofLeadBefore = requests.filter((one) => !isOf(instructionsOf('ride'))(one)).length;
    if (crashes) {
      life.kill();
      life = textLife(of, options);
      await life.start();
    }
    await toTheEnd(life);
    const own = requests.filter(isOf(instructionsOf('ride')));
    expect(own).toHaveLength(turns.length);
    expectOnePrefix(own);
    // Each process writes the notes of the lead agent with a new key, which no journal has (MARK-1).
    const leads = requests.filter((request) => !own.includes(request));
    const [before, after] = [leads.slice(0, ofLeadBefore), leads.slice(ofLeadBefore)];
    expect(leads.length).toBeGreaterThan(2);
    for (const ofOne of crashes ? [before, after] : [leads]) expectOnePrefix(ofOne);
    await life.close();
  },
);

test('keeps each prompt a prefix of the next after a message or a progress report', async () => {
  const requests: LanguageModelV4CallOptions[] = [];
  const options: TalkOptions = { subagents: { ride: worker }, wire: noting(requests) };
  const life = textLife(world(), options);
  await life.start();
  await life.type('use ride');
  life.session.subagents.send('sub_1', { content: 'Be quick', mode: 'steer' });
  await life.type('the first');
  life.session.subagents.send('sub_1', { content: 'Stop that', mode: 'interrupt' });
  await toTheEnd(life);
  const own = requests.filter(isOf(instructionsOf('ride')));
  expect(own.length).toBeGreaterThan(3);
  expectOnePrefix(own);
  await life.close();
});

test('the check finds a system message that contains the time', () => {
  const request = (now: number, more: number) => ({
    prompt: [
      { role: 'system' as const, content: `It is ${now}.` },
      ...Array.from({ length: more }, () => ({
        role: 'user' as const,
        content: [{ type: 'text' as const, text: 'Hello' }],
      })),
    ],
  });
  expect(() => expectOnePrefix([request(1, 1), request(1, 2)])).not.toThrow();
  expect(() => expectOnePrefix([request(1, 1), request(2, 2)])).toThrow();
});
