// A user who has answered a question hears at once that the answer was understood, and nothing more.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  scriptedVoice,
  simulatedEnvironment,
  type ScriptedVoice,
  type SimulatedEnvironment,
} from '../../src/testing/index.ts';
import { acknowledgementIn } from '../../src/language/acknowledgement.ts';
import { BY_ITSELF, FakeTransport } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];
const choice = { question: 'Economy or Premium?', options };

interface Setting extends VoiceTalkOptions {
  /** Speaks the acknowledgement. If null, the model speaks it. @defaultValue a scripted voice */
  readonly speaker?: ScriptedVoice | null;
  /** The subagent's question. */
  readonly question?: object;
  /** How long the subagent works after the answer, in milliseconds. @defaultValue 5000 */
  readonly workMs?: number;
}

async function asked({ speaker, question = choice, workMs = 5000, ...rest }: Setting = {}) {
  const environment =
    (rest.environment as SimulatedEnvironment | undefined) ?? simulatedEnvironment();
  const voice =
    speaker === undefined ? scriptedVoice({ environment, msPerCharacter: 50 }) : speaker;
  const talk = voiceTalk({
    subagents: {
      ride: {
        script: steps(calls(['ask_user', question]), async () => {
          await new Promise<void>((resolve) => {
            environment.scheduler.schedule(resolve, workMs);
          });
          return say('It is booked.');
        }),
        config: { interactive: true },
      },
    },
    transport: new FakeTransport({ speaksOutOfBand: voice === null }),
    ...rest,
    ...(voice &&
      rest.acknowledgement !== false && {
        acknowledgement: { ...rest.acknowledgement, voice },
      }),
    environment,
  });
  await talk.start();
  if (rest.transport) {
    await talk.say('use ride');
    const own = talk.model().beginByItself('', 0);
    const call = { callId: 'call_1', name: 'ride', arguments: '{}', responseId: own.responseId };
    talk.model().events.next({ type: 'tool.called', ...call });
    own.end();
    await environment.settle();
    await talk.play(talk.model().speakByItself('On it.'));
  } else await talk.use('ride');
  await talk.pause();
  await talk.speak('Economy or Premium?');
  await environment.advance(100);
  return {
    ...talk,
    said: () => voice?.said ?? [],
    fillers: () => talk.state().transcript.filter(({ filler }) => filler),
  };
}

describe('an acknowledgement by voice', () => {
  test('ACKNOWLEDGEMENT-1, ACKNOWLEDGEMENT-2: plays once after a short delay and is not a delivery', async () => {
    const { say: utter, environment, said, fillers, state, model } = await asked();
    const before = state().deliveries.length;
    await utter('premium please');
    await environment.advance(399);
    expect(said()).toEqual([]);
    await environment.advance(1);
    expect(said()).toEqual(['Premium. One moment.']);
    await environment.advance(4000);
    expect(said()).toHaveLength(1);
    expect(fillers()).toMatchObject([{ text: 'Premium. One moment.', role: 'assistant' }]);
    expect(state().deliveries).toHaveLength(before);
    expect(model().openRequests).toEqual([]);
  });

  test('does not play if the result is already available', async () => {
    const { say: utter, environment, said, asked: request } = await asked({ workMs: 100 });
    await utter('premium');
    await environment.advance(10_000);
    expect(request()).toContain('It is booked.');
    expect(said()).toEqual([]);
  });

  test('does not play while the user is speaking, and stops when the user interrupts', async () => {
    for (const afterMs of [200, 600]) {
      const { say: utter, environment, said, model, fillers, events } = await asked();
      await utter('premium');
      await environment.advance(afterMs);
      model().speechStarted('u9');
      await environment.advance(3000);
      expect(said()).toHaveLength(afterMs < 400 ? 0 : 1);
      if (afterMs > 400) {
        expect(fillers()).toMatchObject([{ interrupted: true }]);
        expect(events.some(({ type }) => type === 'playout.clear')).toBe(true);
      }
    }
  });

  test('replies once to a user who asks for time and leaves the question open', async () => {
    const { say: utter, environment, said, state } = await asked();
    await utter('let me think');
    await environment.advance(5000);
    expect(said()).toEqual(['Take your time.']);
    expect(state().questions).toMatchObject([{ state: 'open' }]);
    await utter('premium');
    await environment.advance(1000);
    expect(said()).toEqual(['Take your time.', 'Premium. One moment.']);
  });

  test('does not play if none of the phrases fits', async () => {
    const say = { en: { choice: 'Right.', other: 'Right.' } };
    const { say: utter, environment, said } = await asked({ acknowledgement: { say } });
    await utter('let me think');
    await environment.advance(5000);
    expect(said()).toEqual([]);
  });

  test('does not play if another question is due', async () => {
    const talk = await asked({
      subagents: {
        ride: {
          script: steps(calls(['ask_user', choice]), calls(['ask_user', choice]), say('Done.')),
          config: { interactive: true },
        },
      },
    });
    await talk.say('premium');
    await talk.environment.advance(5000);
    expect(talk.said()).toEqual([]);
  });

  test('does not repeat a free-text answer', async () => {
    const { say: utter, environment, said } = await asked({ question: { question: 'Where to?' } });
    await utter('to the north station');
    await environment.advance(400);
    expect(said()).toEqual(['One moment.']);
  });

  test('ACKNOWLEDGEMENT-1: asks for a moment after an approval without repeating the choice', async () => {
    const pay = tool({
      description: 'Pays',
      inputSchema: z.object({}),
      needsApproval: true,
      execute: () => new Promise(() => {}),
    });
    const {
      say: utter,
      environment,
      said,
    } = await asked({
      subagents: {
        ride: {
          script: steps(calls(['pay', {}])),
          config: { interactive: true, tools: { pay } },
        },
      },
    });
    await utter('yes');
    await environment.advance(400);
    expect(said()).toEqual(['One moment.']);
  });

  test.each([
    ['de-AT', undefined, ['Premium. Einen Moment.']],
    ['fr', undefined, ['Premium. Un instant.']],
    ['es', undefined, ['Premium. Un momento.']],
    ['it', undefined, []],
    [
      'it',
      { it: { choice: '{choice}, un attimo.', other: 'Un attimo.' } },
      ['Premium, un attimo.'],
    ],
    ['en', { en: { choice: 'Right.', other: 'Right.' } }, ['Right.']],
  ])('speaks %s', async (language, phrases, expected) => {
    const {
      say: utter,
      environment,
      said,
    } = await asked({
      agent: { language },
      ...(phrases && { acknowledgement: { say: phrases } }),
    });
    await utter('premium');
    await environment.advance(1000);
    expect(said()).toEqual(expected);
  });

  test('does not play if it is turned off', async () => {
    const { say: utter, environment, said, model } = await asked({ acknowledgement: false });
    await utter('premium');
    await environment.advance(3000);
    expect(said()).toEqual([]);
    expect(model().openRequests).toEqual([]);
  });
});

