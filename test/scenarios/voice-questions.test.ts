// A question by voice: the moment from which an answer counts, how the question is interrupted, and the time for an
// answer (P3).

import { describe, expect, test } from 'vitest';
import { FakeTransport } from '../support/fake-transport.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];

const asking = (question: string, choices: typeof options | null = null, config = {}) => ({
  script: steps(
    calls(['ask_user', { question, ...(choices ? { options: choices } : {}) }]),
    ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true, ...config },
});

const ride = { ride: asking('Economy or Premium?', options) };

/** Plays until the lead agent is asked to put the question to the user. */
async function untilAsked(talkOptions: VoiceTalkOptions = { subagents: ride }, name = 'ride') {
  const talk = voiceTalk(talkOptions);
  await talk.start();
  await talk.use(name);
  await talk.pause();
  expect(talk.asked()).toContain('Ask the user the question');
  return {
    ...talk,
    resultText: () => talk.state().subagents[0]?.outcome?.text,
    requestId: talk.question()?.requestId ?? '',
  };
}

test('sends the open question to a transport that accepts one', async () => {
  const transport = new FakeTransport({ takesOpenQuestion: true });
  const { model, environment, play } = await untilAsked({ subagents: ride, transport });
  const expected = () =>
    model()
      .of('question.expect')
      .map(({ question }) => question);
  await play(model().speak('Economy or Premium?'));
  await environment.settle();
  model().speechStarted('answer');
  expect(expected().at(-1)).toEqual({
    kind: 'choice',
    options,
    question: 'Economy or Premium?',
    action: '',
  });
  model().speechEnded('answer', 'Premium');
  await environment.settle();
  model().speechStarted('later');
  expect(expected().at(-1)).toBeNull();

  const deaf = await untilAsked();
  deaf.model().speechStarted('answer');
  expect(deaf.model().of('question.expect')).toEqual([]);
});

test('P5: ignores an echo of the question but accepts a time that the user says over it', async () => {
  const slots = ['Monday at 9:30', 'Monday at 16:00'].map((label, n) => ({ id: `s${n}`, label }));
  const question = 'Monday at 9:30 or Monday at 16:00?';
  const talk = await untilAsked({ subagents: { ride: asking(question, slots) } });
  const { model, environment, play } = talk;
  const putting = model().begin(question, 3000);
  await play(putting.itemId, 1500);
  for (const [index, heard] of [question, 'monday at nine thirty or monday at sixteen'].entries()) {
    model().speechStarted(`echo-${index}`);
    await environment.advance(300);
    model().speechEnded(`echo-${index}`, heard);
    await environment.settle();
    expect(talk.question()).toMatchObject({ answer: null });
  }
  model().speechStarted('barge');
  await environment.advance(300);
  model().speechEnded('barge', 'uh four pm please');
  await environment.settle();
  expect(talk.question()).toMatchObject({ state: 'answered', answer: 'Monday at 16:00' });
});

