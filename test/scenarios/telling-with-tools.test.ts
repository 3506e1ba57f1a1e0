// A text lead agent that works with tools: it may call some while it is reporting due messages. While it waits for a
// tool, it answers the user and reports due messages.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineTool,
  type ToolDefinition,
  createChildSubagentToolset,
  createParentSubagentToolset,
} from '../../src/index.ts';
import { leadTools } from '../../src/entries/subagents.ts';
import {
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
  type ScriptedStep,
} from '../../src/testing/index.ts';
import { textLife, turns, world } from '../support/crashes.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';

const look = (execute: (input: { key: string }) => unknown): ToolDefinition =>
  defineTool({
    name: 'look',
    description: 'Looks something up',
    parameters: z.object({ key: z.string() }),
    execute,
  });

/** Returns the outputs of the calls after the message that contains this text. */
function outputsSince({ prompt }: ScriptedPrompt, words: string): readonly unknown[] {
  const since = prompt.findIndex((message) => JSON.stringify(message).includes(words));
  return prompt
    .slice(since + 1)
    .flatMap((message) => (message.role === 'tool' ? message.content : []));
}

/** Reports `order` as `tells` decides, and answers everything else. */
const telling =
  (tells: (outputs: readonly unknown[], prompt: ScriptedPrompt) => ReturnType<Script>): Script =>
  (prompt) =>
    JSON.stringify(prompt.prompt).includes('The order was sent')
      ? tells(outputsSince(prompt, 'The order was sent'), prompt)
      : leadScript(prompt);

async function told(options: TalkOptions) {
  const talk = textTalk(options);
  await talk.start();
  talk.session.notifyBackground('The order was sent');
  await talk.environment.settle();
  return { ...talk, delivery: () => talk.state().deliveries[0] };
}

describe('TEXT-LEAD-6: a delivery that may call tools', () => {
  test('calls a tool, reads its result and counts as heard after the final message', async () => {
    const asked: string[] = [];
    const { delivery, parts } = await told({
      tools: [look(({ key }) => (asked.push(key), 'parcel 7'))],
      lead: telling(([output]) =>
        output
          ? say('Parcel 7 was sent.')
          : { text: 'Let me see.', calls: [{ name: 'look', input: { key: 'a' } }] },
      ),
    });
    expect(asked).toEqual(['a']);
    expect(delivery()).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(parts.filter(({ type }) => type === 'text.done')).toMatchObject([
      { text: 'Let me see.', deliveryId: null },
      { text: 'Parcel 7 was sent.', deliveryId: delivery()?.deliveryId },
    ]);
  });

  test('counts text before a call as delivered if no text follows', async () => {
    const { delivery, parts, events, errors } = await told({
      tools: [look(() => 'seen')],
      lead: telling(([output]) =>
        output
          ? { text: '' }
          : { text: 'It was sent.', calls: [{ name: 'look', input: { key: 'a' } }] },
      ),
    });
    expect(errors).toEqual([]);
    expect(delivery()).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(parts.filter(({ type }) => type === 'text.done')).toMatchObject([
      { text: 'It was sent.', deliveryId: delivery()?.deliveryId },
    ]);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'transcript.changed',
        item: expect.objectContaining({ text: 'It was sent.', deliveryId: delivery()?.deliveryId }),
      }),
    );
  });

  test('starts again after calls without text, does not repeat any call and becomes a card', async () => {
    const keys: string[] = [];
    const { delivery, environment } = await told({
      tools: [look(({ key }) => (keys.push(key), 'seen'))],
      // The lead agent repeats the same call for as long as it is allowed to, and never speaks.
      lead: telling((_, { toolNames }) =>
        toolNames.length > 0 ? calls(['look', { key: 'a' }]) : { text: '' },
      ),
    });
    await environment.advance(60_000);
    expect(keys).toEqual(['a']);
    expect(delivery()).toMatchObject({ attempts: 3, grade: 'shown' });
  });

  test('limits the rounds of calls in each attempt and then makes the model speak', async () => {
    const keys: string[] = [];
    const { delivery, environment } = await told({
      tools: [look(({ key }) => (keys.push(key), 'seen'))],
      // The lead agent never stops calling the tool, each time with a different argument.
      lead: telling((outputs) => calls(['look', { key: `${outputs.length}` }])),
    });
    await environment.advance(60_000);
    expect(keys).toHaveLength(3 * 8);
    expect(new Set(keys).size).toBe(keys.length);
    expect(delivery()).toMatchObject({ attempts: 3, grade: 'shown' });
  });

  test('waits while the lead agent answers the user and is then delivered without another call', async () => {
    const keys: string[] = [];
    let settle: (value: unknown) => void = () => {};
    const slow = new Promise((resolve) => (settle = resolve));
    const { delivery, type, said, environment } = await told({
      tools: [look(({ key }) => (keys.push(key), slow))],
      lead: (prompt) => {
        if (prompt.user === 'Hello?') return say('Yes?');
        return telling(([output]) => (output ? say('Sent.') : calls(['look', { key: 'a' }])))(
          prompt,
        );
      },
    });
    await type('Hello?');
    settle('seen');
    await environment.advance(1000);
    expect(said()).toEqual(['Yes?', 'Sent.']);
    expect(keys).toEqual(['a']);
    expect(delivery()).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('limits how many results can start more work before the user speaks again', async () => {
    let count = 0;
    const { start, type, environment, session } = textTalk({
      subagents: { report: { script: () => say('Sales are up.') } },
      consolidation: 'off',
      limits: { maxTotalPerSession: 1000 },
      // Each result makes the lead agent start another call with different arguments.
      lead: (prompt) =>
        prompt.toolNames.length > 0 && prompt.prompt.at(-1)?.role !== 'tool'
          ? calls(['report', { again: (count += 1) }])
          : say('On it.'),
    });
    await start();
    await type('go');
    await environment.advance(600_000);
    expect(session.subagents.list().length).toBeLessThanOrEqual(33);
    const before = count;
    await type('go on');
    await environment.advance(600_000);
    // The reply leads to results, whose messages lead to further calls.
    expect(count).toBeGreaterThan(before + 10);
  });
});

