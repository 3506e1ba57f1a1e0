// Providers cache the start of a request if they have read it before, and charge a tenth of the price for it. So each
// request of a subagent or lead agent starts with the bytes of the previous one, and a part that has been sent never
// changes.

import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import type { ScriptedPrompt } from '../../src/testing/index.ts';
import { textLife, world } from '../support/crashes.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { instructionsOf, type TalkOptions } from '../support/text-talk.ts';

/** Records the parts of each request as JSON. */
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
  // The script makes its decisions from its prompt, so that the model of another process can continue.
  script: ({ prompt }: ScriptedPrompt) =>
    turns[prompt.filter(({ role }) => role === 'assistant').length] ?? say('Done.'),
  config: {
    interactive: true,
    maxSteps: 20,
    tools: { look: simpleTool(() => ({ found: [1, 2] })) },
  },
};

/** Answers the subagent's questions. After a crash, the open question is asked again. */
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
    // Each process writes the lead agent's notes with a new key that is in no journal (MARK-1).
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

test('detects a system message that contains the time', () => {
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
