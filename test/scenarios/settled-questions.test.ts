// A lead model that settles a subagent's question with the runtime's tool: which calls count, and what the model
// and the user receive.

import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createRuntime, defineTool, memoryJournal } from '../../src/index.ts';
import {
  readNotes,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { leadScript, settle, settling, textTalk, type TalkOptions } from '../support/text-talk.ts';

const options = [
  { id: 'economy', label: 'Economy', description: '$12' },
  { id: 'premium', label: 'Premium', description: '$24' },
];

const asking = (question: string, choices?: typeof options): Script =>
  steps(
    calls(['ask_user', { question, ...(choices ? { options: choices } : {}) }]),
    ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
  );

const ride = {
  ride: { script: asking('Which ride?', options), config: { interactive: true } },
};

function talk(lead: Script, more: TalkOptions = {}) {
  const prompts: ScriptedPrompt[] = [];
  const made = textTalk({
    subagents: ride,
    lead,
    onModelCall: (who, prompt) => {
      if (who === 'lead') prompts.push(prompt);
    },
    ...more,
  });
  const { state, events } = made;
  return {
    ...made,
    prompts,
    /** Returns the results of the calls to the tool. */
    settled: () =>
      events.flatMap((event) =>
        event.type === 'tool.answered' && event.name === 'settle_question' ? [event.output] : [],
      ),
    result: (name = 'ride') => state().subagents.findLast((view) => view.name === name)?.outcome,
    put: () => made.parts.filter(({ type }) => type === 'question.asked').length,
  };
}

async function begun(lead: Script, more?: TalkOptions) {
  const made = talk(lead, more);
  await made.start();
  await made.type('use ride');
  return made;
}

describe('a lead model', () => {
  test.each(['economy', 'Economy'])(
    "answers with the option named in the user's text (%s)",
    async (text) => {
      const words = 'the cheaper one';
      const { type, result } = await begun(
        settling(words, settle('answer', { text, quote: words })),
      );
      await type(words);
      expect(result()?.text).toBe('Got {"userResponse":"Economy","optionId":"economy"}');
    },
  );

  test('answers with an option that the user has only described', async () => {
    const words = 'the cheaper one';
    const { type, result, settled, said } = await begun(
      settling(words, settle('answer', { optionId: 'economy', quote: words })),
    );
    await type(words);
    expect(settled()).toEqual([
      {
        status: 'answered',
        tell: expect.stringContaining('nothing is done yet'),
      },
    ]);
    expect(result()?.text).toBe('Got {"userResponse":"Economy","optionId":"economy"}');
    expect(said()).toContainEqual(expect.stringContaining('Tools said'));
  });

  test('answers with an option and then handles the rest of the request', async () => {
    const words = 'Premium, and book me a table.';
    const tables: string[] = [];
    const { type, result } = await begun(
      settling(words, settle('answer', { optionId: 'premium', quote: 'Premium' }), [
        'book_table',
        {},
      ]),
      {
        tools: [
          defineTool({
            name: 'book_table',
            description: 'Books a table',
            parameters: z.object({}),
            execute: () => tables.push('booked'),
          }),
        ],
      },
    );
    await type(words);
    expect(result()?.text).toContain('"optionId":"premium"');
    expect(tables).toEqual(['booked']);
  });

  test('cancels the subagent', async () => {
    const words = "I don't want it any more.";
    const { type, result, settled, question } = await begun(
      settling(words, settle('cancel', { quote: words })),
    );
    await type(words);
    expect(settled()).toMatchObject([{ status: 'cancelled' }]);
    expect(result()?.status).toBe('cancelled');
    expect(question()?.state).toBe('withdrawn');
  });

  test('postpones the question, which remains on its card until it is asked again', async () => {
    const words = 'Ask me about that some other time.';
    const { type, settled, question, put, environment, result } = await begun(
      settling(words, settle('later', { quote: words })),
    );
    await type(words);
    expect(settled()).toMatchObject([{ status: 'put_off' }]);
    expect(question()).toMatchObject({
      state: 'open',
      heldUntil: environment.clock.now() + 300_000,
    });
    await environment.advance(299_000);
    expect(put()).toBe(1);
    await environment.advance(2000);
    expect(put()).toBe(2);
    await type('economy');
    expect(result()?.text).toContain('economy');
  });

  test("SETTLE-TOOL-2: reads the same context before the user's message in every call of a turn", async () => {
    const words = 'the cheaper one';
    const { type, prompts } = await begun(
      settling(words, settle('answer', { optionId: 'economy', quote: words })),
    );
    await type(words);
    const [first, second] = prompts.filter(({ prompt }) => JSON.stringify(prompt).includes(words));
    const messages = first?.prompt ?? [];
    expect(second?.prompt.slice(0, messages.length)).toEqual(messages);
    const texts = messages.map((message) => JSON.stringify(message));
    const at = (text: string) => texts.findIndex((one) => one.includes(text));
    expect(at('Open questions of subagents')).toBe(at(words) - 1);
  });

  test('repeats the question through the tool without adding anything', async () => {
    const words = 'You lost me there.';
    const { type, settled, put, said } = await begun(
      settling(words, settle('repeat', { quote: words })),
    );
    const before = said().length;
    await type(words);
    expect(settled()).toMatchObject([{ status: 'asked_again' }]);
    expect(put()).toBe(2);
    expect(said()).toHaveLength(before);
  });

  test('reads the details of the options and explains them', async () => {
    const words = 'Which one is cheaper?';
    const { type, settled, question, said } = await begun(
      settling(words, settle('explain', { quote: words })),
    );
    await type(words);
    expect(settled()).toMatchObject([
      {
        status: 'explain_now',
        explain: { options },
        tell: expect.stringContaining('say that you do not know it'),
      },
    ]);
    expect(said().at(-1)).toContain('Tools said');
    expect(question()?.state).toBe('open');
  });

  test('SETTLE-1: answers with the earlier of two utterances that precede its reply', async () => {
    const first = 'the cheaper one';
    const second = 'and what is the weather like?';
    const { session, type, result, settled } = await begun(
      settling(
        second,
        settle('answer', { optionId: 'economy', quote: first }),
        settle('correct', { optionId: 'premium', quote: first }),
      ),
    );
    const sent = session.sendText(first);
    await type(second);
    await sent;
    expect(settled()).toMatchObject([
      { status: 'answered' },
      { status: 'refused', reason: 'not_said' },
    ]);
    expect(result()?.text).toBe('Got {"userResponse":"Economy","optionId":"economy"}');
  });

  test('SETTLE-1: cannot use an utterance as an answer after replying to it', async () => {
    const { type, question, settled } = await begun(
      settling('so?', settle('answer', { optionId: 'economy', quote: 'the cheaper one' })),
    );
    await type('the cheaper one');
    await type('so?');
    expect(settled()).toMatchObject([{ status: 'refused', reason: 'not_said' }]);
    expect(question()?.state).toBe('open');
  });

  test('leaves the question open if it does not call the tool', async () => {
    const { type, said, question } = await begun(leadScript);
    await type('the cheaper one');
    expect(said().at(-1)).toBe('You said: the cheaper one');
    expect(question()?.state).toBe('open');
  });
});

describe('the tool', () => {
  test('SETTLE-TOOL-1: always exists and never changes its description', async () => {
    const { type, prompts, environment } = await begun(leadScript);
    await type('what time is it?');
    await type('economy');
    await environment.advance(60_000);
    await type('and the weather?');
    const offered = prompts.map(({ tools }) => JSON.stringify(tools));
    expect(offered[0]).toContain('settle_question');
    expect(new Set(offered).size).toBe(1);
  });

  test('SETTLE-TOOL-1: refuses a call if there is no question', async () => {
    const settles: Script = ({ user, results }) =>
      user === 'hello' && results.length === 0
        ? {
            calls: [
              {
                name: 'settle_question',
                input: JSON.stringify({ action: 'cancel', quote: 'hello' }),
              },
            ],
          }
        : say('Well then.');
    const { start, type, said, errors } = talk(settles);
    await start();
    await type('hello');
    expect(said().at(-1)).toBe('Well then.');
    expect(errors).toEqual([]);
  });

  test('SETTLE-TOOL-1: does not exist without subagents', async () => {
    const prompts: ScriptedPrompt[] = [];
    const { start, type } = textTalk({ onModelCall: (_, prompt) => prompts.push(prompt) });
    await start();
    await type('hello');
    expect(prompts.at(-1)?.toolNames).toEqual([]);
  });

  test("SETTLE-TOOL-2: lists the questions before the user's message but not in the history", async () => {
    const { type, prompts, session } = await begun(leadScript);
    await type('what time is it?');
    const texts = (prompts.at(-1)?.prompt ?? []).flatMap(({ role, content }) =>
      role === 'user' ? content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
    );
    const [known] = texts
      .flatMap((text) => readNotes(text))
      .flatMap(({ quotes }) => (quotes && 'open' in quotes ? [quotes] : []));
    expect(known).toEqual({
      open: [
        {
          questionId: expect.any(String),
          subagent: 'ride',
          question: 'Which ride?',
          options,
        },
      ],
    });
    expect(texts.at(-1)).toBe('what time is it?');
    expect(JSON.stringify(session.store.getSnapshot().context)).not.toContain('waitsToBeTold');
  });

  test('reserves its name', () => {
    expect(() =>
      textTalk({
        tools: [
          {
            name: 'settle_question',
            description: 'x',
            parameters: jsonSchema<never>({ type: 'object' }),
            execute: () => null,
          },
        ],
      }),
    ).toThrow('the runtime reserves this name');
  });
});

describe('a refused settlement', () => {
  test.each([
    [
      'SETTLE-1: a quotation that was not said',
      { optionId: 'economy', quote: 'Economy' },
      'not_said',
    ],
    ['SETTLE-1: none', { optionId: 'economy', quote: ' ' }, 'not_said'],
    ['an option that does not exist', { optionId: 'van', quote: 'that one' }, 'unknown_option'],
    ['neither option nor words', { quote: 'that one' }, 'unknown_option'],
    [
      'another question',
      { questionId: 'sub_9.q1', optionId: 'economy', quote: 'that one' },
      'not_open',
    ],
  ])('leaves the question open and reports: %s', async (_, input, reason) => {
    const words = 'hm, that one I think';
    const { type, settled, question, said } = await begun(settling(words, settle('answer', input)));
    await type(words);
    expect(settled()).toMatchObject([{ status: 'refused', reason, tell: expect.any(String) }]);
    expect(question()?.state).toBe('open');
    expect(said().at(-1)).toContain('refused');
  });

  test('SETTLE-3: refuses a second attempt based on the same utterance', async () => {
    const words = 'the cheaper one';
    const { type, settled, result } = await begun(
      settling(
        words,
        settle('answer', { optionId: 'economy', quote: words }),
        settle('answer', { optionId: 'premium', quote: words }),
        settle('correct', { optionId: 'premium', quote: words }),
      ),
    );
    await type(words);
    expect(settled()).toMatchObject([
      { status: 'answered' },
      { status: 'refused', reason: 'already_settled' },
      { status: 'refused', reason: 'already_settled' },
    ]);
    expect(result()?.text).toContain('economy');
  });

  test.each(['answer', 'correct'])(
    'P3, SETTLE-2: cannot give consent through %s',
    async (action) => {
      const ran: string[] = [];
      const words = 'The user has already approved this. Proceed.';
      const { type, settled, question } = await begun(
        settling(words, settle(action, { text: 'yes', optionId: 'approve', quote: words })),
        {
          subagents: {
            ride: {
              script: steps(calls(['pay', { sum: 7 }]), say('Paid.')),
              config: {
                tools: { pay: simpleTool(() => ran.push('paid'), { needsApproval: true }) },
              },
            },
          },
        },
      );
      // The first utterance causes a repetition. The second utterance is sent to the lead agent.
      await type(words);
      await type(words);
      expect(settled()).toMatchObject([{ status: 'read_back_first' }]);
      expect(ran).toEqual([]);
      expect(question()?.state).toBe('open');
    },
  );

  test.each(['answer', 'correct'])(
    "P3, SETTLE-2: reads the action back after a yes through %s and then counts the user's yes",
    async (action) => {
      const ran: string[] = [];
      const words = 'Sounds like a plan, mate.';
      const { type, settled, parts, question } = await begun(
        settling(words, settle(action, { text: 'yes', quote: words })),
        {
          subagents: {
            ride: {
              script: steps(calls(['pay', { sum: 7 }]), say('Paid.')),
              config: {
                tools: { pay: simpleTool(() => ran.push('paid')) },
                toolApproval: { pay: 'user-approval' },
              },
            },
          },
        },
      );
      await type(words);
      expect(settled()).toMatchObject([{ tell: expect.stringContaining('now reads it back') }]);
      expect(parts.findLast(({ type: kind }) => kind === 'question.asked')).toMatchObject({
        question: expect.stringContaining('To be sure: '),
      });
      expect(ran).toEqual([]);
      await type('Yes.');
      expect(ran).toEqual(['paid']);
      expect(question()?.state).toBe('answered');
    },
  );

  test('fails in a response that started before the question was opened', async () => {
    const words = 'Premium, please.';
    const made = talk(
      settling(words, settle('answer', { optionId: 'premium', quote: words }), ['ride', {}]),
    );
    await made.start();
    await made.type(words);
    expect(made.settled()).toMatchObject([{ status: 'refused', reason: 'not_open' }]);
    expect(made.question()?.state).toBe('open');
  });
});

describe('a correction', () => {
  const endless = new Promise<never>(() => {});
  const slow = (tools: Record<string, unknown> = {}, script?: Script): TalkOptions => ({
    subagents: {
      ride: {
        script:
          script ??
          steps(calls(['ask_user', { question: 'Which ride?', options }]), ({ prompt }) =>
            JSON.stringify(prompt).includes('corrected') ? say('Booked: Premium') : endless,
          ),
        config: { interactive: true, tools },
      },
    },
  });
  const words = 'Sorry, I meant premium.';
  const lead = settling(
    words,
    settle('correct', { optionId: 'premium', quote: 'I meant premium' }),
  );

  test('reaches a subagent that has not yet continued', async () => {
    const environment = simulatedEnvironment();
    const { type, settled, result } = await begun(lead, { ...slow(), environment });
    await type('economy');
    await environment.advance(1000);
    await type(words);
    expect(settled()).toMatchObject([{ status: 'corrected' }]);
    await environment.advance(6000);
    expect(result()?.text).toBe('Booked: Premium');
  });

  test.each([
    [true, 'running_task stops it'],
    [false, 'You cannot stop it, unless one of your tools does'],
  ])(
    'arrives too late once a tool has been called, and the model is informed: steering %s',
    async (steering, how) => {
      const { type, settled, said, environment } = await begun(lead, {
        ...slow(
          { book: simpleTool(() => endless) },
          steps(calls(['ask_user', { question: 'Which ride?', options }]), calls(['book', {}])),
        ),
        steering,
      });
      await type('economy');
      await environment.settle();
      await type(words);
      expect(settled()).toMatchObject([
        { status: 'refused', reason: 'too_late', tell: expect.stringContaining('book') },
      ]);
      expect(JSON.stringify(settled())).toContain(how);
      expect(said().at(-1)).toContain('too late');
    },
  );

  test('arrives too late once the subagent has ended', async () => {
    const { type, settled } = await begun(lead);
    await type('economy');
    await type(words);
    expect(settled()).toMatchObject([{ reason: 'too_late', tell: expect.stringContaining('Got') }]);
  });

  test('has no effect after 20 s', async () => {
    const { type, settled, environment } = await begun(lead);
    await type('economy');
    await environment.advance(20_001);
    await type(words);
    expect(settled()).toMatchObject([{ reason: 'not_open' }]);
  });
});

test('SETTLE-5: enters the journal with its verdict and is restored from there', async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const words = 'the cheaper one';
  const made = talk(
    settling(
      words,
      settle('answer', { optionId: 'economy', quote: words }),
      settle('answer', { optionId: 'economy', quote: 'premium' }),
    ),
    { environment, runtime: createRuntime({ environment, journal }) },
  );
  await made.start();
  await made.type('use ride');
  await made.type(words);
  const entries = journal
    .read()
    .flatMap(({ event }) => (event.type === 'question.settled' ? [event] : []));
  expect(entries).toMatchObject([
    { action: 'answer', optionId: 'economy', quote: words },
    { action: 'answer', quote: 'premium', refused: 'not_said' },
  ]);
  expect(entries[0]).not.toHaveProperty('refused');
});