describe('speech over a question', () => {
  test('counts only if it started after the question had begun to play', async () => {
    const { model, environment, play, question, asked } = await untilAsked();
    // This utterance started before any part of the question was heard.
    const putting = model().begin('Economy', 2000);
    model().speechStarted('early');
    await environment.advance(100);
    model().speechEnded('early', 'economy');
    await environment.settle();
    expect(question()?.state).toBe('presenting');
    putting.end('cancelled');
    await environment.settle();
    // The utterance was for the lead agent.
    expect(asked()).toBe('reply');
    await play(model().speak('Economy class? I see.'));
  });

  test('counts if it interrupts the question and names an option', async () => {
    const { model, environment, play, question, resultText } = await untilAsked();
    const putting = model().begin('Economy or Premium?', 2000);
    await play(putting.itemId, 700);
    await environment.advance(10);
    model().speechStarted('barge');
    await environment.settle();
    await play(putting.itemId, 750);
    putting.end('cancelled');
    model().speechEnded('barge', 'Premium!');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Premium' });
    expect(resultText()).toContain('premium');
  });

  describe.each([
    ['What name is it under?', 'Miller.'],
    ['For when shall I book it?', 'Friday night.'],
  ])('a question for free text: %s', (question, words) => {
    /** Makes the user say this during the question, which stops it. */
    async function interrupted(said: string) {
      const talk = await untilAsked({ subagents: { ride: asking(question) } });
      const putting = talk.model().begin(question, 2000);
      await talk.play(putting.itemId, 700);
      await talk.environment.advance(10);
      talk.model().speechStarted('barge');
      await talk.environment.settle();
      await talk.play(putting.itemId, 750);
      putting.end('cancelled');
      talk.model().speechEnded('barge', said);
      await talk.environment.settle();
      return talk;
    }

    test('QUESTION-3: accepts the interruption as its answer and is not asked again', async () => {
      const talk = await interrupted(words);
      expect(talk.question()).toMatchObject({ state: 'answered', answer: words });
      expect(talk.resultText()).toContain(words);
      await talk.pause();
      expect(talk.asked()).not.toContain('Ask the user');
    });

    test('lets the lead agent settle the question if the answer contains another request', async () => {
      const talk = await interrupted(`${words.slice(0, -1)}, and what is the weather like?`);
      expect(talk.asked()).toBe('reply');
      await talk.settles({ text: words, quote: words });
      expect(talk.question()).toMatchObject({ state: 'answered', answer: words });
    });

    test('leaves an unrelated request to the lead agent and is asked again', async () => {
      const talk = await interrupted('Call my mother.');
      expect(talk.asked()).toBe('reply');
      await talk.speak('I am calling her.');
      expect(talk.question()?.state).toBe('presenting');
      await talk.pause();
      expect(talk.asked()).toContain(question);
    });
  });

  test('does not accept a spoken answer after a button has been pressed', async () => {
    const { model, environment, speak, question, session, requestId, asked } = await untilAsked();
    await speak('Economy or Premium?');
    model().speechStarted('late');
    session.questionShown(requestId);
    const receipt = session.answer(requestId, { optionId: 'economy' });
    await environment.settle();
    expect(await receipt).toEqual({ accepted: true });
    model().speechEnded('late', 'premium');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Economy' });
    // Any further utterance is sent to the lead agent.
    expect(asked()).toBe('reply');
  });
});

describe('the delivery of a closed question', () => {
  test('ends as dismissed even while it is being spoken', async () => {
    const { model, environment, play, session, requestId, state } = await untilAsked();
    const putting = model().begin('Economy or Premium?', 2000);
    await play(putting.itemId, 700);
    expect(state().deliveries[0]).toMatchObject({ deliveryId: requestId, state: 'playing' });
    const receipt = session.answer(requestId, { optionId: 'economy' });
    await environment.settle();
    expect(await receipt).toEqual({ accepted: true });
    expect(state().deliveries[0]).toMatchObject({ deliveryId: requestId, state: 'dismissed' });
  });

  test('remains delivered if it has already been heard', async () => {
    const { speak, say: utter, state } = await untilAsked();
    await speak('Economy or Premium?');
    await utter('Economy');
    expect(state().questions[0]?.state).toBe('answered');
    expect(state().deliveries[0]).toMatchObject({ state: 'delivered', grade: 'played' });
  });
});

