// The faults of an earlier framework, by number, each in the smallest conversation that would show it. `README.md`
// lists the faults that cannot occur here.

import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { CommitUnit } from '../../src/actors/runtime/commit-unit.ts';
import { createHost } from '../../src/actors/runtime/host.ts';
import { ConversationLog } from '../../src/actors/conversation/conversation.ts';
import { defineTool, memoryJournal, TextSession, type SubagentConfig } from '../../src/index.ts';
import { memoryStore } from '../../src/entries/memory.ts';
import { readNotes, scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { agentOf, backgroundTool, leadScript, textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const asking = (question: string, config: Partial<SubagentConfig> = {}) => ({
  script: steps(calls(['ask_user', { question }]), ({ results }) =>
    say(`Got ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true, ...config },
});
const hanging = { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } };
const done = { script: () => say('It is done.') };
const emptySchema = jsonSchema<never>({ type: 'object', properties: {} });

describe('questions', () => {
  test(
    'ends the run at the third unanswered question in a row and counts the attempts',
    { tags: ['BW1'] },
    async () => {
      const { start, type, environment, state } = textTalk({
        subagents: {
          ask: {
            script: () => calls(['ask_user', { question: 'Well?' }]),
            config: { interactive: true, inputTimeout: 1000, maxSteps: 20 },
          },
        },
      });
      await start();
      await type('use ask');
      await environment.advance(60_000);
      expect(state().questions.map(({ state: now }) => now)).toEqual([
        'expired',
        'expired',
        'expired',
      ]);
      expect(state().subagents[0]?.outcome).toMatchObject({
        error: { code: 'INPUT_TIMEOUT' },
        toolLedger: [
          { output: expect.stringContaining('(attempt 1/3)') },
          { output: expect.stringContaining('(attempt 2/3)') },
          {},
        ],
      });
    },
  );

  test(
    "passes the user's next message to the lead agent after a question has expired",
    { tags: ['BW2'] },
    async () => {
      const { start, type, environment, said, question } = textTalk({
        subagents: { ask: { ...asking('Well?', { inputTimeout: 1000 }) } },
      });
      await start();
      await type('use ask');
      await environment.advance(1000);
      expect(question()?.state).toBe('expired');
      await type('good morning');
      expect(said()).toContain('You said: good morning');
    },
  );

  test(
    "queues a subagent's second question behind the others, so that none starves",
    { tags: ['BW3'] },
    async () => {
      const { start, type, state, session, environment } = textTalk({
        subagents: {
          twice: {
            script: steps(
              calls(['ask_user', { question: 'One?' }], ['ask_user', { question: 'Two?' }]),
              say('done'),
            ),
            config: { interactive: true },
          },
          other: asking('Other?'),
        },
      });
      await start();
      await type('use twice and other');
      const heard: string[] = [];
      for (const answer of ['first', 'second', 'third']) {
        const open = state().questions.filter(({ state: now }) => now === 'open');
        expect(open).toHaveLength(1);
        const { question, requestId } = open[0] ?? { question: '', requestId: '' };
        heard.push(question);
        // Results have been delivered since the question was asked. Without `answer`, the text would be sent to the
        // lead agent.
        void session.answer(requestId, { text: answer });
        await environment.settle();
      }
      expect(heard).toEqual(['One?', 'Other?', 'Two?']);
      await type('hello');
      expect(state().questions.every(({ state: now }) => now === 'answered')).toBe(true);
    },
  );

  test(
    'ends a question that is removed from the queue, so that its caller stops waiting',
    { tags: ['BW4'] },
    async () => {
      const { start, type, state, session, environment } = textTalk({
        subagents: { red: asking('Red?'), blue: asking('Blue?') },
      });
      await start();
      await type('use red and blue');
      session.subagents.cancel(state().subagents[1]?.id ?? '');
      await environment.settle();
      expect(state().subagents[1]?.outcome?.status).toBe('cancelled');
      expect(state().questions[1]?.state).toBe('withdrawn');
      await type('crimson');
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test(
    'accepts an answer at the instant the question is presented',
    { tags: ['BW5'] },
    async () => {
      const { start, type, session, state } = textTalk({ subagents: { ask: asking('Well?') } });
      const receipts: unknown[] = [];
      session.questions.subscribe(({ requestId, state: now }) => {
        // Answers synchronously, inside the event.
        if (now === 'open')
          void session
            .answer(requestId, { text: 'at once' })
            .then((receipt) => receipts.push(receipt));
      });
      await start();
      await type('use ask');
      expect(receipts).toEqual([{ accepted: true }]);
      expect(state().subagents[0]?.outcome?.text).toBe('Got {"userResponse":"at once"}');
    },
  );

  test(
    'limits a run to ten minutes and an answer to two, so that a run outlives its questions',
    { tags: ['BW13'] },
    async () => {
      const { start, type, environment, state } = textTalk({
        subagents: {
          ask: {
            script: ({ results }) =>
              JSON.stringify(results).includes('yes')
                ? say('There you are.')
                : calls(['ask_user', { question: 'Well?' }]),
            config: { interactive: true },
          },
        },
      });
      await start();
      await type('use ask');
      await environment.advance(119_999);
      expect(state().questions.map(({ state: now }) => now)).toEqual(['open']);
      await environment.advance(120_000);
      expect(state().questions.map(({ state: now }) => now)).toEqual(['expired', 'open']);
      await type('yes, I am here');
      expect(state().subagents[0]?.outcome?.text).toBe('There you are.');
    },
  );

  test("does not extend a run's timeout because of a question", { tags: ['BW14'] }, async () => {
    const { start, type, environment, state } = textTalk({
      subagents: {
        ask: {
          script: steps(calls(['ask_user', { question: 'Well?' }]), calls(['hang'])),
          config: { interactive: true, timeout: 1000, tools: { hang: simpleTool(never) } },
        },
      },
    });
    await start();
    await type('use ask');
    // The subagent's time is paused while the subagent waits for the user.
    await environment.advance(100_000);
    expect(state().subagents[0]?.state).toBe('waiting_for_input');
    await type('yes');
    await environment.advance(1000);
    // The time then expires, whatever the tool does.
    expect(state().subagents[0]?.outcome?.status).toBe('timed_out');
    expect(state().questions[0]?.state).toBe('answered');
  });

  test(
    'presents the second question after the first and only then starts its timeout',
    { tags: ['BW15'] },
    async () => {
      const {
        start,
        use,
        pause,
        speak,
        say: utter,
        asked,
        state,
        environment,
        model,
      } = voiceTalk({
        subagents: { red: asking('Red?'), blue: asking('Blue?', { inputTimeout: 5000 }) },
        voice: { nudgeAfterMs: null },
      });
      await start();
      await use('red', 'blue');
      await pause();
      await speak('Red?');
      await environment.advance(60_000);
      expect(model().commands.some((command) => JSON.stringify(command).includes('Blue?'))).toBe(
        false,
      );
      expect(state().questions[1]).toMatchObject({ state: 'queued', dueAt: null });
      await utter('crimson');
      await pause();
      expect(asked()).toContain('Blue?');
      await speak('Blue?');
      expect(state().questions[1]?.dueAt).toBe(environment.clock.now() + 5000);
    },
  );

  test('releases the floor after an answer by button', { tags: ['BW16'] }, async () => {
    const { start, type, session, said, question, environment } = textTalk({
      subagents: {
        ask: {
          ...asking('Well?'),
          script: steps(calls(['ask_user', { question: 'Well?' }]), () => never()),
        },
      },
    });
    await start();
    await type('use ask');
    void session.answer(question()?.requestId ?? '', { text: 'yes' });
    await environment.settle();
    // The run continues, and the user can talk to the lead agent again.
    await type('hello');
    expect(said().at(-1)).toBe('You said: hello');
  });

  test('shows the client the options as buttons', { tags: ['BW17'] }, async () => {
    const options = [{ id: 'a', label: 'Economy', description: '$12' }];
    const { start, type, parts, events } = textTalk({
      subagents: {
        ask: {
          script: () => calls(['ask_user', { question: 'Which?', options }]),
          config: { interactive: true },
        },
      },
    });
    await start();
    await type('use ask');
    expect(parts).toContainEqual(expect.objectContaining({ type: 'question.asked', options }));
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'question.changed',
        question: expect.objectContaining({ options }),
      }),
    );
  });

  test(
    'ignores outdated clicks, repeated clicks and unknown options',
    { tags: ['BW18'] },
    async () => {
      const { start, type, session, state, environment } = textTalk({
        subagents: {
          ask: {
            script: steps(
              calls(['ask_user', { question: 'One?', options: [{ id: 'a', label: 'A' }] }]),
              calls(['ask_user', { question: 'Two?', options: [{ id: 'a', label: 'A' }] }]),
              say('done'),
            ),
            config: { interactive: true },
          },
        },
      });
      await start();
      await type('use ask');
      const first = state().questions[0]?.requestId ?? '';
      const click = async (requestId: string, optionId: string) => {
        const receipt = session.answer(requestId, { optionId });
        await environment.settle();
        return receipt;
      };
      expect(await click(first, 'z')).toEqual({ accepted: false, reason: 'invalid_option' });
      expect(await click(first, 'a')).toEqual({ accepted: true });
      expect(await click(first, 'a')).toEqual({ accepted: false, reason: 'over' });
      expect(state().questions[1]?.state).toBe('open');
    },
  );

  test(
    "does not let the lead agent's model reply to an answer meant for a subagent",
    { tags: ['BW19'] },
    async () => {
      const {
        start,
        use,
        pause,
        speak,
        say: utter,
        model,
        question,
      } = voiceTalk({
        subagents: {
          ask: {
            ...asking('Red?'),
            script: steps(calls(['ask_user', { question: 'Red?' }]), () => never()),
          },
        },
      });
      await start();
      await use('ask');
      await pause();
      await speak('Red?');
      const before = model().of('response.request').length;
      const utteranceId = await utter('crimson');
      await pause();
      expect(question()?.state).toBe('answered');
      expect(model().of('response.request')).toHaveLength(before);
      // The model does not even store the text as a user message.
      expect(
        model()
          .of('item.delete')
          .map(({ itemId }) => itemId),
      ).toEqual([utteranceId]);
    },
  );
});

describe('the runtime', () => {
  const unitOf = (release: (name: string) => void) => {
    const errors: unknown[] = [];
    const host = createHost({
      environment: simulatedEnvironment(),
      journal: memoryJournal(),
      onError: (error) => errors.push(error),
    });
    const taken: string[] = [];
    const unit: CommitUnit = new CommitUnit(
      { id: 'unit', scope: 'scope', kind: 'test', definitionVersion: 1 },
      host,
      {
        take: (_, event) => event,
        apply(_, event) {
          taken.push(event.type);
          unit.post('a', { kind: 'do', name: event.type, params: undefined });
        },
        release: ({ effect }) => release(effect.name),
        crashed() {},
        journalRefused() {},
      },
    );
    const send = (type: string) => unit.receive('a', { type });
    return { unit, send, taken, errors };
  };

  test(
    'reports an exception in an effect and then handles the next event',
    { tags: ['BW6'] },
    () => {
      const { send, taken, errors } = unitOf((name) => {
        if (name === 'bad') throw new Error('broken');
      });
      for (const type of ['one', 'bad', 'two']) expect(() => send(type)).not.toThrow();
      expect(taken).toEqual(['one', 'bad', 'two']);
      expect(errors).toEqual([expect.objectContaining({ message: 'broken' })]);
    },
  );

  test(
    'accepts no input until it has started, or after it has ended',
    { tags: ['BW7'] },
    async () => {
      const { send, unit, taken } = unitOf(() => {});
      unit.dispose();
      send('late');
      expect(taken).toEqual([]);

      const { session, environment, said, start } = textTalk();
      session.notifyBackground('Before the start');
      await environment.settle();
      expect(said()).toEqual([]);
      await start();
      expect(said()).toEqual([expect.stringContaining('Before the start')]);
      await session.close();
      expect(() => session.notifyBackground('After the end')).toThrow(/it is closed/);
      await environment.settle();
      expect(said()).toHaveLength(1);
    },
  );

  test(
    'disposes an instance that is created while the session closes',
    { tags: ['BW12'] },
    async () => {
      const made: string[] = [];
      const { start, type, session } = textTalk({
        // This takes longer than the close.
        memory: { facts: never, remember: async () => {}, forget: async () => false },
        subagents: {
          work: {
            ...done,
            config: {
              createInstance: () => {
                made.push('created');
                return {
                  name: 'work',
                  instructions: '',
                  dispose: () => void made.push('disposed'),
                };
              },
            },
          },
        },
      });
      await start();
      await type('use work');
      await session.close();
      expect(made).toEqual(['created', 'disposed']);
    },
  );

  test(
    'cancels every subagent on close and withdraws questions after a grace period',
    { tags: ['BW20'] },
    async () => {
      const { start, type, session, state, environment } = textTalk({
        subagents: { work: hanging, ask: asking('Well?') },
        detachGraceMs: 1000,
      });
      const leave = session.attach();
      await start();
      await type('use work and ask');
      leave();
      await environment.advance(1000);
      expect(state().questions[0]?.state).toBe('withdrawn');
      expect(state().subagents.map((subagent) => subagent.state)).toEqual(['running', 'completed']);
      await session.close();
      expect(state().subagents[0]?.state).toBe('cancelled');
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('clears all timers once a question is answered', { tags: ['BW27'] }, async () => {
    const { start, type, environment, state } = textTalk({ subagents: { ask: asking('Well?') } });
    await start();
    await type('use ask');
    await type('yes indeed');
    expect(state().subagents[0]?.state).toBe('completed');
    expect(environment.pendingTimers).toBe(0);
  });

  test(
    'deletes the records of finished work during a long conversation',
    { tags: ['BW31'] },
    async () => {
      const prompts: number[] = [];
      const { start, type, state } = textTalk({
        subagents: { work: done },
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') prompts.push(JSON.stringify(prompt).length);
        },
      });
      await start();
      for (let round = 0; round < 130; round += 1)
        await type(`use work {"text":"${'x'.repeat(3000)}"}`);
      expect(state().subagents).toHaveLength(100);
      expect(state().deliveries).toHaveLength(100);
      expect(state().transcript.length).toBeLessThanOrEqual(500);
      // The conversation that the model receives is bounded too.
      expect(Math.max(...prompts)).toBeLessThan(400_000);
      expect(prompts.at(-1)).toBeLessThan((prompts.at(-20) ?? 0) * 1.2);
    },
  );

  test('tolerates a hook that throws during a run', { tags: ['BW33'] }, async () => {
    const { start, type, state } = textTalk({
      subagents: { work: done },
      hooks: {
        onSubagentStep() {
          throw new Error('broken');
        },
        onError() {},
      },
    });
    await start();
    await type('use work');
    expect(state().subagents[0]?.outcome?.status).toBe('completed');
  });

  test(
    'does not give a slot to a subagent that was cancelled in the queue',
    { tags: ['BW34'] },
    async () => {
      const begun: string[] = [];
      let finish: () => void = () => {};
      const { start, type, session, environment } = textTalk({
        limits: { maxConcurrentPerSession: 1 },
        subagents: {
          slow: { script: () => new Promise((resolve) => (finish = () => resolve(say('done')))) },
          next: {
            script: () => {
              begun.push('next');
              return say('done');
            },
          },
          ask: asking('Well?'),
        },
      });
      await start();
      await type('use ask and slow and next {"n":1} and next {"n":2}');
      session.subagents.cancel(session.subagents.list()[2]?.id ?? '');
      finish();
      await environment.settle();
      expect(begun).toEqual(['next']);
    },
  );
});

describe('delivered results', () => {
  test(
    'delivers five notices one by one after silence, in order of priority',
    { tags: ['BW8'] },
    async () => {
      const { start, session, asked, speak, pause, model } = voiceTalk();
      await start();
      for (const [text, priority] of [
        ['1', 'normal'],
        ['2', 'normal'],
        ['H1', 'high'],
        ['H2', 'high'],
        ['3', 'normal'],
      ] as const)
        session.notifyBackground(`Number ${text}.`, { priority });
      const told: (string | undefined)[] = [];
      for (let round = 0; round < 5; round += 1) {
        await pause();
        expect(model().openRequests).toHaveLength(1);
        told.push(/Number (\w+)\./.exec(asked() ?? '')?.[1]);
        await speak('Number.');
      }
      expect(told).toEqual(['H1', 'H2', '1', '2', '3']);
    },
  );

  test(
    'drops the result of a cancelled call without reporting a failure',
    { tags: ['BW24'] },
    async () => {
      const results: string[] = [];
      let finish: (value: string) => void = () => {};
      const { start, type, said, session, environment, close } = textTalk({
        subagents: { work: hanging },
        tools: [
          defineTool({
            name: 'slow',
            description: 'Slow',
            parameters: emptySchema,
            timeout: 1000,
            execute: () => new Promise((resolve) => (finish = resolve)),
          }),
        ],
        hooks: {
          onToolResult: ({ name, output }) => results.push(`${name} ${JSON.stringify(output)}`),
        },
      });
      await start();
      await type('use work');
      session.subagents.cancel(session.subagents.list()[0]?.id ?? '');
      await environment.settle();
      expect(said().join()).not.toContain('failed');
      await type('use slow');
      await environment.advance(1000);
      finish('too late');
      await environment.settle();
      expect(results.filter((line) => line.startsWith('slow'))).toEqual([
        'slow {"error":"Tool \\"slow\\" timed out: whether it was done is not known. Find out before you repeat it."}',
      ]);
      await close();
    },
  );

  test(
    'limits text notices by number and time, and reports each notice that it drops',
    { tags: ['BW29'] },
    async () => {
      let release: () => void = () => {};
      const { start, type, session, state, environment, said } = textTalk({
        limits: { maxDeliveries: 3 },
        lead: (prompt) =>
          prompt.user === 'think'
            ? new Promise((resolve) => (release = () => resolve(say('Well.'))))
            : leadScript(prompt),
      });
      await start();
      await type('think');
      session.notifyBackground('brief', { ttlMs: 1000 });
      for (const text of ['one', 'two', 'three']) session.notifyBackground(text);
      await environment.advance(2000);
      release();
      await environment.settle();
      await environment.advance(1);
      expect(
        state().deliveries.map(({ text, state: now, dropped }) => [text, now, dropped]),
      ).toEqual([
        ['brief', 'dropped', 'expired'],
        ['one', 'delivered', null],
        ['two', 'delivered', null],
        ['three', 'dropped', 'full'],
      ]);
      expect(said()).toHaveLength(3);
    },
  );

  test(
    'repeats an interrupted delivery in the next pause without waiting for another user turn',
    { tags: ['BW29'] },
    async () => {
      const { start, session, asked, model, play, pause, environment, speak, state } = voiceTalk();
      await start();
      session.notifyBackground('The order was sent');
      await pause();
      const telling = model().begin('The order', 2000);
      await play(telling.itemId, 500);
      model().speechStarted('cough');
      await environment.settle();
      telling.end('cancelled');
      await play(telling.itemId, 520);
      model().speechEnded('cough', '');
      await pause();
      expect(asked()).toContain('The order was sent');
      await speak('The order was sent.');
      expect(state().deliveries[0]?.state).toBe('delivered');
    },
  );

  test(
    'delivers a result once, either as a delivery or as the answer to its call',
    { tags: ['BW30'] },
    async () => {
      const { start, use, pause, speak, asked, model, environment } = voiceTalk({
        subagents: { pending: done, deferred: { ...done, pending: null } },
      });
      await start();
      await use('pending', 'deferred');
      const told: (string | null)[] = [];
      for (let round = 0; round < 5; round += 1) {
        await pause();
        if (asked() === null) continue;
        told.push(asked());
        await speak('It is done.');
      }
      await environment.advance(3_600_000);
      expect(told.filter((line) => line !== 'reply')).toHaveLength(2);
      expect(
        model()
          .of('tool.answer')
          .map(({ callId }) => callId),
      ).toEqual(['call_1', 'call_2']);
    },
  );

  test('does not delay other calls while a slow tool is running', { tags: ['BW30'] }, async () => {
    const results: string[] = [];
    const tool = (name: string, execute: () => unknown) =>
      defineTool({ name, description: name, parameters: emptySchema, execute });
    const { start, type } = textTalk({
      tools: [tool('slow', never), tool('quick', () => 1)],
      subagents: { work: done },
      hooks: { onToolResult: ({ name }) => results.push(name) },
    });
    await start();
    await type('use slow and quick and work');
    expect(results.toSorted()).toEqual(['quick', 'work']);
  });

  test(
    'stops the current speech for an urgent delivery if possible',
    { tags: ['BW32'] },
    async () => {
      const { start, say: utter, session, model, play, environment, asked } = voiceTalk();
      await start();
      await utter('tell me a story');
      const story = model().begin('Once upon a time', 8000);
      await play(story.itemId, 1000);
      session.notifyBackground('Fire!', { priority: 'urgent' });
      await environment.settle();
      expect(model().of('response.cancel')).toHaveLength(1);
      story.end('cancelled');
      await play(story.itemId, 1100);
      expect(asked()).toContain('Fire!');
    },
  );

  test(
    'holds a result until the conversation is idle and only then sends it to the transport',
    { tags: ['BW36'] },
    async () => {
      const {
        start,
        use,
        say: utter,
        model,
        play,
        pause,
      } = voiceTalk({ subagents: { work: { ...done, pending: null } } });
      await start();
      await use('work');
      await utter('tell me a story');
      const story = model().begin('Once upon a time', 1000);
      await pause();
      expect(JSON.stringify(model().commands)).not.toContain('It is done.');
      story.end();
      await pause();
      expect(JSON.stringify(model().commands)).not.toContain('It is done.');
      await play(story.itemId);
      await pause();
      expect(JSON.stringify(model().commands)).toContain('It is done.');
    },
  );

  test(
    'keeps a result that arrives while the connection is lost, and keeps the text of an error too',
    { tags: ['BW9', 'BW37'] },
    async () => {
      let finish: () => void = () => {};
      const {
        start,
        say: utter,
        model,
        environment,
      } = voiceTalk({
        tools: [
          {
            name: 'pay',
            description: 'Pays',
            parameters: emptySchema,
            execute: () =>
              new Promise((_, reject) => (finish = () => reject(new Error('card declined')))),
          },
        ],
      });
      await start();
      await utter('pay');
      model().call({ callId: 'call_1', name: 'pay', arguments: '{}' });
      await environment.settle();
      model().drop();
      finish();
      await environment.advance(1000);
      expect(model().of('tool.answer')).toEqual([
        { type: 'tool.answer', callId: 'call_1', output: '{"error":"card declined"}' },
      ]);
    },
  );
});

describe('tool calls', () => {
  test('gives every call of a batch exactly one result', { tags: ['BW22'] }, async () => {
    const answered: string[] = [];
    const { start, type } = textTalk({
      subagents: { work: done, ask: asking('Well?') },
      tools: [
        defineTool({
          name: 'count',
          description: 'Counts',
          parameters: emptySchema,
          execute: () => 1,
        }),
      ],
      hooks: { onToolResult: ({ callId }) => answered.push(callId) },
    });
    await start();
    await type('use count and work and unknown and ask and count');
    expect(answered.toSorted()).toEqual(['call_1', 'call_2', 'call_3', 'call_4', 'call_5']);
  });

  test('throws at construction if a background tool has no subagent', { tags: ['BW23'] }, () => {
    expect(
      () =>
        new TextSession({
          environment: simulatedEnvironment(),
          model: scriptedModel({ scripts: [] }),
          agents: [{ ...agentOf({}), tools: [backgroundTool('report')] }],
        }),
    ).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringContaining('"report"'),
      }),
    );
  });

  test(
    'disposes a shared instance once, after its last subagent has ended, even if disposal fails',
    { tags: ['BW25'] },
    async () => {
      const log: string[] = [];
      const { start, type, session, environment, errors, state } = textTalk({
        subagents: {
          work: {
            script: () => calls(['hang']),
            config: {
              tools: { hang: simpleTool(never) },
              dispose() {
                log.push('disposed');
                throw new Error('cannot');
              },
            },
          },
        },
      });
      await start();
      await type('use work {"n":1} and work {"n":2}');
      const [first, second] = session.subagents.list();
      session.subagents.cancel(first?.id ?? '');
      await environment.settle();
      expect(log).toEqual([]);
      session.subagents.cancel(second?.id ?? '');
      session.subagents.cancel(second?.id ?? '');
      await environment.settle();
      expect(log).toEqual(['disposed']);
      expect(errors).toEqual([expect.objectContaining({ where: 'dispose of work' })]);
      expect(state().subagents.map(({ outcome }) => outcome?.status)).toEqual([
        'cancelled',
        'cancelled',
      ]);
    },
  );

  test('treats a repeated call id as a new call', { tags: ['BW26'] }, async () => {
    const { start, type, session, state, environment } = textTalk({
      subagents: { work: hanging },
      lead: ({ user, prompt }) =>
        prompt.at(-1)?.role === 'tool' ? say('On it.') : calls(['work', { user }, 'call_0']),
    });
    await start();
    await type('one');
    await type('two');
    expect(new Set(state().subagents.map(({ callId }) => callId)).size).toBe(2);
    session.subagents.cancel(state().subagents[1]?.id ?? '');
    await environment.settle();
    expect(state().subagents.map((subagent) => subagent.state)).toEqual(['running', 'cancelled']);
  });
});

describe('the conversation', () => {
  test('replaces the items that a summary covers', { tags: ['BW10'] }, () => {
    let log = ConversationLog.empty();
    for (let index = 0; index < 4; index += 1)
      log = log.add({ id: `m${index}`, at: index, role: 'user', text: `line ${index}` });
    const summarised = log.setSummary('They said four lines.');
    expect(summarised.items).toEqual([]);
    expect(JSON.stringify(summarised.toModelMessages())).not.toContain('line 2');
  });

  test(
    'preserves white space and repetitions, and records each item once',
    { tags: ['BW11'] },
    () => {
      let log = ConversationLog.empty().begin({ id: 'a', at: 0, role: 'assistant' });
      for (const delta of ['hello', ' ', 'world', ' I see a', ' a cat'])
        log = log.append('a', delta);
      const first = log.finish('a');
      expect(first.get('a')).toMatchObject({ text: 'hello world I see a a cat' });
      // A second `finish` from inside a listener changes nothing.
      expect(first.finish('a')).toBe(first);
      expect(first.add({ id: 'a', at: 1, role: 'assistant', text: 'again' }).items).toHaveLength(1);
    },
  );

  test(
    'gives a subagent the matching facts and the last ten turns, not the last ten items',
    { tags: ['BW21'] },
    async () => {
      let read: ReturnType<typeof readNotes> = [];
      let system = '';
      const memory = memoryStore();
      await memory.remember({ id: '1', scope: 'default', text: 'The user sells tea', at: 1 });
      const { start, type } = textTalk({
        memory,
        subagents: {
          work: {
            script: (prompt) => {
              system = prompt.system;
              read = prompt.prompt.flatMap(({ role, content }) =>
                role === 'user'
                  ? content.flatMap((part) => (part.type === 'text' ? readNotes(part.text) : []))
                  : [],
              );
              return say('done');
            },
          },
        },
        tools: [
          defineTool({
            name: 'dump',
            description: 'Dumps',
            parameters: emptySchema,
            execute: () => ({ raw: 'x'.repeat(5000) }),
          }),
        ],
        lead: (prompt) => (prompt.prompt.at(-1)?.role === 'tool' ? say('ok') : leadScript(prompt)),
      });
      await start();
      for (let index = 0; index < 8; index += 1) await type(`line ${index}`);
      await type('use dump');
      await type('use work');
      const known = read.find(({ quotes }) => 'memory' in quotes)?.quotes;
      expect(known?.['memory']).toEqual(['The user sells tea']);
      expect(known?.['recentConversation']).toHaveLength(10);
      expect(JSON.stringify([read, system])).not.toContain('xxx');
      expect(JSON.stringify(known)).toContain('line 7');
    },
  );
});
