// The demo's lead agent, driven as the runtime drives it: one model call at a time, with the messages that the runtime
// writes and with tools that have no `execute`.

import {
  generateText,
  jsonSchema,
  streamText,
  tool,
  type FlexibleSchema,
  type ModelMessage,
} from 'ai';
import { describe, expect, test } from 'vitest';
import { leadAgent } from '../../../../examples/voice-demo/agents/lead-agent.ts';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import { ruleModel } from '../../../../examples/voice-demo/rules/rule-model.ts';
import {
  cancelledNote,
  greetingNote,
  noticePrompt,
  overheardNote,
  pendingAnswer,
  questionPrompt,
} from '../../../../src/actors/conversation/prompts.ts';
import { completedNote, failedNote, hastyEnvironment, noteWriter } from '../support.ts';
import type { Note } from '../../../../src/actors/notes/note.ts';

const lead = leadAgent(createWorld());
// No `execute`, because the runtime runs the tools.
const outputSchema = jsonSchema({});
const tools = {
  running_task: tool({ inputSchema: jsonSchema<Record<string, unknown>>({}), outputSchema }),
  ...Object.fromEntries(
    (lead.tools ?? []).map(({ name, description, parameters }) => [
      name,
      tool({ description, inputSchema: parameters as FlexibleSchema<unknown>, outputSchema }),
    ]),
  ),
};

/** A conversation with the lead agent. */
class Talk {
  readonly #model = ruleModel({ environment: hastyEnvironment() });
  readonly #messages: ModelMessage[] = [];

  user(text: string) {
    this.#messages.push({ role: 'user', content: text });
    return this.respond();
  }

  readonly #written = noteWriter();

  note(note: Note): this {
    for (const { role, text } of this.#written(note)) this.#messages.push({ role, content: text });
    return this;
  }

  say(role: 'user' | 'assistant', content: string): this {
    this.#messages.push({ role, content });
    return this;
  }

  answerCalls(answer: (toolName: string, input: unknown) => unknown): this {
    const last = this.#messages.at(-1);
    if (last?.role !== 'assistant' || typeof last.content === 'string') throw new Error('no calls');
    const results = last.content.flatMap((part) =>
      part.type === 'tool-call'
        ? [
            {
              type: 'tool-result' as const,
              toolCallId: part.toolCallId,
              toolName: part.toolName,
              output: {
                type: 'text' as const,
                value: JSON.stringify(answer(part.toolName, part.input)),
              },
            },
          ]
        : [],
    );
    this.#messages.push({ role: 'tool', content: results });
    return this;
  }

  async respond() {
    const { text, toolCalls, responseMessages } = await generateText({
      model: this.#model,
      instructions: String(lead.instructions),
      messages: this.#messages,
      allowSystemInMessages: true,
      tools,
    });
    this.#messages.push(...responseMessages);
    return { text, calls: toolCalls.map(({ toolName, input }) => ({ toolName, input })) };
  }
}

const pending = () => pendingAnswer("I'm on it.");

describe('requests', () => {
  test('calls the tool and then says that the work has started', async () => {
    const talk = new Talk();
    expect(await talk.user('Book me a ride to the airport')).toEqual({
      text: '',
      calls: [{ toolName: 'book_ride', input: { destination: 'the airport' } }],
    });
    expect(await talk.answerCalls(pending).respond()).toEqual({ text: "I'm on it.", calls: [] });
  });

  test('asks for a missing detail and reads it from the next utterance', async () => {
    const talk = new Talk();
    const asked = await talk.user('I need a taxi');
    expect(asked).toEqual({ text: 'Where would you like to go?', calls: [] });
    expect((await talk.user('um')).text).toContain('Where would you like to go?');
    expect((await talk.user('my grandmother')).calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'my grandmother' } },
    ]);
  });

  test('keeps its question open when a notice arrives', async () => {
    const talk = new Talk();
    await talk.user('I need a taxi');
    await talk.note(noticePrompt('ORDER UPDATE', 'Order 1 is here.')).respond();
    expect((await talk.user('the harbour')).calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'the harbour' } },
    ]);
  });

  test('makes two calls in the same reply when one sentence contains two requests', async () => {
    const talk = new Talk();
    const { calls } = await talk.user('Book a ride to the airport and a table for two');
    expect(calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'the airport' } },
      { toolName: 'book_table', input: { partySize: 2 } },
    ]);
    const said = await talk
      .answerCalls((name) => pendingAnswer(`Working on ${name.slice(5)}.`))
      .respond();
    expect(said.text).toBe('Working on ride. Working on table.');
  });

  test('handles a complete request, and asks for the details that an incomplete one lacks', async () => {
    const { text, calls } = await new Talk().user('Book a ride and make a report for last week');
    expect(text).toBe('Where would you like to go?');
    expect(calls).toEqual([{ toolName: 'generate_report', input: { dateRange: 'last week' } }]);
  });

  test('combines two utterances into one request', async () => {
    const talk = new Talk().say('user', 'Book me a ride');
    expect((await talk.user('to the airport')).calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'the airport' } },
    ]);
  });

  test('says what it cannot do and what it can do', async () => {
    const { text, calls } = await new Talk().user('What is the weather like?');
    expect(calls).toEqual([]);
    expect(text).toMatch(/can't check the weather.*I can book you a ride/);
  });

  test('never says a sentence twice in one reply, whatever the user says', async () => {
    const news = 'and now the weather, and here is the news, and the weather, and the news';
    const { text } = await new Talk().user(news);
    const sentences = text.split(/(?<=[.?!]) /);
    expect(new Set(sentences).size).toBe(sentences.length);
  });

  test('answers an agreement briefly unless it comes with a request', async () => {
    expect((await new Talk().user('No. Okay. No.')).text.split('. ')).toHaveLength(1);
    const { text, calls } = await new Talk().user('No, okay, a table for two.');
    expect(text).toBe('');
    expect(calls).toHaveLength(1);
  });

  test('chats while work is running', async () => {
    const talk = new Talk();
    await talk.user('Book me a ride to the airport');
    await talk.answerCalls(pending).respond();
    expect((await talk.user('Tell me a joke')).text).toMatch(/actor|agents/);
    expect((await talk.user('How are you?')).calls).toEqual([
      { toolName: 'running_task', input: { action: 'status' } },
    ]);
  });

  test('never calls a tool that does not exist', async () => {
    const { text, toolCalls } = await generateText({
      model: ruleModel({ environment: hastyEnvironment() }),
      prompt: 'Book me a ride to the airport',
    });
    expect(toolCalls).toEqual([]);
    expect(text).toMatch(/can't/);
  });
});

