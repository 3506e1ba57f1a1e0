// Subagents that ask the user of a text session: one question at a time, with every way in which a question may end.

import { describe, expect, test } from 'vitest';
import { createRuntime, memoryJournal, type QuestionView } from '../../src/index.ts';
import { readNotes, simulatedEnvironment, type Script } from '../../src/testing/index.ts';
import { calls, resultsIn, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { answering, settle, settling, textTalk, type TalkOptions } from '../support/text-talk.ts';

const options = [
  { id: 'economy', label: 'Economy', description: '$12' },
  { id: 'premium', label: 'Premium', description: '$24' },
];

/** Asks once and ends with the answer. */
const asking = (question: string, choices?: typeof options): Script =>
  steps(
    calls(['ask_user', { question, ...(choices ? { options: choices } : {}) }]),
    ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
  );

const subagent = (script: Script, config: Record<string, unknown> = {}) => ({
  script,
  config: { interactive: true, ...config },
});

function talk(talkOptions: TalkOptions = {}) {
  const made = textTalk(talkOptions);
  const { state, session, environment } = made;
  return {
    ...made,
    /** Returns the name and state of each question, in the order in which the questions were asked. */
    asked: () =>
      state()
        .questions.toSorted((a, b) => a.askedAt - b.askedAt)
        .map(({ subagentName, state: now }) => `${subagentName} ${now}`),
    questionOf: (name: string): QuestionView | undefined =>
      state().questions.findLast(({ subagentName }) => subagentName === name),
    /** Returns the result of a subagent that has ended. */
    resultOf: (name: string) => state().subagents.findLast((view) => view.name === name)?.outcome,
    async answer(name: string, given: Parameters<typeof session.answer>[1]) {
      const question = state().questions.findLast(({ subagentName }) => subagentName === name);
      const receipt = session.answer(question?.requestId ?? '', given);
      await environment.settle();
      return receipt;
    },
  };
}

describe('an answer', () => {
  const ride = { ride: subagent(asking('Economy or Premium?', options)) };

  test.each([
    ['the label', 'premium', 'premium'],
    ['the label in a sentence', 'Premium, please!', 'premium'],
    ['an ordinal', 'the second one', 'premium'],
    ['a close spelling', 'premum', 'premium'],
    ['the other one', 'the first', 'economy'],
  ])('counts if typed: %s', async (_, text, optionId) => {
    const { start, type, resultOf } = talk({ subagents: ride });
    await start();
    await type('use ride');
    await type(text);
    expect(resultOf('ride')?.text).toBe(
      `Got ${JSON.stringify({ userResponse: optionId === 'premium' ? 'Premium' : 'Economy', optionId })}`,
    );
  });

  test('counts whether it is typed or given with a button', { tags: ['B44', 'B46'] }, async () => {
    const { start, type, answer, resultOf } = talk({
      subagents: { ...ride, name: subagent(asking('Your name?')) },
    });
    await start();
    await type('use ride');
    expect(await answer('ride', { optionId: 'economy' })).toEqual({ accepted: true });
    expect(resultOf('ride')?.text).toContain('"optionId":"economy"');
    await type('use name');
    expect(await answer('name', { text: '  Ada ' })).toEqual({ accepted: true });
    expect(resultOf('name')?.text).toBe('Got {"userResponse":"Ada"}');
  });

  test(
    'P3: counts for the question that it names if it is the first valid answer',
    { tags: ['B46', 'BW18'] },
    async () => {
      const { start, type, session, questionOf, environment, resultOf } = talk({ subagents: ride });
      await start();
      await type('use ride');
      const requestId = questionOf('ride')?.requestId ?? '';
      const receipts = [
        session.answer(requestId, { optionId: 'helicopter' }),
        session.answer(requestId, { approved: true }),
        session.answer(requestId, { optionId: 'premium' }),
        session.answer(requestId, { optionId: 'economy' }),
        session.answer('q', { optionId: 'economy' }),
      ];
      await environment.settle();
      expect(await Promise.all(receipts)).toEqual([
        { accepted: false, reason: 'invalid_option' },
        { accepted: false, reason: 'invalid_option' },
        { accepted: true },
        { accepted: false, reason: 'over' },
        { accepted: false, reason: 'unknown' },
      ]);
      expect(resultOf('ride')?.text).toContain('premium');
      expect(await session.answer(requestId, { optionId: 'economy' })).toEqual({
        accepted: false,
        reason: 'over',
      });
    },
  );

  test(
    'informs the lead agent without causing a second reply',
    { tags: ['B51', 'BW19'] },
    async () => {
      const prompts: string[] = [];
      const { start, type, said, environment } = talk({
        subagents: ride,
        onModelCall: (who, { prompt }) => {
          if (who === 'lead') prompts.push(JSON.stringify(prompt));
        },
      });
      await start();
      await type('use ride');
      const before = prompts.length;
      await type('economy');
      await environment.settle();
      // One more call reports the result.
      expect(prompts.length).toBe(before + 1);
      expect(prompts.at(-1)).toContain('These words answered a subagent');
      expect(said().filter((text) => text.startsWith('You said'))).toEqual([]);
    },
  );
});

describe('messages that are not answers', () => {
  test('reach the lead agent as a digression and leave the question open', async () => {
    const { start, type, said, questionOf, resultOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', options)) },
      lead: settling('economy', settle('answer', { optionId: 'economy', quote: 'economy' })),
    });
    await start();
    await type('use ride');
    await type('what is the weather like?');
    expect(said().at(-1)).toBe('You said: what is the weather like?');
    expect(questionOf('ride')?.state).toBe('open');
    await type('economy');
    expect(resultOf('ride')?.text).toContain('Economy');
  });

  const put = (parts: readonly { readonly type: string }[]) =>
    parts.filter(({ type }) => type === 'question.asked').length;

  test.each([
    ['a choice', options],
    ['a free-text question', undefined],
  ])(
    'QUESTION-7: postpone the question if they say "wait" (to %s), so that it is asked again later',
    async (_, choices) => {
      const { start, type, said, parts, environment, questionOf, resultOf } = talk({
        subagents: { ride: subagent(asking('Where to?', choices)) },
      });
      await start();
      await type('use ride');
      const before = said().length;
      const { requestId = '', dueAt } = questionOf('ride') ?? {};
      await environment.advance(1000);
      await type('Wait a second.');
      expect(said()).toHaveLength(before);
      const heldUntil = environment.clock.now() + 10_000;
      // The question's timeout is paused in the meantime.
      expect(questionOf('ride')).toMatchObject({ state: 'open', dueAt: null, heldUntil });
      await environment.advance(9_999);
      expect(put(parts)).toBe(1);
      await environment.advance(1000);
      expect(put(parts)).toBe(2);
      expect(questionOf('ride')).toMatchObject({ requestId, state: 'open' });
      expect(questionOf('ride')?.dueAt).toBe((dueAt ?? 0) + 10_000);
      await type('economy');
      expect(resultOf('ride')?.text).toContain('conomy');
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('QUESTION-7: leave a postponed question alone if they are addressed to the lead agent', async () => {
    const { start, type, said, parts, environment, questionOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', options)) },
    });
    await start();
    await type('use ride');
    await type('hold on');
    const heldUntil = environment.clock.now() + 10_000;
    await environment.advance(4000);
    await type('What is the weather like in Paris?');
    expect(said().at(-1)).toBe('You said: What is the weather like in Paris?');
    expect(questionOf('ride')).toMatchObject({ state: 'open', heldUntil });
    await environment.advance(5999);
    expect(put(parts)).toBe(1);
    await environment.advance(1);
    expect(put(parts)).toBe(2);
  });

  test('QUESTION-7: postpone a question again and again until it expires', async () => {
    const { start, type, environment, resultOf, questionOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', options), { inputTimeout: 5000 }) },
    });
    await start();
    await type('use ride');
    await type('hold on');
    await environment.advance(8000);
    await type('one moment');
    await environment.advance(8000);
    expect(questionOf('ride')?.state).toBe('open');
    await environment.advance(2000 + 5000);
    expect(questionOf('ride')?.state).toBe('expired');
    expect(resultOf('ride')?.text).toContain('did not respond');
  });

  test.each([
    ['say that again', undefined],
    ['What were the options?', options],
    ['repeat the question', undefined],
    ['wait, what was the question?', options],
  ])('cause the question to be repeated without the lead agent: "%s"', async (words, choices) => {
    const { start, type, said, parts, questionOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', choices)) },
    });
    await start();
    await type('use ride');
    const before = said().length;
    const { requestId } = questionOf('ride') ?? {};
    for (const times of [2, 3, 4]) {
      await type(words);
      expect(put(parts)).toBe(times);
    }
    expect(said()).toHaveLength(before);
    const last = parts.findLast(({ type: kind }) => kind === 'question.asked');
    expect(last).toMatchObject({ requestId, options: choices ?? [] });
    expect(questionOf('ride')).toMatchObject({ requestId, state: 'open' });
  });

  test('reach the lead agent as a request together with the question', async () => {
    const prompts: string[] = [];
    const words = 'economy, no wait, premium';
    const { start, type, said, questionOf, resultOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', options)) },
      lead: settling(words, settle('answer', { optionId: 'premium', quote: words })),
      onModelCall: (who, { prompt }) => {
        if (who === 'lead') {
          const texts = prompt.flatMap(({ content }) =>
            typeof content === 'string'
              ? [content]
              : content.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
          );
          prompts.push(texts.join('\n'));
        }
      },
    });
    await start();
    await type('use ride');
    for (const wish of [
      'order lunch',
      'make me a sales report for last week',
      'Please book me a table for two people.',
    ]) {
      await type(wish);
      expect(said().at(-1)).toBe(`You said: ${wish}`);
      expect(questionOf('ride')?.state).toBe('open');
    }
    const known = readNotes(prompts.at(-1) ?? '').map(({ quotes }) => quotes);
    expect(known).toContainEqual({
      subagent: 'ride',
      question: 'Economy or Premium?',
      options: options.map(({ label, description }) => `${label}: ${description}`),
    });
    expect(resultOf('ride')).toBeNull();
    await type(words);
    expect(resultOf('ride')?.text).toContain('"optionId":"premium"');
  });

  test('USER-WORDS-4: enter the journal together with their interpretation', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    const { start, type } = talk({
      environment,
      runtime: createRuntime({ environment, journal }),
      subagents: { ride: subagent(asking('Economy or Premium?', options)) },
    });
    await start();
    await type('use ride');
    await type('hold on');
    await type('premium');
    const entries = journal
      .read()
      .flatMap(({ event }) => (event.type === 'user.said' ? [event] : []));
    expect(entries).toMatchObject([
      { text: 'use ride' },
      { reading: { to: 'hold', forMs: 10_000 } },
      { reading: { to: 'question', answer: { optionId: 'premium' } } },
    ]);
    expect(entries[0]).not.toHaveProperty('reading');
  });

  test('USER-WORDS-7: reach the lead agent if they are unclear, and leave the question open', async () => {
    const { start, type, said, questionOf } = talk({
      subagents: { ride: subagent(asking('Economy or Premium?', options)) },
    });
    await start();
    await type('use ride');
    await type('banana');
    expect(said().at(-1)).toBe('You said: banana');
    expect(questionOf('ride')?.state).toBe('open');
  });
});