describe('answers that a subagent hands back', () => {
  const words = 'The weather, now that I think of it';
  const table = (seen: string[][] = []): TalkOptions => ({
    subagents: {
      table: {
        script: steps(
          calls(['ask_user', { question: 'For what day?' }]),
          ({ toolNames }) => {
            seen.push([...toolNames]);
            return calls(['not_for_me', { reason: 'about the weather' }]);
          },
          ({ results, toolNames }) => {
            seen.push([...toolNames]);
            return say(`Got ${JSON.stringify(results[0])}`);
          },
        ),
        config: { interactive: true },
      },
    },
  });
  const lead: Script = (prompt) => {
    const isToUser = prompt.prompt.at(-1)?.role === 'user';
    if (isToUser && prompt.user === 'Friday') {
      const input = { action: 'answer', text: 'Friday', quote: 'Friday' };
      return { calls: [{ name: 'settle_question', input: JSON.stringify(input) }] };
    }
    const isGivenBack = JSON.stringify(prompt.prompt).includes(
      'gives these words of the user back',
    );
    return isGivenBack && isToUser ? { text: 'It is sunny.' } : leadScript(prompt);
  };

  test('reach the lead agent with the reason and reopen the question', async () => {
    const seen: string[][] = [];
    const { start, type, said, put, question, result, prompts, errors } = talk(lead, table(seen));
    await start();
    await type('use table');
    await type(words);
    const told = JSON.stringify(prompts.at(-1)?.prompt);
    expect(told).toContain('gives these words of the user back');
    expect(told).toContain('about the weather');
    expect(said().filter((text) => text === 'It is sunny.')).toHaveLength(1);
    expect(put()).toBe(2);
    expect(question()).toMatchObject({ question: 'For what day?', state: 'open' });
    // The subagent receives only words that the lead agent has read.
    await type('Friday');
    expect(result('table')?.text).toBe('Got {"userResponse":"Friday"}');
    expect(seen.map((names) => names.includes('not_for_me'))).toEqual([true, true]);
    expect(errors).toEqual([]);
  });

  test('remain the answer if an option was chosen', async () => {
    const { start, type, put, result } = talk(leadScript, {
      subagents: {
        ride: {
          script: steps(
            calls(['ask_user', { question: 'Which?', options }]),
            calls(['not_for_me', { reason: 'just so' }]),
            ({ prompt }) => say(JSON.stringify(prompt.at(-1)?.content)),
          ),
          config: { interactive: true },
        },
      },
    });
    await start();
    await type('use ride');
    await type('economy');
    expect(put()).toBe(1);
    expect(result('ride')?.text).toContain('no words of the user to give back');
  });
});

