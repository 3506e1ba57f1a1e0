// The usage patterns of a text session: background work with and without an immediate reply, with questions, and with
// failures. Also tests how the session looks on screens.

import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { defineTool, TextSession, type SessionEvent, type TextPart } from '../../src/index.ts';
import { memoryStore } from '../../src/entries/memory.ts';
import {
  readNotes,
  scriptedModel,
  simulatedEnvironment,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { bookRide, RIDE_INSTRUCTIONS, rideConfig, rideScript } from '../support/ride.ts';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { leadScript, textTalk } from '../support/text-talk.ts';

/** Returns the quotations in the notes of a model's prompt. */
const notesOf = (read: ScriptedPrompt | undefined) =>
  (read?.prompt ?? [])
    .flatMap(({ role, content }) => (role === 'user' ? content : []))
    .flatMap((part) => (part.type === 'text' ? readNotes(part.text) : []))
    .map(({ quotes }) => quotes);

/** Creates a subagent that works until the test releases it. */
function slowReport(text = 'Sales are up by 7 percent.') {
  let finish: () => void = () => {};
  const working = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return { script: () => working.then(() => say(text)), finish: () => finish() };
}

const texts = (parts: readonly TextPart[]): string[] =>
  parts.flatMap((part) => (part.type === 'text.done' ? [part.text] : []));

async function read(session: TextSession, text: string): Promise<TextPart[]> {
  const parts: TextPart[] = [];
  for await (const part of session.send(text)) parts.push(part);
  return parts;
}

describe('pattern 1: a task', () => {
  test(
    'acknowledges immediately with a pending message and delivers its result in a pause',
    { tags: ['B1', 'B2', 'B14', 'B74', 'R13', 'R14', 'RW10'] },
    async () => {
      const { script, finish } = slowReport();
      const { start, session, environment, said, state } = textTalk({
        subagents: { report: { script } },
      });
      await start();
      const reply = await read(session, 'use report {"days":7}');
      expect(texts(reply)).toEqual([expect.stringContaining('still_in_progress')]);
      // The words are streamed, and then the whole text follows.
      const deltas = reply.flatMap((part) => (part.type === 'text.delta' ? [part.text] : []));
      expect(deltas.join('')).toBe(texts(reply)[0]);
      expect(deltas.length).toBeGreaterThan(1);
      expect(texts(await read(session, 'nice weather'))).toEqual(['You said: nice weather']);
      finish();
      await environment.settle();
      expect(said().at(-1)).toContain('Tell the user this result.');
      expect(said().at(-1)).toContain('{"task":"report","result":"Sales are up by 7 percent.');
      expect(state().subagents[0]).toMatchObject({
        name: 'report',
        toolName: 'report',
        callId: 'call_1',
        state: 'completed',
        step: 1,
        outcome: { text: 'Sales are up by 7 percent.' },
      });
      expect(state().deliveries[0]).toMatchObject({
        kind: 'result',
        label: 'report',
        state: 'delivered',
      });
    },
  );

  test(
    'says nothing before the result if there is no pending message',
    { tags: ['B15'] },
    async () => {
      const { script, finish } = slowReport();
      const { start, session, environment, said } = textTalk({
        subagents: { report: { script, pending: null } },
      });
      await start();
      expect(texts(await read(session, 'use report'))).toEqual([]);
      expect(said()).toEqual([]);
      finish();
      await environment.settle();
      expect(said()).toEqual([expect.stringContaining('Sales are up by 7 percent.')]);
    },
  );

  test(
    "delivers its result after the lead agent's reply, in a part that names the delivery",
    { tags: ['B58'] },
    async () => {
      const { script, finish } = slowReport();
      let release: () => void = () => {};
      const { start, session, type, environment, parts, state } = textTalk({
        subagents: { report: { script } },
        lead: (prompt) =>
          prompt.user === 'tell me a story'
            ? new Promise((resolve) => {
                release = () => resolve(say('Once upon a time.'));
              })
            : leadScript(prompt),
      });
      await start();
      await type('use report');
      await type('tell me a story');
      finish();
      await environment.settle();
      expect(state().deliveries[0]?.state).toBe('pending');
      release();
      await environment.settle();
      const done = parts.flatMap((part) => (part.type === 'text.done' ? [part] : []));
      expect(done.map(({ text }) => text.slice(0, 9))).toEqual([
        'Tools sai',
        'Once upon',
        'Told: [no',
      ]);
      expect(done.map(({ deliveryId }) => deliveryId)).toEqual([
        null,
        null,
        state().deliveries[0]?.deliveryId,
      ]);
      expect(session.subagents.list()).toHaveLength(1);
    },
  );

  test(
    'runs together with other tasks and delivers each result once',
    { tags: ['B35'] },
    async () => {
      const { start, type, said } = textTalk({
        subagents: Object.fromEntries(
          ['red', 'green', 'blue'].map((name) => [name, { script: () => say(`${name} is done`) }]),
        ),
      });
      await start();
      await type('use red and green and blue');
      for (const name of ['red', 'green', 'blue'])
        expect(said().filter((text) => text.includes(`"${name} is done"`))).toHaveLength(1);
    },
  );

  test('reads the conversation and the stored facts about the user', async () => {
    const prompts: ScriptedPrompt[] = [];
    const memory = memoryStore();
    await memory.remember({ id: '1', scope: 'ada', text: 'Prefers short reports', at: 1 });
    await memory.remember({ id: '2', scope: 'bob', text: 'Likes long reports', at: 1 });
    const { start, type } = textTalk({
      memory,
      memoryScope: 'ada',
      subagents: {
        report: {
          script: (prompt) => {
            prompts.push(prompt);
            return say('done');
          },
        },
      },
    });
    await start();
    await type('we sell tea');
    await type('use report {"days":7}');
    expect(prompts[0]?.system).toMatch(
      /^# Instructions\nYou are the subagent "report"\.\n\n# Task\nYou do the work of the tool report in the background, .*\n\n# Notes\n.*\s*$/,
    );
    expect(notesOf(prompts[0])).toEqual([
      {
        recentConversation: [
          { user: 'we sell tea' },
          { assistant: 'You said: we sell tea' },
          { user: 'use report {"days":7}' },
        ],
        memory: ['Prefers short reports'],
      },
      { task: 'Does report', arguments: { days: 7 } },
    ]);
  });

  test('continues without memory if the memory fails', async () => {
    const { start, type, said, errors } = textTalk({
      memory: {
        facts: () => Promise.reject(new Error('the database is down')),
        remember: () => Promise.resolve(),
        forget: () => Promise.resolve(false),
      },
      subagents: {
        report: {
          script: (prompt) => say(`Memory: ${notesOf(prompt).some(({ memory }) => memory)}`),
        },
      },
    });
    await start();
    await type('use report');
    expect(said().at(-1)).toContain('Memory: false');
    expect(errors).toEqual([
      { error: expect.objectContaining({ message: 'the database is down' }), where: 'memory' },
    ]);
  });

  test(
    'shows the latest progress of its tools while they are running',
    { tags: ['B40'] },
    async () => {
      const go: (() => void)[] = [];
      const { start, type, state, environment, events } = textTalk({
        subagents: {
          report: {
            script: steps(calls(['count']), say('done')),
            config: {
              tools: {
                count: simpleTool(async function* count() {
                  for (const progress of ['10 of 30', '20 of 30']) {
                    yield { progress };
                    await new Promise<void>((resolve) => go.push(resolve));
                  }
                  yield 'counted';
                }),
              },
            },
          },
        },
      });
      await start();
      await type('use report');
      expect(state().subagents[0]).toMatchObject({ state: 'running', progress: '10 of 30' });
      go.shift()?.();
      await environment.settle();
      expect(state().subagents[0]).toMatchObject({ progress: '20 of 30' });
      go.shift()?.();
      await environment.settle();
      expect(state().subagents[0]).toMatchObject({ state: 'completed', progress: null });
      expect(state().subagents[0]?.outcome?.toolLedger[0]).toMatchObject({ output: 'counted' });
      const seen = events.flatMap((event) =>
        event.type === 'subagent.changed' ? [event.subagent.progress] : [],
      );
      expect(new Set(seen)).toEqual(new Set([null, '10 of 30', '20 of 30']));
    },
  );

  test('separates the conversations of two runs', { tags: ['H5'] }, async () => {
    const seen: string[] = [];
    const { start, type } = textTalk({
      subagents: {
        report: {
          script: ({ user, results, prompt }) => {
            if (results.length > 0) {
              seen.push(JSON.stringify(prompt));
              return say('done');
            }
            return calls(['note', { of: user }]);
          },
          config: {
            tools: {
              note: {
                ...(simpleTool(() => null) as object),
                execute: ({ of }: { of: string }) => `noted ${of}`,
              },
            },
          },
        },
      },
    });
    await start();
    await type('use report {"city":"Rome"} and report {"city":"Oslo"}');
    expect(seen).toHaveLength(2);
    for (const [index, city] of ['Rome', 'Oslo'].entries()) {
      expect(seen[index]).toContain(`\\"city\\":\\"${city}\\"`);
      expect(seen[index]?.split('"role":"tool"')[1]).not.toContain(
        city === 'Rome' ? 'Oslo' : 'Rome',
      );
    }
  });
});

describe('pattern 2: a task that asks', () => {
  const ride = () => {
    const environment = simulatedEnvironment();
    const session = new TextSession({
      environment,
      model: scriptedModel({
        scripts: [
          { when: RIDE_INSTRUCTIONS, script: rideScript },
          {
            when: 'You talk',
            script: (prompt) =>
              prompt.user.startsWith('book') && prompt.prompt.at(-1)?.role === 'user'
                ? calls(['book_ride', { destination: 'airport' }])
                : leadScript(prompt),
          },
        ],
      }),
      agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
      subagentConfigs: { book_ride: rideConfig },
    });
    const parts: TextPart[] = [];
    return {
      environment,
      session,
      parts,
      listen: () => session.parts.subscribe((part) => parts.push(part)),
    };
  };

  test(
    'asks for the ride, accepts the typed answer, books and delivers',
    { tags: ['B4', 'B44', 'B74'] },
    async () => {
      const { environment, session, parts, listen } = ride();
      listen();
      await session.start();
      await read(session, 'book me a ride to the airport');
      await environment.settle();
      const asked = parts.find((part) => part.type === 'question.asked');
      expect(asked).toMatchObject({
        question: 'Economy or Premium?',
        subagentName: 'ride_booker',
        options: [
          { id: 'economy', label: 'Economy', description: '$12' },
          { id: 'premium', label: 'Premium', description: '$24' },
        ],
      });
      await read(session, 'economy, please');
      await environment.settle();
      expect(texts(parts).at(-1)).toContain('Your economy ride is booked.');
      const closed = session.close();
      await environment.advance(10_000);
      await closed;
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('opens a question and starts its timeout when a reader requests the part after it', async () => {
    const { environment, session } = ride();
    await session.start();
    const reader = session.read();
    const question = () => session.store.getSnapshot().context.questions[0];
    await session.sendText('book me a ride');
    let part = await reader.next();
    while (part.value?.type !== 'question.asked') part = await reader.next();
    // The reader may take any amount of time.
    await environment.advance(100_000);
    expect(question()).toMatchObject({ state: 'presenting', dueAt: null });
    void reader.next();
    await environment.settle();
    expect(question()).toMatchObject({ state: 'open', dueAt: environment.clock.now() + 120_000 });
  });
});

describe('work without a result', () => {
  test('reports a failure with the exact error', async () => {
    const { start, type, said, state } = textTalk({
      subagents: { report: { script: () => ({ error: new Error('no such quarter: Q5') }) } },
    });
    await start();
    await type('use report');
    expect(said().at(-1)).toMatch(
      /A background task failed and is over\. .*"task":"report","arguments":\{\},"error":".*no such quarter: Q5/s,
    );
    expect(state().subagents[0]).toMatchObject({ state: 'failed', outcome: { status: 'failed' } });
    expect(state().deliveries[0]).toMatchObject({ kind: 'result', state: 'delivered' });
  });

  test('reports a failure when it times out', { tags: ['B33'] }, async () => {
    const { start, type, said, environment, state } = textTalk({
      subagents: {
        report: {
          script: () => calls(['hang']),
          config: { timeout: 1000, tools: { hang: simpleTool(never) } },
        },
      },
    });
    await start();
    await type('use report');
    await environment.advance(1000);
    expect(said().at(-1)).toContain('The run used up its time');
    expect(state().subagents[0]).toMatchObject({
      state: 'failed',
      outcome: { status: 'timed_out' },
    });
  });

  test(
    'informs the lead agent of a cancellation without interrupting the conversation',
    { tags: ['BW24'] },
    async () => {
      const histories: string[] = [];
      const { start, type, said, session, environment, state } = textTalk({
        subagents: { report: { script: () => never() } },
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') histories.push(JSON.stringify(prompt));
        },
      });
      await start();
      await type('use report');
      const before = said().length;
      const id = session.subagents.list()[0]?.id ?? '';
      expect(session.subagents.cancel(id, 'not needed')).toBe(true);
      await environment.settle();
      expect(said()).toHaveLength(before);
      expect(state().subagents[0]).toMatchObject({ state: 'cancelled' });
      expect(state().deliveries).toEqual([]);
      expect(session.subagents.cancel(id)).toBe(false);
      await type('hello');
      expect(histories.at(-1)).toContain(
        String.raw`was cancelled. It has no result; nothing else was cancelled.\n[data] `,
      );
      expect(histories.at(-1)).not.toContain('failed');
    },
  );

  it('reports an unknown outcome to the lead agent if it is cancelled during a call', async () => {
    const histories: string[] = [];
    const { start, type, session, environment } = textTalk({
      subagents: {
        report: {
          script: () => calls(['charge']),
          config: { tools: { charge: simpleTool(never) } },
        },
      },
      onModelCall: (who, { prompt }) => {
        if (who === 'lead') histories.push(JSON.stringify(prompt));
      },
    });
    await start();
    await type('use report');
    session.subagents.cancel(session.subagents.list()[0]?.id ?? '', 'not needed');
    await environment.settle();
    await type('hello');
    expect(histories.at(-1)).toContain('It was running charge: whether that was done is not known');
  });

  test('answers its call if it is cancelled while the call is open', async () => {
    const answered: unknown[] = [];
    const { start, type, session, environment, said } = textTalk({
      subagents: { report: { script: () => never(), pending: null } },
      hooks: { onToolResult: ({ output }) => answered.push(output) },
    });
    await start();
    await type('use report');
    session.subagents.cancel(session.subagents.list()[0]?.id ?? '');
    await environment.settle();
    expect(answered).toEqual([{ error: 'Tool "report" was cancelled' }]);
    expect(said()).toEqual([]);
    await type('hello');
    expect(said()).toEqual(['You said: hello']);
  });
});

describe('two readers at the same time', () => {
  test('each read everything from their own start to the end', async () => {
    const { start, session } = textTalk();
    await start();
    const [first, second] = await Promise.all([read(session, 'one'), read(session, 'two')]);
    expect(texts(first).join()).toContain('You said:');
    expect(texts(second).at(-1)).toBe('You said: two');
  });

  test('continue if one of them stops early', async () => {
    const { start, session, type, said } = textTalk();
    await start();
    for await (const part of session.send('one')) {
      expect(part.type).toBe('text.delta');
      break;
    }
    await type('two');
    expect(said()).toEqual(['You said: one', 'You said: two']);
  });
});

describe('a lead model that fails', () => {
  test('reports the failure and answers the next message', async () => {
    let fails = true;
    const { start, session, type, said, errors } = textTalk({
      lead: ({ user }) => (fails ? { error: new Error('overloaded') } : say(`You said: ${user}`)),
    });
    await start();
    const parts = await read(session, 'hello');
    expect(parts).toEqual([
      expect.objectContaining({
        type: 'response.failed',
        message: expect.stringContaining('overloaded'),
      }),
    ]);
    expect(errors).toEqual([expect.objectContaining({ where: 'lead model' })]);
    fails = false;
    await type('hello again');
    expect(said()).toEqual(['You said: hello again']);
  });

  test('TEXT-RESPONSE-2: fails after two empty answers in a row', async () => {
    let calls = 0;
    const { start, session, said } = textTalk({
      lead: () => say((calls += 1) <= 2 ? '' : 'Here I am.'),
    });
    await start();
    expect(await read(session, 'hello')).toEqual([
      { type: 'response.failed', code: 'EMPTY_OUTPUT', message: 'The model ended without a word' },
    ]);
    expect(texts(await read(session, 'hello?'))).toEqual(['Here I am.']);
    expect(said()).toEqual(['Here I am.']);
  });

  test(
    'leaves the result it failed to deliver in the history and does not deliver it again',
    { tags: ['RW12'] },
    async () => {
      const { script, finish } = slowReport();
      let fails = false;
      const histories: string[] = [];
      const { start, type, parts, environment, state } = textTalk({
        subagents: { report: { script } },
        lead: (prompt) => (fails ? { error: new Error('overloaded') } : leadScript(prompt)),
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') histories.push(JSON.stringify(prompt));
        },
      });
      await start();
      await type('use report');
      fails = true;
      finish();
      await environment.settle();
      expect(parts.filter(({ type: kind }) => kind === 'delivery.card')).toEqual([
        expect.objectContaining({ label: 'report', text: expect.stringContaining('Sales are up') }),
      ]);
      // A user who saw the card knows the result, so it is not spoken again.
      expect(state().deliveries[0]).toMatchObject({
        state: 'delivered',
        card: true,
        grade: 'shown',
      });
      fails = false;
      await type('are you there?');
      expect(histories.at(-1)).toContain('Sales are up');
    },
  );
});

describe('messages that postpone a result while it is being delivered', () => {
  test('turn the result into a card that is not delivered again', async () => {
    const { script, finish } = slowReport();
    const { start, type, session, environment, said, state } = textTalk({
      subagents: { report: { script } },
    });
    await start();
    await type('use report');
    let stopped = false;
    session.parts.subscribe((part) => {
      if (stopped || part.type !== 'text.delta' || !part.text.includes('Sales')) return;
      stopped = true;
      void session.sendText('Not now, thanks.');
    });
    finish();
    await environment.settle();
    await environment.advance(60_000);
    expect(stopped).toBe(true);
    expect(state().deliveries).toMatchObject([{ card: true, attempts: 1 }]);
    // The lead agent answers the user's message.
    expect(said()).toHaveLength(2);
    expect(state().transcript.filter(({ interrupted }) => interrupted)).toHaveLength(1);
  });
});

describe('urgent deliveries', () => {
  test('interrupt the lead agent and mark its text in the transcript as interrupted', async () => {
    const { script, finish } = slowReport();
    const { start, type, session, environment, said, state } = textTalk({
      subagents: { report: { script } },
    });
    await start();
    await type('use report');
    let burns = false;
    session.parts.subscribe((part) => {
      // The notice arrives in the middle of the delivery.
      if (burns || part.type !== 'text.delta' || !part.text.includes('Sales')) return;
      burns = true;
      session.notifyBackground('The building is on fire', { priority: 'urgent', label: 'ALARM' });
    });
    finish();
    await environment.settle();
    const told = said().slice(1);
    expect(told[0]).toContain('on fire');
    // P4: the interrupted result is reported again.
    expect(told[1]).toContain('Sales are up by 7 percent.');
    expect(state().transcript.filter(({ interrupted }) => interrupted)).toHaveLength(1);
    expect(state().deliveries.map(({ state: now, attempts }) => [now, attempts])).toEqual(
      expect.arrayContaining([
        ['delivered', 2],
        ['delivered', 1],
      ]),
    );
  });

  test('do not wait for a slow tool, unlike other deliveries', async () => {
    let finish: () => void = () => {};
    const { start, type, session, environment, said } = textTalk({
      tools: [
        defineTool({
          name: 'weather',
          description: 'Tells the weather',
          parameters: z.object({}),
          execute: () => new Promise((resolve) => (finish = () => resolve('sunny'))),
        }),
      ],
    });
    await start();
    await type('use weather');
    session.notifyBackground('Your order was sent');
    await environment.settle();
    expect(said()).toEqual([]);
    session.notifyBackground('The building is on fire', { priority: 'urgent' });
    await environment.settle();
    expect(said()).toEqual([expect.stringContaining('on fire')]);
    finish();
    await environment.settle();
    expect(said()).toEqual([
      expect.stringContaining('on fire'),
      // The scripted model reads the last note. A real model also reads the tool's result.
      expect.stringContaining('A call has its result now'),
      expect.stringContaining('Your order was sent'),
    ]);
  });

  test('do not interrupt a reply while no client is attached', async () => {
    let finish: () => void = () => {};
    const { start, session, environment, state } = textTalk({
      lead: () => new Promise((resolve) => (finish = () => resolve(say('The answer.')))),
    });
    const leave = session.attach();
    await start();
    leave();
    await session.sendText('What is it?');
    await environment.settle();
    session.notifyBackground('The building is on fire', { priority: 'urgent' });
    await environment.settle();
    finish();
    await environment.settle();
    expect(state().transcript.map(({ text }) => text)).toEqual(['What is it?', 'The answer.']);
  });

  test('resume the answer that they have interrupted', async () => {
    let turn = 0;
    const { start, type, session, environment, said } = textTalk({
      lead: (prompt) => {
        turn += 1;
        // Without this, the first answer would never come.
        return turn === 1 ? never() : leadScript(prompt);
      },
    });
    await start();
    await type('what is my balance?');
    session.notifyBackground('The building is on fire', { priority: 'urgent' });
    await environment.settle();
    expect(said()).toEqual([
      expect.stringContaining('on fire'),
      expect.stringContaining('Your answer to what the user said was cut off'),
    ]);
  });
});

describe('the screens', () => {
  test(
    'receive events in order and the same state from the store',
    { tags: ['B3', 'B85', 'R19'] },
    async () => {
      const { start, type, events, state, environment, close } = textTalk({
        subagents: {
          ride: {
            script: steps(calls(['ask_user', { question: 'Red or blue?' }]), say('Booked.')),
            config: { interactive: true },
          },
        },
      });
      await start();
      await type('use ride');
      await type('blue');
      await environment.settle();
      const story = events.flatMap((event: SessionEvent) => {
        const { type: kind } = event;
        if (kind === 'connection.changed') return [`connection ${event.state}`];
        if (kind === 'tool.called' || kind === 'tool.answered') return [`${kind} ${event.name}`];
        if (kind === 'subagent.changed') return [`subagent ${event.subagent.state}`];
        if (kind === 'question.changed') return [`question ${event.question.state}`];
        if (kind === 'delivery.changed') return [`${event.delivery.kind} ${event.delivery.state}`];
        return kind === 'session.ended' ? ['ended'] : [];
      });
      const once = story.filter((line, index) => line !== story[index - 1]);
      expect(once).toEqual([
        'connection connecting',
        'connection active',
        'tool.called ride',
        'subagent spawning',
        'tool.answered ride',
        'subagent ready',
        'subagent running',
        'subagent waiting_for_input',
        'question presenting',
        'question offered',
        'question playing',
        'question delivered',
        'question open',
        'question answered',
        'subagent ready',
        'subagent running',
        'subagent completed',
        'result pending',
        'result offered',
        'result playing',
        'result delivered',
      ]);
      expect(state()).toMatchObject({
        connection: 'active',
        floor: 'nobody',
        subagents: [{ state: 'completed', endedAt: expect.any(Number) }],
        questions: [{ state: 'answered', answer: 'blue' }],
        deliveries: [{ kind: 'question' }, { kind: 'result', state: 'delivered' }],
      });
      expect(state().transcript.map(({ role, final }) => `${role} ${final}`)).toEqual([
        'user true',
        'assistant true',
        'user true',
        'assistant true',
      ]);
      await close();
      expect(events.at(-1)?.type).toBe('session.ended');
    },
  );

  test(
    'receive separate streams for notifications, questions and the transcript',
    { tags: ['B73'] },
    async () => {
      const { start, type, session, events } = textTalk({
        subagents: {
          ride: {
            script: steps(calls(['ask_user', { question: 'Red or blue?' }]), say('Booked.')),
            config: { interactive: true },
          },
        },
      });
      const seen = { notifications: 0, questions: 0, transcript: 0 };
      session.notifications.subscribe(() => (seen.notifications += 1));
      session.questions.subscribe(() => (seen.questions += 1));
      session.transcript.subscribe(() => (seen.transcript += 1));
      await start();
      await type('use ride');
      await type('blue');
      const count = (type: SessionEvent['type']) =>
        events.filter((event) => event.type === type).length;
      expect(seen).toEqual({
        notifications: count('delivery.changed'),
        questions: count('question.changed'),
        transcript: count('transcript.changed'),
      });
      expect(Object.values(seen).every((number) => number > 2)).toBe(true);
    },
  );

  test('show who has the floor', async () => {
    const { start, type, events } = textTalk();
    await start();
    await type('hello');
    expect(
      events.flatMap((event) => (event.type === 'floor.changed' ? [event.floor] : [])),
    ).toEqual(['model', 'nobody']);
  });
});