describe('the deadline of a question', () => {
  test('starts when the question has been heard in full', async () => {
    const { model, environment, play, question } = await untilAsked();
    await environment.advance(3000);
    expect(question()).toMatchObject({ state: 'presenting', dueAt: null });
    const putting = model().speak('Economy or Premium?', 2000);
    await play(putting, 1000);
    await environment.advance(1000);
    expect(question()?.dueAt).toBeNull();
    await play(putting, 2000);
    expect(question()).toMatchObject({ state: 'open', dueAt: environment.clock.now() + 120_000 });
  });

  test('starts when its card is shown if the question cannot be spoken', async () => {
    const { model, environment, question, session, requestId, pause } = await untilAsked({
      subagents: ride,
      voice: { maxAttempts: 1 },
    });
    model().begin('', 0).end('failed');
    await environment.settle();
    session.questionShown(requestId);
    await environment.settle();
    expect(question()).toMatchObject({ state: 'open', dueAt: environment.clock.now() + 120_000 });
    const receipt = session.answer(requestId, { optionId: 'premium' });
    await pause();
    expect(await receipt).toEqual({ accepted: true });
  });

  test('makes the tool report the timeout, and ends the subagent the third time in a row', async () => {
    const { speak, environment, state, pause, asked } = await untilAsked({
      subagents: {
        ride: {
          script: () => calls(['ask_user', { question: 'Still there?' }]),
          config: { interactive: true, inputTimeout: 1000, maxSteps: 10 },
        },
      },
    });
    for (const attempt of [1, 2, 3]) {
      expect(asked()).toContain('Still there?');
      await speak('Are you still there?');
      await environment.advance(1000);
      if (attempt < 3) {
        expect(state().subagents[0]?.outcome).toBeNull();
        await pause();
      }
    }
    expect(state().subagents[0]?.outcome?.error?.code).toBe('INPUT_TIMEOUT');
    await pause();
    // The user learns why the work has ended.
    expect(asked()).toContain('Each of 3 questions got no answer in time');
  });
});

describe('utterances that are not answers', () => {
  test('count as a digression that the lead agent answers, and leave the question open', async () => {
    const { speak, say: utter, question, asked, settles } = await untilAsked();
    await speak('Economy or Premium?');
    await utter('what time is it?');
    expect(asked()).toBe('reply');
    await speak('It is noon.');
    expect(question()?.state).toBe('open');
    // "It is noon." has been spoken since then, so the lead agent settles the question.
    await utter('economy then');
    expect(question()?.state).toBe('open');
    await settles({ optionId: 'economy', quote: 'economy then' });
    expect(question()).toMatchObject({ state: 'answered', answer: 'Economy' });
  });

  test.each([
    ['a choice', ride],
    ['a free-text question', { ride: asking('Economy or Premium?') }],
  ])(
    'QUESTION-7: postpone the question with "wait" over %s, after which it is asked again',
    async (_, subagents) => {
      const {
        speak,
        say: utter,
        question,
        asked,
        environment,
        resultText,
      } = await untilAsked({
        subagents,
      });
      await speak('Economy or Premium?');
      await utter('Wait a second.');
      expect(asked()).toBeNull();
      await environment.advance(29_000);
      expect(asked()).toBeNull();
      expect(question()).toMatchObject({ state: 'open', dueAt: null });
      await environment.advance(2000);
      expect(asked()).toContain('Economy or Premium?');
      await speak('So: Economy or Premium?');
      await utter('Premium.');
      expect(resultText()).toContain('Premium');
    },
  );

  test('QUESTION-7: stop the question with "wait", so that it is asked again later', async () => {
    const { model, environment, play, pause, question, asked, speak } = await untilAsked();
    const putting = model().begin('Economy or Premium?', 2000);
    await play(putting.itemId, 700);
    await environment.advance(10);
    model().speechStarted('barge');
    await environment.settle();
    putting.end('cancelled');
    await play(putting.itemId, 750);
    model().speechEnded('barge', 'hold on');
    await environment.settle();
    await pause();
    expect(asked()).toBeNull();
    await environment.advance(31_000);
    expect(asked()).toContain('Economy or Premium?');
    await speak('Economy or Premium?');
    expect(question()).toMatchObject({ state: 'open' });
  });

  test.each(['Say that again.', 'What were the options?', 'Repeat the question, please.'])(
    'cause the question to be repeated: %s',
    async (words) => {
      const {
        speak,
        say: utter,
        question,
        asked,
        pause,
        requestId,
      } = await untilAsked({
        subagents: { ride: asking('Where to?', options) },
      });
      await speak('Where to? Economy or Premium?');
      for (const _ of [1, 2]) {
        await utter(words);
        await pause();
        expect(asked()).toContain('Where to?');
        expect(asked()).toContain('Premium');
        await speak('Where to? Economy or Premium?');
        expect(question()).toMatchObject({ requestId, state: 'open' });
      }
      // An utterance after an unclear answer does not count as an answer either.
      await utter('the purple elephant');
      expect(question()?.state).toBe('open');
    },
  );

  test.each(['Order lunch.', 'Make me a sales report for last week.'])(
    'reach the lead agent as a request: %s',
    async (words) => {
      const { speak, say: utter, question, asked, resultText, settles } = await untilAsked();
      await speak('Economy or Premium?');
      await utter(words);
      expect(asked()).toBe('reply');
      await speak('I will see to it.');
      expect(question()?.state).toBe('open');
      await utter('Economy, no wait, premium.');
      expect(question()?.state).toBe('open');
      await settles({ optionId: 'premium', quote: 'premium' });
      expect(resultText()).toContain('premium');
    },
  );

  test("USER-WORDS-7: reach the lead agent if unclear, without changing the question's deadline", async () => {
    const { speak, say: utter, question, asked, environment } = await untilAsked();
    await speak('Economy or Premium?');
    const dueAt = question()?.dueAt;
    await environment.advance(1000);
    await utter('the purple elephant');
    expect(asked()).toBe('reply');
    await speak('Economy or Premium, please?');
    expect(question()).toMatchObject({ state: 'open', dueAt });
  });
});

