// A lead agent with a thinking model: the metadata of a call is returned to the provider completely and in order. The
// model refuses a prompt without the metadata, with the providers' error messages.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import type { Script, ScriptedPrompt, ScriptedStep } from '../../src/testing/index.ts';
import { simpleTool } from '../support/subagent-runs.ts';
import { textLife, world } from '../support/crashes.ts';
import { textTalk } from '../support/text-talk.ts';

const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: z.object({}),
  execute: () => 'seen',
});

/** A model that thinks, calls the tools that the user names, and then reports their results. */
const thinker: Script = ({ prompt, user }): ScriptedStep => {
  const called = /^use (.*)$/s.exec(user)?.[1];
  if (prompt.at(-1)?.role === 'tool' || called === undefined)
    return { thinking: 'It is there.', text: `Done after ${prompt.length}.` };
  return {
    thinking: `They want ${called}.`,
    text: 'Let me look.',
    calls: called.split(' and ').map((name) => ({ name, input: {} })),
  };
};

const reasoningIn = ({ prompt }: ScriptedPrompt): string[] =>
  prompt.flatMap(({ role, content }) =>
    role === 'assistant'
      ? content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))
      : [],
  );

function thinking(options: Parameters<typeof textTalk>[0] = {}) {
  const prompts: [who: string, prompt: ScriptedPrompt][] = [];
  const talk = textTalk({
    tools: [look],
    lead: thinker,
    onModelCall: (who, prompt) => prompts.push([who, prompt]),
    ...options,
  });
  return { ...talk, prompts, last: () => prompts.at(-1)![1] };
}

describe('a thinking model as lead agent', () => {
  test("receives its reasoning and its call's signature together with the result", async () => {
    const { start, type, errors, parts, last } = thinking();
    await start();
    await type('use look');
    expect(errors).toEqual([]);
    expect(parts.at(-1)).toMatchObject({ type: 'text.done', text: 'Done after 4.' });
    const answer = last().prompt.find(({ role }) => role === 'assistant');
    const own = { providerOptions: { offstage: { signature: 'signed: They want look.' } } };
    expect(answer?.content).toEqual([
      { type: 'reasoning', text: 'They want look.', ...own },
      { type: 'text', text: 'Let me look.' },
      expect.objectContaining({ type: 'tool-call', toolName: 'look', ...own }),
    ]);
  });

  test('receives its reasoning and signatures across several calls with messages in between', async () => {
    const { start, type, session, errors, environment, said } = thinking();
    await start();
    await type('use look and look');
    void session.sendText('use look');
    void session.sendText('use look and look');
    await environment.settle();
    await type('thanks');
    expect(errors).toEqual([]);
    expect(said().at(-1)).toMatch(/^Done/);
  });

  test('receives the reasoning of an earlier process after a restart, even from a snapshot', async () => {
    for (const snapshots of [{ afterEntries: Infinity }, { afterEntries: 1 }]) {
      const of = world({ snapshots });
      const first = textLife(of, { tools: [look], lead: thinker });
      await first.start();
      await first.type('use look');
      first.kill();
      const seen: ScriptedPrompt[] = [];
      const onModelCall = (_: string, prompt: ScriptedPrompt) => void seen.push(prompt);
      const second = textLife(of, { tools: [look], lead: thinker, onModelCall });
      await second.start();
      await second.type('thanks');
      expect(second.errors).toEqual([]);
      expect(reasoningIn(seen.at(-1)!)).toEqual(['They want look.', 'It is there.']);
      await second.close();
    }
  });

  test('passes its reasoning on in a transfer and to a subagent that forks the conversation', async () => {
    const { start, type, errors, prompts, environment, session } = thinking({
      others: [{ name: 'billing', script: thinker }],
      subagents: {
        report: {
          script: () => ({ thinking: 'Easy.', text: '43' }),
          config: { context: 'fork', tools: { count: simpleTool(() => 43) } },
        },
      },
    });
    await start();
    await type('use look');
    await type('use report');
    await environment.settle();
    const forked = prompts.find(([who]) => who === 'report')?.[1];
    expect(reasoningIn(forked!)).toEqual(['They want look.', 'It is there.']);
    await session.transfer('billing');
    await type('use look');
    expect(errors).toEqual([]);
    expect(prompts.at(-1)?.[0]).toBe('billing');
    expect(reasoningIn(prompts.at(-1)![1])).toContain('They want look.');
  });

  test('never receives a call without its reasoning after the conversation has been summarised or cut', async () => {
    for (const summarise of [async () => 'They looked.', false] as const) {
      const { start, type, errors, last } = thinking({
        conversation: {
          limits: { maxItems: 14, maxChars: 4000, maxItemChars: 500 },
          summarise,
          summariseAbove: 0.5,
          keepItems: 3,
        },
      });
      await start();
      for (let turn = 0; turn < 8; turn += 1) await type('use look and look');
      expect(errors).toEqual([]);
      expect(JSON.stringify(last().prompt)).toMatch(
        summarise ? /Context summary/ : /earlier items of this conversation are not included/,
      );
    }
  });
});