test('becomes an out-of-band request if the model speaks it', async () => {
  const { say: utter, environment, model } = await asked({ speaker: null });
  await utter('premium');
  await environment.advance(400);
  expect(model().openRequests).toMatchObject([
    { outOfBand: true, instructions: expect.stringContaining('"Premium. One moment."') },
  ]);
});

describe('HELD-SPEECH-4: an acknowledgement by a model that answers on its own', () => {
  const byItself = () => asked({ speaker: null, transport: new FakeTransport(BY_ITSELF) });

  test.each([
    ['Premium it is. One moment.', true],
    ['Okay, premium. Just a second.', true],
    ['Premium is booked!', false],
    ['Premium. Anything else?', false],
  ])('plays unless its text goes beyond an acknowledgement: %s', async (words, isHeard) => {
    const { say: utter, environment, model, state } = await byItself();
    await utter('premium');
    const own = model().beginByItself(words, 1000);
    await environment.advance(300);
    own.end();
    await environment.advance(1000);
    expect(state().transcript.some(({ text }) => text === words)).toBe(isHeard);
  });
});

describe('a model that answers on its own, after an utterance that is not an answer', () => {
  test.each([
    ['let me think', 'Take your time.', true],
    ['let me think', 'Premium, then. One moment.', false],
    ['let me think', 'I will take premium for you.', false],
    ['could you say that again?', 'Sure.', true],
    ['could you say that again?', 'It was about cars.', false],
  ])('plays the reply to "%s" with the text "%s": %s', async (said, words, isHeard) => {
    const talk = await asked({ speaker: null, transport: new FakeTransport(BY_ITSELF) });
    await talk.say(said);
    const own = talk.model().beginByItself(words, 1000);
    await talk.environment.advance(300);
    own.end();
    await talk.environment.advance(1000);
    expect(talk.state().transcript.some(({ text }) => text === words)).toBe(isHeard);
    expect(talk.state().questions).toMatchObject([
      { state: expect.not.stringMatching('answered') },
    ]);
  });
});

describe('acknowledgementIn', () => {
  const premium = { choice: 'Premium', isApproval: false, language: 'en' };

  test.each([
    ['Premium. One moment, please.', 'whole'],
    ['Got it, thanks. Just a moment.', 'whole'],
    ['Premium. One mom', 'beginning'],
    ['Econ', 'none'],
    ['Economy. One moment.', 'none'],
    ['Premium. Your driver is on the way.', 'none'],
    ['I booked premium.', 'none'],
    ['Premium?', 'none'],
  ])('classifies %s: %s', (text, reading) =>
    expect(acknowledgementIn(text, premium)).toBe(reading),
  );

  test.each([
    ['en', 'Okay. One moment.', 'One moment.'],
    ['de', 'Alles klar. Einen Moment bitte.', 'Einen Moment bitte.'],
    ['fr', "D'accord, un instant.", 'Un instant.'],
    ['es', 'Muy bien. Un momento, por favor.', 'Un momento, por favor.'],
  ])('%s: accepts only the "one moment" part after an approval', (language, more, moment) => {
    expect(acknowledgementIn(more, { ...premium, language })).toBe('whole');
    const approval = { choice: null, isApproval: true, language };
    expect(acknowledgementIn(more, approval)).toBe('none');
    expect(acknowledgementIn(moment, approval)).toBe('whole');
  });

  test('does not recognise an acknowledgement in a language without tables', () =>
    expect(acknowledgementIn('Un attimo.', { ...premium, language: 'it' })).toBe('none'));
});