describe('inline tools', () => {
  test.each<[string, string, unknown, string]>([
    [
      'where is my order',
      'check_order',
      { order: { orderId: '1042', item: 'an oak desk', status: 'being packed' } },
      'Order 1042, an oak desk, is being packed.',
    ],
    [
      'order number 77',
      'check_order',
      { unknownOrderId: '77' },
      "I can't find an order with the number 77.",
    ],
    [
      'how far are you',
      'running_task',
      {
        tasks: [
          { task: 'A ride to the airport', status: 'asks_the_user' },
          { task: 'A report', status: 'running', progress: ['Reading sales, 20%'] },
        ],
      },
      'The ride to the airport is waiting for your answer. The report is reading sales, 20 percent.',
    ],
    ['how far are you', 'running_task', { ended: [] }, 'Nothing is running right now.'],
    [
      'cancel the ride',
      'running_task',
      { status: 'stopped', task: 'A ride to the airport' },
      "Okay, I've stopped the ride to the airport.",
    ],
    [
      'cancel the ride',
      'running_task',
      { status: 'stopped', task: 'A ride', done: ['confirm_ride: …'] },
      'What it had done by then stays done.',
    ],
    [
      'cancel',
      'running_task',
      { status: 'unclear', tasks: ['A ride to the airport', 'A report'] },
      "I'm working on the ride to the airport and the report. Which one shall I stop?",
    ],
    ['cancel', 'running_task', { status: 'nothing_runs' }, 'There is nothing to stop'],
    ['also include last month', 'running_task', { status: 'read' }, "Okay, I've passed that on."],
    [
      'also include last month',
      'running_task',
      { status: 'completed', task: 'A report', result: 'It was $12.' },
      'The report had ended already. It was 12 dollars.',
    ],
    ['where is my order', 'check_order', { error: 'The shop is closed' }, 'The shop is closed'],
    [
      'make me a report for last week',
      'generate_report',
      { status: 'already_in_progress', subagentId: 'sub_1', message: 'It is at work on this' },
      "I'm on that already.",
    ],
  ])('%s → %s', async (utterance, toolName, result, said) => {
    const talk = new Talk();
    expect((await talk.user(utterance)).calls[0]?.toolName).toBe(toolName);
    expect((await talk.answerCalls(() => result).respond()).text).toContain(said);
  });

  test('reads the next utterance as the answer to "Which one?"', async () => {
    const talk = new Talk();
    await talk.user('cancel');
    await talk
      .answerCalls(() => ({ status: 'unclear', tasks: ['A ride to the airport', 'A report'] }))
      .respond();
    expect((await talk.user('the report')).calls).toEqual([
      { toolName: 'running_task', input: { action: 'stop', task: 'A report' } },
    ]);
  });

  test('passes on the original message after the user has answered "Which one?"', async () => {
    const talk = new Talk();
    await talk.user('also include last month');
    await talk
      .answerCalls(() => ({
        status: 'unclear',
        tasks: ['Sales of the north', 'Sales of the south'],
      }))
      .respond();
    const input = { action: 'tell', task: 'Sales of the south', words: 'Also include last month.' };
    expect((await talk.user('the, uh, the south one')).calls).toEqual([
      { toolName: 'running_task', input },
    ]);
  });

  test('calls again with the name of the only task if the user named none', async () => {
    const talk = new Talk();
    await talk.user('cancel');
    const { calls } = await talk
      .answerCalls(() => ({ status: 'unclear', tasks: ['A report'] }))
      .respond();
    expect(calls).toEqual([
      { toolName: 'running_task', input: { action: 'stop', task: 'A report' } },
    ]);
  });

  test('starts a postponed request after the user says yes', async () => {
    const talk = new Talk();
    const { calls } = await talk.user("Don't do anything yet. I need a ride to the airport.");
    expect(calls).toEqual([]);
    expect((await talk.user('Okay, go ahead.')).calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'the airport' } },
    ]);
  });
});