describe("a subagent's question to an idle lead agent", () => {
  const child = createChildSubagentToolset();
  const asking: TalkOptions = {
    subagents: {
      paint: {
        script: turns(calls(['request_input', { question: 'Which colour?' }]), ({ results }) =>
          say(`Painted it: ${JSON.stringify(results.at(-1))}`),
        ),
        config: { tools: { request_input: child.request_input } },
      },
    },
    tools: leadTools(createParentSubagentToolset()),
    lead: (prompt) => {
      const { user } = prompt;
      const asked = /SUBAGENT REQUEST/.test(user) || user.includes('Which colour?');
      if (!asked) return leadScript(prompt);
      const [, subagentId = ''] = /(sub_\d+)/.exec(user) ?? [];
      const [, inResponseTo = ''] = /(sub_\d+\.\w+)/.exec(user) ?? [];
      return outputsSince(prompt, 'Which colour?').length > 0
        ? { text: '' }
        : calls(['send_to_subagent', { subagentId, content: 'Blue', inResponseTo }]);
    },
  };

  test('receives its answer in the response that presents it', async () => {
    const { start, type, said, environment, state, errors } = textTalk(asking);
    await start();
    await type('use paint');
    await environment.advance(1000);
    expect(state().subagents).toMatchObject([{ state: 'completed' }]);
    expect(said().join()).toContain('Blue');
    expect(errors).toEqual([]);
    // The request was handled and is no longer reported.
    expect(state().deliveries.map(({ kind, state: now }) => [kind, now])).toEqual([
      ['notice', 'dismissed'],
      ['result', 'delivered'],
    ]);
  });
});

describe('P6: a delivery that a crash interrupts', () => {
  const options = (keys: string[]): TalkOptions => ({
    tools: [look(({ key }) => (keys.push(key), 'parcel 7'))],
    lead: telling(([output]) =>
      output ? say('Parcel 7 was sent.') : calls(['look', { key: 'a' }]),
    ),
  });

  test('reaches the user after a crash at each entry and does not repeat any call', async () => {
    const whole = world();
    const first = textLife(whole, options([]));
    await first.start();
    first.session.notifyBackground('The order was sent');
    await whole.environment.advance(1000);
    const entries = whole.written;
    expect(entries).toBeGreaterThan(5);
    for (let entry = 4; entry <= entries; entry += 1) {
      const of = world();
      const keys: string[] = [];
      of.killAt(entry, 'after');
      const before = textLife(of, options(keys));
      await before.start();
      before.session.notifyBackground('The order was sent');
      await of.environment.advance(1000);
      before.kill();
      const after = textLife(of, options(keys));
      await after.start();
      await of.environment.advance(10_000);
      expect(keys.length, `killed after entry ${entry}`).toBeLessThanOrEqual(1);
      const [delivery] = after.state().deliveries;
      if (delivery) expect(delivery.state, `killed after entry ${entry}`).toBe('delivered');
      after.kill();
    }
  });
});