describe('consent by voice', () => {
  const paying = (ran: string[]) => ({
    pay: {
      script: steps(calls(['pay', { sum: 7 }]), say('Well.')),
      config: { tools: { pay: simpleTool(() => ran.push('paid'), { needsApproval: true }) } },
    },
  });

  test.each([
    ['yes', 1],
    ['yes please', 1],
    ['no', 0],
    ['yes no', 0],
  ])('counts only after the whole question has been heard: %s', async (words, paid) => {
    const ran: string[] = [];
    const { speak, say: utter, question } = await untilAsked({ subagents: paying(ran) }, 'pay');
    await speak('May I pay 7?');
    await utter(words);
    expect(question()?.state).toBe('answered');
    expect(ran).toHaveLength(paid);
  });

  test('never counts if it interrupts the question', async () => {
    const ran: string[] = [];
    const { model, play, environment, question } = await untilAsked(
      { subagents: paying(ran) },
      'pay',
    );
    const putting = model().begin('May I', 2000);
    await play(putting.itemId, 700);
    await environment.advance(10);
    model().speechStarted('barge');
    await environment.settle();
    putting.end('cancelled');
    model().speechEnded('barge', 'yes');
    await play(putting.itemId, 750);
    expect(ran).toEqual([]);
    expect(question()?.state).toBe('presenting');
  });
});

describe('the floor of a question', () => {
  test('becomes free if the subagent is cancelled while the question is being spoken', async () => {
    const { model, play, environment, session, question, asked, say: utter } = await untilAsked();
    const putting = model().begin('Economy or', 2000);
    await play(putting.itemId, 500);
    session.subagents.cancel(session.subagents.list()[0]?.id ?? '');
    await environment.settle();
    expect(question()?.state).toBe('withdrawn');
    // The question is not spoken to its end.
    expect(model().of('response.cancel')).toHaveLength(1);
    putting.end('cancelled');
    await environment.settle();
    await utter('premium');
    expect(asked()).toBe('reply');
  });

  test('belongs to one of two subagents that ask in the same instant', async () => {
    const talk = voiceTalk({ subagents: { red: asking('Red?'), blue: asking('Blue?') } });
    const owners: string[][] = [];
    talk.session.questions.subscribe(() => {
      owners.push(
        talk.events
          .flatMap((event) => (event.type === 'question.changed' ? [event.question] : []))
          .reduce<string[]>((open, { subagentName, state }) => {
            const others = open.filter((name) => name !== subagentName);
            return state === 'presenting' || state === 'open' ? [...others, subagentName] : others;
          }, []),
      );
    });
    await talk.start();
    await talk.use('red', 'blue');
    for (const answer of ['crimson', 'navy']) {
      await talk.pause();
      await talk.speak('Which one?');
      await talk.say(answer);
    }
    expect(Math.max(...owners.map(({ length }) => length))).toBe(1);
    expect(talk.state().questions.map(({ answer }) => answer)).toEqual(['crimson', 'navy']);
  });
});
