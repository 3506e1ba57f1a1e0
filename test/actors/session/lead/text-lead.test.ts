// The lead agent of a text session in the middle of an answer: events arrive between its words, and a model stalls.

import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import {
  defineTool,
  TextSession,
  type LeadAgent,
  type TextPart,
  type TextSessionOptions,
  type ToolDefinition,
} from '../../../../src/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import { handModel, type HandAnswer } from '../../../support/hand-model.ts';

const inline = (name: string, execute: () => unknown): ToolDefinition =>
  defineTool({ name, description: `Does ${name}`, parameters: z.looseObject({}), execute });

async function talk(
  tools: readonly ToolDefinition[] = [],
  {
    isDeaf,
    others = [],
    greeting,
    ...options
  }: {
    isDeaf?: boolean;
    others?: LeadAgent[];
    greeting?: string;
  } & Partial<TextSessionOptions> = {},
) {
  const environment = simulatedEnvironment();
  const { model, answers } = handModel({ isDeaf });
  const errors: unknown[] = [];
  const session = new TextSession({
    environment,
    model,
    agents: [
      { name: 'lead', instructions: 'Answer.', tools, ...(greeting !== undefined && { greeting }) },
      ...others,
    ],
    hooks: { onError: (error) => errors.push(error) },
    ...options,
  });
  const parts: TextPart[] = [];
  session.parts.subscribe((part) => parts.push(part));
  await session.start();
  await environment.settle();
  return {
    environment,
    session,
    answers,
    errors,
    parts,
    said: () => parts.flatMap((part) => (part.type === 'text.done' ? [part.text] : [])),
    async type(text: string) {
      await session.sendText(text);
      await environment.settle();
    },
    /** Continues the current answer and lets a moment pass. */
    async go(step: (answer: HandAnswer) => void) {
      step(answers.at(-1) as HandAnswer);
      await environment.advance(10);
    },
    /** Returns the conversation that the model read in its last call: roles and texts. */
    read: () =>
      (answers.at(-1) as HandAnswer).asked.prompt.flatMap((message) => {
        if (message.role === 'system') return [];
        return message.content.map((part) => [
          message.role,
          part.type === 'text' ? part.text : part.type,
        ]);
      }),
  };
}

describe('TEXT-RESPONSE-1: orders a reply by its start time', () => {
  test('puts text before the tool call that follows it', async () => {
    const { type, go, read } = await talk([inline('look', () => 'seen')]);
    await type('Look.');
    await go((answer) => answer.text('Let me look.'));
    await go((answer) => answer.call('look'));
    await go((answer) => answer.finish());
    expect(read()).toEqual([
      ['user', 'Look.'],
      ['assistant', 'Let me look.'],
      ['assistant', 'tool-call'],
      ['tool', 'tool-result'],
    ]);
  });

  test('places a message after the reply during which the user sent it', async () => {
    const { type, go, read } = await talk();
    await type('One.');
    await go((answer) => answer.text('First'));
    await type('Two.');
    await go((answer) => answer.text(' answer.'));
    await go((answer) => answer.finish());
    expect(read()).toEqual([
      ['user', 'One.'],
      ['assistant', 'First answer.'],
      ['user', 'Two.'],
    ]);
  });
});

describe('messages that arrive before the first word of a reply', () => {
  test('follow the reply, and are answered next', async () => {
    const { type, go, read, answers, said } = await talk();
    await type('One.');
    await type('Two.');
    await go((answer) => answer.text('First answer.'));
    await go((answer) => answer.finish());
    expect(read()).toEqual([
      ['user', 'One.'],
      ['assistant', 'First answer.'],
      ['user', 'Two.'],
    ]);
    await go((answer) => answer.text('Second answer.'));
    await go((answer) => answer.finish());
    expect(answers).toHaveLength(2);
    expect(said()).toEqual(['First answer.', 'Second answer.']);
  });

  test('follow a greeting that is still being written', async () => {
    const { type, go, read } = await talk([], { greeting: 'Greet the user.' });
    await type('One.');
    await go((answer) => answer.text('Welcome!'));
    await go((answer) => answer.finish());
    expect(read().slice(-2)).toEqual([
      ['assistant', 'Welcome!'],
      ['user', 'One.'],
    ]);
  });

  test('follow the tool call if the model calls a tool first', async () => {
    const { type, go, read, answers } = await talk([inline('look', () => 'seen')]);
    await type('One.');
    await type('Two.');
    await go((answer) => answer.call('look'));
    await go((answer) => answer.finish());
    expect(answers).toHaveLength(2);
    expect(read()).toEqual([
      ['user', 'One.'],
      ['assistant', 'tool-call'],
      ['tool', 'tool-result'],
      ['user', 'Two.'],
    ]);
  });
});

describe('a reply', () => {
  it('ends without further text if its text came before a tool call', async () => {
    const { type, go, answers, errors, parts, said } = await talk([inline('note', () => 'noted')]);
    await type('Note it.');
    await go((answer) => answer.text('I have noted it.'));
    await go((answer) => answer.call('note'));
    await go((answer) => answer.finish());
    expect(answers).toHaveLength(2);
    await go((answer) => answer.finish());
    expect(answers).toHaveLength(2);
    expect(errors).toEqual([]);
    expect(said()).toEqual(['I have noted it.']);
    expect(parts.map(({ type: kind }) => kind)).not.toContain('response.failed');
  });

  it('precedes a result whose delivery has not started', async () => {
    const { type, go, read, session, environment, said } = await talk();
    await type('Hello.');
    await go((answer) => answer.text('Hi.'));
    await go((answer) => answer.finish());
    session.notifyBackground('The mail has come.');
    void session.sendText('One.');
    await environment.settle();
    expect(read().at(-1)).toEqual(['user', 'One.']);
    await go((answer) => answer.text('First answer.'));
    await go((answer) => answer.finish());
    expect(read().at(-1)).toEqual(['user', expect.stringContaining('The mail has come.')]);
    await go((answer) => answer.text('There is mail.'));
    await go((answer) => answer.finish());
    expect(said()).toEqual(['Hi.', 'First answer.', 'There is mail.']);
  });
});