describe('P2: several questions at a time', () => {
  test(
    'appear one after the other if two subagents ask in the same instant',
    { tags: ['B52'] },
    async () => {
      const { start, type, asked, answer, questionOf, parts, resultOf } = talk({
        subagents: { red: subagent(asking('Red?')), blue: subagent(asking('Blue?')) },
        // The lead agent reported the first result after the second question was asked.
        lead: answering('sky blue'),
      });
      await start();
      await type('use red and blue');
      expect(asked()).toEqual(['red open', 'blue queued']);
      expect(questionOf('blue')?.dueAt).toBeNull();
      // The buttons of a queued question are disabled.
      expect(await answer('blue', { text: 'yes' })).toEqual({ accepted: false, reason: 'queued' });
      await type('a deep red');
      expect(resultOf('red')?.text).toContain('a deep red');
      expect(asked()).toEqual(['red answered', 'blue open']);
      await type('sky blue');
      expect(resultOf('blue')?.text).toContain('sky blue');
      expect(
        parts.flatMap((part) => (part.type === 'question.asked' ? [part.question] : [])),
      ).toEqual(['Red?', 'Blue?']);
    },
  );

  test(
    'appear in order if one step asks two questions, even with others in between',
    { tags: ['B41'] },
    async () => {
      const { start, type, asked, state } = talk({
        subagents: {
          twice: subagent(
            steps(
              calls(['ask_user', { question: 'First?' }], ['ask_user', { question: 'Second?' }]),
              (prompt) => say(JSON.stringify(resultsIn(prompt).map(([, , value]) => value))),
            ),
          ),
          other: subagent(asking('Other?')),
        },
        lead: answering('two'),
      });
      await start();
      await type('use twice and other');
      expect(asked()).toEqual(['twice open', 'other queued']);
      await type('one');
      // The subagent asks again, after the questions that are waiting.
      expect(asked()).toEqual(['twice answered', 'other open', 'twice queued']);
      await type('between');
      await type('two');
      expect(state().subagents.map(({ outcome }) => outcome?.text)).toEqual([
        '[{"userResponse":"one"},{"userResponse":"two"}]',
        'Got {"userResponse":"between"}',
      ]);
    },
  );

  test('P3: apply a spoken answer to the presented question, never to a waiting one', async () => {
    const slots = ['Monday at 9:30', 'Monday at 16:00'].map((label, n) => ({ id: `s${n}`, label }));
    const rooms = ['Small room', 'Large room'].map((label, n) => ({ id: `r${n}`, label }));
    const choosing = (question: string, options: typeof slots) =>
      subagent(
        steps(calls(['ask_user', { question, options }]), (prompt) =>
          say(JSON.stringify(resultsIn(prompt).map(([, , value]) => value))),
        ),
      );
    const morning = 'uh half past nine I think';
    const large = 'not the small one, the large one';
    const { start, type, asked, state } = talk({
      subagents: { when: choosing('When?', slots), where: choosing('Which room?', rooms) },
      // The lead agent has spoken since each question was put.
      lead: (prompt) =>
        prompt.user === large
          ? settling(large, settle('answer', { optionId: 'r1', quote: large }))(prompt)
          : settling(morning, settle('answer', { optionId: 's0', quote: morning }))(prompt),
    });
    await start();
    await type('use when and where');
    await type('the large one');
    expect(asked()).toEqual(['when open', 'where queued']);
    await type(morning);
    expect(asked()).toEqual(['when answered', 'where open']);
    await type(large);
    expect(state().subagents.map(({ outcome }) => outcome?.text)).toEqual([
      '[{"userResponse":"Monday at 9:30","optionId":"s0"}]',
      '[{"userResponse":"Large room","optionId":"r1"}]',
    ]);
  });

  test('appear in order of request, without starvation', { tags: ['B52'] }, async () => {
    const names = Array.from({ length: 8 }, (_, index) => `s${index}`);
    const { start, type, asked } = talk({
      subagents: Object.fromEntries(names.map((name) => [name, subagent(asking(`${name}?`))])),
      lead: answering('fine by me'),
    });
    await start();
    await type(`use ${names.join(' and ')}`);
    for (const [index, name] of names.entries()) {
      expect(asked()[index]).toBe(`${name} open`);
      await type('fine by me');
    }
    expect(asked().every((line) => line.endsWith('answered'))).toBe(true);
  });
});

