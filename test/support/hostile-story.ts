// A conversation whose models, tools, providers and users write text that databases and wires cannot handle: the
// character 0, halves of surrogate pairs, ids that are too long, and deeply nested arguments. It can be played with any
// journal.

import { expect } from 'vitest';
import { replaySession } from '../../src/entries/replay.ts';
import { z } from 'zod';
import { createRuntime, defineTool, type Journal } from '../../src/index.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { chance } from './mutated-entries.ts';
import { calls, say, simpleTool } from './subagent-runs.ts';
import { textTalk } from './text-talk.ts';
import { turns } from './crashes.ts';

const PIECES = ['\0', '\uD800', '\uDC00', '🚕', 'é', '\u2028', '"', '\\', '\uFFFD', '\n', 'a', "'"];

function hostile(random: () => number, length = 1 + Math.floor(random() * 8)): string {
  let text = '';
  while (text.length < length) text += PIECES[Math.floor(random() * PIECES.length)] ?? '';
  return random() < 0.1 ? text.repeat(200) : text;
}

function nested(random: () => number, levels: number): unknown {
  let value: unknown = hostile(random);
  for (let level = 0; level < levels; level += 1) value = { [hostile(random)]: [value] };
  return value;
}

/** Returns the state in a later process and the consequences of each entry. */
export async function hostileStory(journal: Journal, seed: number) {
  const random = chance(seed);
  const words = () => hostile(random);
  // Each speaker has its own random numbers, because it depends on the journal who speaks first.
  const speakers = [1, 2, 3].map((speaker) => chance(seed * 1000 + speaker));
  const wordsOf = (speaker: number) => hostile(speakers[speaker] ?? random);
  const ids = { lead: words(), tool: words(), question: words(), failing: words() };
  const input = nested(random, 20);
  const output = nested(random, 20);
  const returned: unknown[] = [];
  const process = (number: number) => {
    const simulated = simulatedEnvironment({ startAt: 1_700_000_000_000 + number * 3_600_000 });
    const environment = {
      ...simulated,
      ids: { next: (prefix: string) => simulated.ids.next(`${prefix}_${number}_`) },
    };
    return textTalk({
      sessionId: 'hostile',
      // No API would write these call ids.
      isNoApi: true,
      environment,
      runtime: createRuntime({ environment, journal }),
      lead: ({ user, prompt }) =>
        prompt.at(-1)?.role !== 'tool' && user.startsWith('go')
          ? {
              calls: [
                { name: 'work', input: JSON.stringify({ input }), id: ids.lead },
                { name: 'inline', input: JSON.stringify({ input }), id: ids.tool },
              ],
            }
          : { text: `${wordsOf(0)} said` },
      tools: [
        defineTool({
          name: 'inline',
          description: 'Returns what it likes',
          parameters: z.looseObject({}),
          execute: (given) => {
            returned.push(given);
            return output;
          },
        }),
      ],
      subagents: {
        work: {
          script: turns(
            calls(['do', { input }, ids.tool], ['fail', { input }, ids.failing]),
            calls(['ask_user', { question: `Which${words()}?` }, ids.question]),
            () => say(`${wordsOf(1)} done`),
          ),
          config: {
            interactive: true,
            tools: {
              do: simpleTool(() => output),
              fail: simpleTool(() => {
                throw new Error(`No: ${wordsOf(2)}`);
              }),
            },
          },
        },
      },
    });
  };
  const first = process(1);
  await first.start();
  await first.type(`go ${words()}`);
  await first.environment.advance(5000);
  const question = first.state().questions.find(({ state }) => state === 'open');
  expect(question, `seed ${seed}`).toBeDefined();
  const suspended = first.session.suspend();
  await first.environment.advance(10_000);
  await suspended;
  const second = process(2);
  await second.start();
  await second.environment.advance(5000);
  const answer = { text: `economy ${words()}` };
  const receipt = second.session.answer(question?.requestId ?? '', answer);
  await second.environment.advance(10_000);
  expect(await receipt, `seed ${seed}`).toEqual({ accepted: true });
  const { subagents, transcript } = second.state();
  expect(subagents.map(({ outcome }) => outcome?.status)).toEqual(['completed']);
  expect(subagents[0]?.outcome?.toolLedger.map(({ status }) => status)).toEqual([
    'ok',
    'error',
    'ok',
  ]);
  for (const one of [first, second])
    expect(one.events.filter(({ type }) => type === 'error.reported')).toEqual([]);
  await second.close();
  const entries = await journal.read({ scope: 'hostile' });
  for (const { actor, event } of entries) {
    expect(actor.isWellFormed() && !actor.includes('\0')).toBe(true);
    expect(JSON.stringify(event)).not.toMatch(/\\u0000|\\ud[89a-f]/);
  }
  const steps = [...replaySession(entries)];
  expect(steps.filter(({ isAccepted }) => !isAccepted)).toEqual([]);
  const { toolLedger = [], status, text } = subagents[0]?.outcome ?? {};
  // Ignores the order of the events, which depends on the speed of the journal.
  const inputs = toolLedger.map((call) => [call.callId, call.input, call.output]);
  const said = transcript.map((item) => `${item.role} ${item.text}`).toSorted();
  return { status, text, inputs, said, returned, last: steps.at(-1)?.view.connection };
}