test("includes a result once, even if the model's reply is empty", async () => {
  const { read, go, session, environment, answers } = await talk();
  session.notifyBackground('The mail has come.');
  await environment.settle();
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await go((answer) => answer.finish());
    await environment.advance(10_000);
  }
  expect(answers.length).toBeGreaterThan(2);
  expect(JSON.stringify(read()).split('The mail has come.')).toHaveLength(2);
});

describe('a model that stalls', () => {
  test('times out after 60 s, even if it ignores its signal, without delaying the next reply', async () => {
    const { type, go, environment, parts, said } = await talk([], { isDeaf: true });
    await type('Hello?');
    await environment.advance(60_000);
    expect(parts).toEqual([expect.objectContaining({ code: 'RESPONSE_TIMEOUT' })]);
    await type('Are you there?');
    await go((answer) => answer.text('Yes.'));
    await go((answer) => answer.finish());
    expect(said()).toEqual(['Yes.']);
  });

  test('continues past its timeout as long as the model is active', async () => {
    const { type, go, environment, parts, said } = await talk();
    await type('Think.');
    for (let step = 0; step < 5; step += 1) {
      await go((answer) => answer.reasoning('Hm. '));
      await environment.advance(40_000);
    }
    expect(parts).toEqual([]);
    await go((answer) => answer.text('Done.'));
    await go((answer) => answer.finish());
    expect(said()).toEqual(['Done.']);
  });
});

describe('TEXT-LEAD-4: resumes an answer that an urgent notice interrupted', () => {
  const fire = 'The building is on fire';

  test.each(['dismiss', 'shown'] as const)(
    'resumes the answer even after a call to %s during the delivery',
    async (how) => {
      const { type, go, session, environment, answers, read } = await talk();
      await type('What is my balance?');
      await go((answer) => answer.text('Your '));
      const id = session.notifyBackground(fire, { priority: 'urgent' });
      await environment.settle();
      expect(answers).toHaveLength(2);
      await go((answer) => answer.text('There is'));
      session[how](id);
      await environment.settle();
      if (how === 'shown') await go((answer) => answer.finish());
      expect(answers).toHaveLength(3);
      expect(read().at(-1)).toEqual(['user', expect.stringContaining('cut off')]);
    },
  );

  test('keeps a reader open until the answer is complete', async () => {
    const { go, session, environment } = await talk();
    const read: string[] = [];
    const reading = (async () => {
      for await (const part of session.send('What is my balance?'))
        if (part.type === 'text.done') read.push(part.text);
    })();
    await environment.settle();
    await go((answer) => answer.text('Your '));
    session.notifyBackground(fire, { priority: 'urgent' });
    await environment.settle();
    for (const text of ['Run!', 'It is 7.']) {
      await go((answer) => answer.text(text));
      await go((answer) => answer.finish());
    }
    await reading;
    expect(read).toEqual(['Your ', 'Run!', 'It is 7.']);
  });

  test('resumes the answer even if the notice was dismissed before its delivery', async () => {
    const { type, go, session, environment, answers, read } = await talk();
    await type('What is my balance?');
    await go((answer) => answer.text('Your '));
    const id = session.notifyBackground(fire, { priority: 'urgent' });
    session.dismiss(id);
    await environment.advance(1000);
    expect(answers).toHaveLength(2);
    expect(read().at(-1)).toEqual(['user', expect.stringContaining('cut off')]);
  });
});

test('does not count a delivery as a round of the answer', async () => {
  const { type, go, session, environment, answers } = await talk([inline('look', () => 'seen')], {
    others: [{ name: 'next', instructions: 'Go on.', greeting: 'Greet.' }],
  });
  await type('Hello.');
  await go((answer) => answer.text('Hello.'));
  await go((answer) => answer.finish());
  for (let news = 1; news <= 9; news += 1) {
    session.notifyBackground(`News ${news}`);
    await environment.settle();
    await go((answer) => answer.text('News.'));
    await go((answer) => answer.finish());
  }
  await session.transfer('next');
  await environment.settle();
  expect(answers.at(-1)?.asked.toolChoice).toEqual({ type: 'auto' });
});

test('attributes a late call to the agent that made it, even after a handover', async () => {
  const { type, go, session, environment, answers, read } = await talk(
    [inline('look', () => 'seen by the first')],
    { others: [{ name: 'next', instructions: 'Go on.' }] },
  );
  await type('Look.');
  await go((answer) => answer.text('Let me'));
  await session.transfer('next');
  await environment.settle();
  await go((answer) => answer.call('look'));
  await go((answer) => answer.finish());
  expect(answers).toHaveLength(2);
  const { prompt } = (answers[1] as HandAnswer).asked;
  expect(JSON.stringify(prompt)).toContain('seen by the first');
  expect(read().slice(-2)).toEqual([
    ['tool', 'tool-result'],
    ['user', expect.stringContaining('handed from one agent to another')],
  ]);
});

test('ends the stream for a reader of a closed session', async () => {
  const { session } = await talk();
  await session.close();
  expect(await session.read().next()).toEqual({ done: true, value: undefined });
});