describe('questions without an answer', () => {
  const patient: Script = ({ results }) =>
    (results[0] as { userResponse?: string } | undefined)?.userResponse === undefined
      ? calls(['ask_user', { question: 'Still there?' }])
      : say('There you are.');

  test(
    'make their tool fail with a fixed message, and end the subagent after three in a row',
    { tags: ['B26', 'B42', 'B45'] },
    async () => {
      const { start, type, environment, resultOf, questionOf } = talk({
        subagents: { work: subagent(patient, { maxSteps: 10 }) },
      });
      await start();
      await type('use work');
      await environment.advance(119_999);
      expect(questionOf('work')?.state).toBe('open');
      await environment.advance(1);
      await environment.advance(120_000);
      expect(resultOf('work')).toBeNull();
      await environment.advance(120_000);
      expect(resultOf('work')).toMatchObject({
        status: 'failed',
        error: { code: 'INPUT_TIMEOUT', message: expect.stringContaining('Each of 3 questions') },
        toolLedger: [
          {
            output:
              'The user did not respond in time. You may re-ask, or go on without an answer. (attempt 1/3)',
          },
          {
            output:
              'The user did not respond in time. You may re-ask, or go on without an answer. (attempt 2/3)',
          },
          {},
        ],
      });
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('restart the count after an answer', { tags: ['B26'] }, async () => {
    const prompts: unknown[] = [];
    const { start, type, environment, resultOf } = talk({
      subagents: {
        work: subagent(
          (prompt) => {
            prompts.push(...resultsIn(prompt).map(([, , value]) => value));
            return calls(['ask_user', { question: 'Still there?' }]);
          },
          { maxSteps: 10, inputTimeout: 1000 },
        ),
      },
    });
    await start();
    await type('use work');
    await environment.advance(2000);
    await type('yes I am');
    await environment.advance(3000);
    expect(prompts.map((result) => /\d\/3|am/.exec(JSON.stringify(result))?.[0])).toEqual([
      '1/3',
      '2/3',
      'am',
      '1/3',
      '2/3',
    ]);
    expect(resultOf('work')?.error?.code).toBe('INPUT_TIMEOUT');
  });

  test('free the floor for the next question, whose timeout starts only then', async () => {
    const { start, type, environment, asked, questionOf } = talk({
      subagents: {
        red: subagent(steps(calls(['ask_user', { question: 'Red?' }]), say('Never mind.')), {
          inputTimeout: 1000,
        }),
        blue: subagent(asking('Blue?'), { inputTimeout: 5000 }),
      },
    });
    await start();
    await type('use red and blue');
    await environment.advance(1000);
    expect(asked()).toEqual(['red expired', 'blue open']);
    expect(questionOf('blue')?.dueAt).toBe(environment.clock.now() + 5000);
    await environment.advance(4999);
    expect(asked()[1]).toBe('blue open');
  });

  test('let later messages reach the lead agent again', async () => {
    const { start, type, environment, said } = talk({
      subagents: {
        red: subagent(steps(calls(['ask_user', { question: 'Red?' }]), say('Never mind.')), {
          inputTimeout: 1000,
        }),
      },
    });
    await start();
    await type('use red');
    await environment.advance(1000);
    await type('hello');
    expect(said().at(-1)).toBe('You said: hello');
  });
});

describe('the floor of a question that ends early', () => {
  test(
    'passes to the next question if its subagent or a queued subagent is cancelled',
    { tags: ['B54'] },
    async () => {
      const { start, type, asked, session, state, said, environment } = talk({
        subagents: {
          red: subagent(asking('Red?')),
          blue: subagent(asking('Blue?')),
          green: subagent(asking('Green?')),
        },
      });
      await start();
      await type('use red and blue and green');
      const idOf = (name: string) => state().subagents.find((view) => view.name === name)?.id ?? '';
      session.subagents.cancel(idOf('blue'));
      await environment.settle();
      expect(asked()).toEqual(['red open', 'blue withdrawn', 'green queued']);
      session.subagents.cancel(idOf('red'));
      await environment.settle();
      expect(asked()).toEqual(['red withdrawn', 'blue withdrawn', 'green open']);
      session.subagents.cancel(idOf('green'));
      await environment.settle();
      await type('hello');
      expect(said().at(-1)).toBe('You said: hello');
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('does not pass to another question if the session closes', async () => {
    const { start, type, asked, close, environment } = talk({
      subagents: { red: subagent(asking('Red?')), blue: subagent(asking('Blue?')) },
      // The lead agent reported the first result after the second question was put.
      lead: answering('sky blue'),
    });
    await start();
    await type('use red and blue');
    await close();
    expect(asked()).toEqual(['red withdrawn', 'blue withdrawn']);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('questions without a listener', () => {
  test(
    'wait at the head of the queue with a paused timeout until a client attaches',
    { tags: ['B50'] },
    async () => {
      const { session, environment, type, asked, questionOf, resultOf, parts } = talk({
        subagents: {
          red: subagent(asking('Red?'), { inputTimeout: 1000 }),
          blue: subagent(asking('Blue?')),
        },
      });
      const leave = session.attach();
      await session.start();
      session.parts.subscribe((part) => parts.push(part));
      await type('use red and blue');
      await environment.advance(600);
      const { requestId } = questionOf('red') as QuestionView;
      leave();
      await environment.advance(3_600_000);
      expect(asked()).toEqual(['red parked', 'blue queued']);
      session.attach();
      await environment.settle();
      expect(questionOf('red')).toMatchObject({ state: 'open', requestId });
      // The question still has the rest of its time.
      await environment.advance(399);
      expect(questionOf('red')?.state).toBe('open');
      await type('crimson');
      expect(resultOf('red')?.text).toContain('crimson');
      expect(asked()[1]).toBe('blue open');
    },
  );

  test('disappear after detachGraceMs while their subagents continue', async () => {
    const { start, session, environment, type, asked, resultOf } = talk({
      detachGraceMs: 60_000,
      subagents: { red: subagent(asking('Red?')), blue: subagent(asking('Blue?')) },
      // The lead agent reported the first result after the second question was put.
      lead: answering('sky blue'),
    });
    const leave = session.attach();
    await start();
    await type('use red and blue');
    leave();
    await environment.advance(59_999);
    expect(asked()).toEqual(['red parked', 'blue queued']);
    await environment.advance(1);
    expect(asked()).toEqual(['red withdrawn', 'blue withdrawn']);
    expect(resultOf('red')?.text).toContain('The question was withdrawn');
    expect(resultOf('blue')?.text).toContain('The question was withdrawn');
  });

  test('remain if a client returns before detachGraceMs', async () => {
    const { start, session, environment, type, asked } = talk({
      detachGraceMs: 60_000,
      subagents: { red: subagent(asking('Red?')) },
    });
    const leave = session.attach();
    await start();
    await type('use red');
    leave();
    await environment.advance(59_999);
    session.attach();
    await environment.advance(60_000);
    expect(asked()).toEqual(['red open']);
  });
});

describe('consent in text', () => {
  const paying = (said: string[]) => ({
    pay: {
      script: steps(calls(['pay', { sum: 7 }]), ({ prompt }) => {
        const last = prompt.at(-1);
        return say(`It says ${last?.role === 'tool' ? JSON.stringify(last.content) : ''}`);
      }),
      config: { tools: { pay: simpleTool(() => said.push('paid'), { needsApproval: true }) } },
    },
  });

  test.each([
    ['yes', true],
    ['Yes, please.', true],
    ['no', false],
    ['no, do not do that', false],
    ['yes and no', false],
  ])('decides: %s', async (text, approved) => {
    const ran: string[] = [];
    const { start, type, resultOf } = talk({ subagents: paying(ran) });
    await start();
    await type('use pay');
    await type(text);
    expect(ran).toHaveLength(approved ? 1 : 0);
    expect(resultOf('pay')?.toolLedger[0]?.status).toBe(approved ? 'ok' : 'denied');
    if (!approved) expect(resultOf('pay')?.text).toContain('execution-denied');
  });

  test.each(['yess', 'maybe', 'I think so', 'what would it cost?', 'wait', 'ok then'])(
    'remains missing after: %s',
    async (text) => {
      const ran: string[] = [];
      const { start, type, questionOf } = talk({ subagents: paying(ran) });
      await start();
      await type('use pay');
      await type(text);
      expect(ran).toEqual([]);
      expect(questionOf('pay')?.state).toBe('open');
    },
  );

  test('counts if it is given with a button', async () => {
    const ran: string[] = [];
    const { start, type, answer } = talk({ subagents: paying(ran) });
    await start();
    await type('use pay');
    expect(await answer('pay', { text: 'yes' })).toEqual({
      accepted: false,
      reason: 'invalid_option',
    });
    expect(await answer('pay', { optionId: 'approve' })).toEqual({ accepted: true });
    expect(ran).toHaveLength(1);
  });
});