describe('notices', () => {
  const options = [
    { id: 'e', label: 'Economy', description: '$12, in 5 min' },
    { id: 'p', label: 'Premium', description: '$24, in 3 min' },
  ];

  test('asks a question and reads out its options', async () => {
    const { text } = await new Talk()
      .note(questionPrompt('ride_booker', 'Which ride would you like?', options))
      .respond();
    expect(text).toBe(
      'Which ride would you like? Economy, 12 dollars, in 5 minutes, or Premium, 24 dollars, in 3 minutes?',
    );
  });

  test('does not repeat options that the question already names', async () => {
    const question = 'Economy for $12, or Premium for $24?';
    const { text } = await new Talk()
      .note(questionPrompt('ride_booker', question, options))
      .respond();
    expect(text).toBe('Economy for 12 dollars, or Premium for 24 dollars?');
  });

  test('delivers a result', async () => {
    const { text } = await new Talk()
      .note(completedNote('book_ride', 'Your ride is booked, for $12.'))
      .respond();
    expect(text).toBe('I have news about the ride. Your ride is booked, for 12 dollars.');
  });

  test('delivers a failure with its reason and retries with the original input if the user says yes', async () => {
    const talk = new Talk();
    await talk.user('Book me a ride to the harbour');
    await talk.answerCalls(pending).respond();
    const told = await talk
      .note(failedNote('book_ride', { code: 'X', message: 'no driver is free', retryable: true }))
      .respond();
    expect(told.text).toBe(
      "I'm sorry, the ride did not work out: no driver is free. Shall I try again?",
    );
    expect((await talk.user('yes please')).calls).toEqual([
      { toolName: 'book_ride', input: { destination: 'the harbour' } },
    ]);
  });

  test('delivers several notices in one reply, starting with the news and ending with the question', async () => {
    const { text } = await new Talk()
      .note(questionPrompt('ride_booker', 'Which ride?', options))
      .note(noticePrompt('SUBAGENT UPDATE', 'The report is half done'))
      .note(noticePrompt('ORDER UPDATE', 'Order 1042 is out for delivery.'))
      .respond();
    expect(text).toMatch(
      /^The report is half done\. Order update: Order 1042 is out for delivery\. Which ride\?/,
    );
  });

  test('answers the user first and delivers news only when the runtime requests it', async () => {
    const talk = new Talk();
    const { text } = await talk
      .note(noticePrompt('SUBAGENT UPDATE', 'Half way.'))
      .user('thank you');
    expect(text).toBe("You're welcome.");
    talk.note(noticePrompt('SUBAGENT UPDATE', 'Half way.'));
    expect((await talk.respond()).text).toBe('Half way.');
  });

  test('does not answer a message that was meant for a subagent', async () => {
    const { text } = await new Talk()
      .say('assistant', 'Economy or Premium?')
      .say('user', 'Cancel everything')
      .note(overheardNote('Cancel everything', 'ride_booker'))
      .note(completedNote('book_ride', 'All right, no ride then.'))
      .respond();
    expect(text).toBe('Now about the ride. All right, no ride then.');
  });

  test('does not announce a cancellation that the user has requested', async () => {
    const talk = new Talk();
    await talk.user('Book me a ride to the harbour');
    await talk.answerCalls(pending).respond();
    talk.note(cancelledNote('book_ride', 'the user asked for it'));
    expect((await talk.user('never mind')).text).not.toContain('the ride');
  });

  test('delivers urgent news once and then greets', async () => {
    const talk = new Talk();
    talk.note(greetingNote({ greeting: 'Greet the user.' }) as Note);
    talk.note(noticePrompt('ORDER UPDATE', 'Order 1 is here.'));
    expect((await talk.respond()).text).toBe('Order update: Order 1 is here.');
    expect((await talk.respond()).text).toMatch(/^Hello!/);
  });

  test('repeats a result that the user has not heard if asked to speak when there is no news', async () => {
    const talk = new Talk().note(completedNote('book_ride', 'Your ride is booked.'));
    await talk.respond();
    expect((await talk.respond()).text).toContain('Your ride is booked.');
  });

  test('says only the note that it was asked to say', async () => {
    const said = noteWriter()(noticePrompt('SUBAGENT UPDATE', 'Half way.'));
    const mark = /\[note (\S+)\]/.exec(said[0]?.text ?? '')?.[1];
    const { text, toolCalls } = await generateText({
      model: ruleModel({ environment: hastyEnvironment() }),
      instructions: `Tell the user now the content of note ${mark}. Do not mention notes. Call no tool.`,
      allowSystemInMessages: true,
      messages: [
        { role: 'user', content: 'Book me a ride to the airport' },
        ...said.map(({ role, text: content }) => ({ role, content })),
      ],
      tools,
    });
    expect([text, toolCalls]).toEqual(['Half way.', []]);
  });

  test('says exactly the requested text, even if a question is waiting', async () => {
    const asked = noteWriter()(
      questionPrompt('ride_booker', 'Which ride?', [{ id: 'economy', label: 'Economy' }]),
    );
    const { text } = await generateText({
      model: ruleModel({ environment: hastyEnvironment() }),
      instructions: 'Say exactly "Economy. One \\"moment\\".", and nothing else. Call no tool.',
      allowSystemInMessages: true,
      messages: [
        ...asked.map(({ role, text: content }) => ({ role, content })),
        { role: 'user', content: 'Economy.' },
      ],
      tools,
    });
    expect(text).toBe('Economy. One "moment".');
  });

  test('does not announce a result before it is available', async () => {
    const talk = new Talk();
    await talk.user('where is my order');
    talk.answerCalls(() => 'Accepted. The result is not known yet; it will follow.');
    expect((await talk.user('thank you')).text).toBe("You're welcome.");
  });

  test('delivers a late result without a second call of the tool', async () => {
    const call = (toolCallId: string, value: string): ModelMessage[] => [
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId, toolName: 'dig', input: {} }],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId, toolName: 'dig', output: { type: 'text', value } },
        ],
      },
    ];
    const { text } = await generateText({
      model: ruleModel({ environment: hastyEnvironment() }),
      messages: [
        { role: 'user', content: 'dig a hole' },
        ...call('c1', 'Accepted. The result is not known yet; it will follow.'),
        { role: 'user', content: 'thank you' },
        ...call('c1_late', 'The hole is dug.'),
      ],
    });
    expect(text).toMatch(/The hole is dug\..*(You're welcome|pleasure|Any time)/);
  });

  test('greets when asked to start', async () => {
    expect((await new Talk().note(greetingNote(lead) as Note).respond()).text).toMatch(/^Hello!/);
  });
});

describe('as a model', () => {
  test('streams its text word by word', async () => {
    const options = {
      model: ruleModel({ environment: hastyEnvironment() }),
      prompt: 'What can you do?',
    };
    const { text } = await generateText(options);
    const deltas: string[] = [];
    for await (const delta of streamText(options).textStream) deltas.push(delta);
    expect(deltas.join('')).toBe(text);
    expect(deltas.length).toBeGreaterThan(10);
  });

  test('streams tool calls', async () => {
    const result = streamText({
      model: ruleModel({ environment: hastyEnvironment() }),
      prompt: 'Book me a ride to the airport',
      tools,
    });
    expect(await result.toolCalls).toMatchObject([
      { toolName: 'book_ride', input: { destination: 'the airport' } },
    ]);
    expect(await result.finishReason).toBe('tool-calls');
  });

  test('stops immediately if aborted before the first word', async () => {
    const abort = new AbortController();
    const answer = generateText({
      model: ruleModel({ environment: hastyEnvironment(), thinkingMs: 50 }),
      prompt: 'Hello',
      abortSignal: abort.signal,
    });
    abort.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
  });
});