describe('TEXT-LEAD-7: a lead model that waits', () => {
  /** Works for this long and then follows the script. */
  const working = (ms: number, ...then: ScriptedStep[]): TalkOptions => {
    const environment = simulatedEnvironment();
    const work = () =>
      new Promise((resolve) => environment.scheduler.schedule(() => resolve('done'), ms));
    const report = {
      script: turns(calls(['work']), ...then),
      config: { tools: { work: simpleTool(work) }, interactive: true },
    };
    return { environment, consolidation: 'off', subagents: { report } };
  };
  const slow = (): TalkOptions => working(200_000, say('The report is ready.'));
  const awaiting = (name: string, input: object, more: TalkOptions = slow()): TalkOptions => ({
    ...more,
    tools: leadTools(createParentSubagentToolset()),
    lead: (prompt) => {
      const { user } = prompt;
      if (user === 'wait for it') {
        const [output] = outputsSince(prompt, 'wait for it');
        return output ? say(`It says ${JSON.stringify(output)}`) : calls([name, input]);
      }
      return leadScript(prompt);
    },
  });

  test.each([
    ['one', { subagentId: 'sub_1' }],
    ['several', { subagentIds: ['sub_1'], mode: 'all' }],
  ])('stops waiting for %s when the user speaks, and learns the reason', async (_, input) => {
    const prompts: ScriptedPrompt[] = [];
    const { start, type, said, environment, state } = textTalk({
      ...awaiting('await_subagent', input),
      onModelCall: (_who, prompt) => prompts.push(prompt),
    });
    await start();
    await type('use report');
    await type('wait for it');
    await environment.advance(10_000);
    await type('Hello?');
    expect(said().at(-1)).toBe('You said: Hello?');
    expect(JSON.stringify(prompts.at(-1)?.prompt)).toMatch(/"status":"interrupted".*"why":"user"/);
    // The subagent that the lead agent waited for continues, and its result is delivered.
    await environment.advance(300_000);
    expect(said().at(-1)).toContain('The report is ready.');
    expect(state().deliveries.at(-1)).toMatchObject({ state: 'delivered' });
  });

  test('stops waiting immediately if a message arrived before the wait', async () => {
    const { start, type, session, said, environment } = textTalk(
      awaiting('await_subagent', { subagentId: 'sub_1' }),
    );
    await start();
    await type('use report');
    // The model is still working on its first answer.
    await session.sendText('wait for it');
    await session.sendText('Hello?');
    await environment.settle();
    await environment.advance(10_000);
    expect(said().at(-1)).toBe('You said: Hello?');
  });

  test("presents the awaited subagent's question to the user and receives the answer", async () => {
    const { start, type, environment, question, said } = textTalk(
      awaiting(
        'await_subagent',
        { subagentId: 'sub_1' },
        working(10_000, calls(['ask_user', { question: 'Which quarter?' }]), say('Q3 it is.')),
      ),
    );
    await start();
    await type('use report');
    await type('wait for it');
    await environment.advance(15_000);
    expect(question()).toMatchObject({ state: 'open', question: 'Which quarter?' });
    await type('The third quarter');
    await environment.advance(1000);
    expect(said().join()).toMatch(/A call has its result now|It says .*Q3 it is/);
  });

  test("delivers results while a slow tool is running, and then replies to the tool's result", async () => {
    const { start, type, session, said, environment } = textTalk({
      tools: [
        look(
          () =>
            new Promise((resolve) =>
              environment.scheduler.schedule(() => resolve('found'), 20_000),
            ),
        ),
      ],
    });
    await start();
    await type('use look {"key":"a"}');
    session.notifyBackground('The order was sent');
    await environment.advance(5000);
    expect(said()).toEqual([expect.stringContaining('The order was sent')]);
    await environment.advance(20_000);
    expect(said().at(-1)).toContain('A call has its result now');
    await type('and now?');
    expect(said().at(-1)).toBe('You said: and now?');
  });
});