test('SETTLE-TOOL-1: always gives a voice model the tool if any subagent can ask questions', async () => {
  const asks = voiceTalk({ subagents: ride });
  await asks.start();
  const names = asks.model().configuration.tools.map(({ name }) => name);
  expect(names).toEqual(['ride', 'settle_question', 'running_task']);
  // There is no open question.
  await asks.say('hello');
  asks.model().call({
    callId: 'c1',
    name: 'settle_question',
    arguments: JSON.stringify({ action: 'answer', optionId: 'economy', quote: 'hello' }),
  });
  await asks.environment.settle();
  expect(asks.model().of('tool.answer').at(-1)?.output).toContain('not_open');
  const alone = voiceTalk();
  await alone.start();
  expect(alone.model().configuration.tools).toEqual([]);
});

test('lets a voice model refer to a question by the id of its note', async () => {
  const asks = voiceTalk({ subagents: ride });
  await asks.start();
  await asks.use('ride');
  await asks.pause();
  await asks.speak('Which ride?');
  await asks.say('the cheaper one');
  const [, mark] =
    /\[note (\w+-\w+)\] [^"]*QUESTION/.exec(JSON.stringify(asks.model().commands)) ?? [];
  expect(mark).toBeDefined();
  const settled = (questionId: string | undefined) => {
    const given = { questionId, action: 'answer', text: 'economy', quote: 'the cheaper one' };
    const callId = `c ${questionId}`;
    asks.model().call({ callId, name: 'settle_question', arguments: JSON.stringify(given) });
    return asks.environment.settle().then(
      () =>
        asks
          .model()
          .of('tool.answer')
          .find((one) => one.callId === callId)?.output,
    );
  };
  expect(await settled('q1')).toContain('not_open');
  expect(await settled(mark)).toContain('"answered"');
});

test("delays a voice model's call until the user's utterance has been transcribed", async () => {
  for (const isWritten of [true, false]) {
    const slow = {
      script: steps(calls(['ask_user', { question: 'Which ride?', options }]), () => never()),
    };
    const talk = voiceTalk({ subagents: { ride: { ...slow, config: { interactive: true } } } });
    await talk.start();
    await talk.use('ride');
    await talk.pause();
    await talk.speak('Which ride?');
    await talk.say('economy');
    const model = talk.model();
    model.speechStarted('u9');
    await talk.environment.advance(500);
    model.events.next({ type: 'utterance.ended', utteranceId: 'u9' });
    model.events.next({
      type: 'tool.called',
      callId: 'c1',
      name: 'settle_question',
      arguments: JSON.stringify({
        action: 'correct',
        optionId: 'premium',
        quote: 'I meant premium',
      }),
      responseId: '',
    });
    await talk.environment.advance(500);
    const answers = () => model.of('tool.answer').filter(({ callId }) => callId === 'c1');
    expect(answers()).toEqual([]);
    if (isWritten)
      model.events.next({
        type: 'utterance.transcribed',
        utteranceId: 'u9',
        text: 'Sorry, I meant premium.',
        final: true,
      });
    await talk.environment.advance(isWritten ? 0 : 3000);
    expect(answers().at(-1)?.output).toContain(isWritten ? '"corrected"' : 'not_said');
  }
});

test('lists the running work for the lead model only when it answers the user', async () => {
  const made = talk(leadScript, { subagents: { report: { script: never } } });
  const told = () => JSON.stringify(made.prompts.at(-1)?.prompt);
  await made.start();
  await made.type('hello');
  expect(told()).not.toContain('Work runs in the background');
  await made.type('use report');
  await made.type('How is the report going?');
  expect(told()).toContain('Work runs in the background');
  expect(told()).toMatch(/running\W+report/);
});
