// Silence: an open question is asked again in a short form, and the app learns that the user is away.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const question = {
  question: 'Which ride do you want?',
  options: [
    { id: 'economy', label: 'Economy' },
    { id: 'premium', label: 'Premium' },
    { id: 'van', label: 'Van' },
  ],
};
const SHORT = '"short":"Economy, Premium, or Van?"';

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks it up',
  parameters: z.object({}),
  execute: () => new Promise(() => {}),
});

/** Plays until the question has just been heard to its end. */
async function asked(options: VoiceTalkOptions = {}) {
  const talk = voiceTalk({
    subagents: {
      ride: {
        script: steps(calls(['ask_user', question]), say('It is booked.')),
        config: { interactive: true },
      },
    },
    tools: [lookUp],
    ...options,
  });
  await talk.start();
  await talk.use('ride');
  await talk.pause();
  await talk.speak('Economy, Premium or Van?');
  return {
    ...talk,
    /** Returns the message that the model was asked to speak, with its subject. */
    told: () => talk.asked() ?? '',
    away: () =>
      talk.events.flatMap(({ type }) =>
        type === 'user.away' || type === 'user.back' ? [type] : [],
      ),
  };
}

describe('an unanswered question', () => {
  test('QUESTION-8: repeats in its short form at most twice', async () => {
    const { environment, asked: request, told, speak, question: view } = await asked();
    await environment.advance(14_900);
    expect(request()).toBeNull();
    for (let time = 1; time <= 2; time += 1) {
      await environment.advance(100);
      expect(request()).toContain('Ask the user the question');
      expect(told()).toContain(SHORT);
      await environment.advance(1000);
      await speak('Economy, Premium or Van?');
      await environment.advance(14_900);
      expect(request()).toBeNull();
    }
    await environment.advance(60_000);
    expect(request()).toBeNull();
    expect(view()?.state).toBe('open');
  });

  test('accepts an answer before and after it is repeated', async () => {
    for (const afterMs of [5000, 15_000]) {
      const { environment, say: utter, speak, question: view } = await asked();
      await environment.advance(afterMs);
      if (afterMs === 15_000) await speak('Economy, Premium or Van?');
      await utter('premium');
      expect(view()).toMatchObject({ state: 'answered', answer: 'Premium' });
    }
  });

  test('repeats in full when the user asks, and then twice in short form', async () => {
    const { environment, say: utter, told, speak, asked: request } = await asked();
    for (let time = 1; time <= 2; time += 1) {
      await environment.advance(15_000);
      await speak('Economy, Premium or Van?');
    }
    await utter('sorry, what did you say?');
    await environment.advance(500);
    expect(request()).not.toBeNull();
    expect(told()).not.toContain(SHORT);
    await speak('Which ride do you want? Economy, Premium or Van?');
    await environment.advance(15_000);
    expect(told()).toContain(SHORT);
  });

  test('SILENCE-1: waits while the user is speaking, a tool is running or the client is away', async () => {
    const speaking = await asked();
    await speaking.environment.advance(14_000);
    speaking.model().speechStarted('u9');
    await speaking.environment.advance(5000);
    expect(speaking.asked()).toBeNull();

    const working = await asked();
    await working.say('what is the weather?');
    working.model().call({ callId: 'call_9', name: 'look_up', arguments: '{}' });
    await working.environment.advance(25_000);
    expect(working.asked()).toBeNull();

    const alone = await asked();
    alone.leave();
    await alone.environment.advance(60_000);
    expect(alone.asked()).toBeNull();
    expect(alone.question()?.state).toBe('parked');
  });

  test('waits twice as long if the user asks for time', async () => {
    const { environment, say: utter, asked: request, told } = await asked();
    await utter('hold on');
    await environment.advance(29_000);
    expect(request()).toBeNull();
    await environment.advance(2000);
    expect(request()).toContain('Ask the user the question');
    expect(told()).not.toContain(SHORT);
  });

  test.each([
    ['de', '"short":"Economy, Premium oder Van?"'],
    ['fr', '"short":"Economy, Premium ou Van?"'],
    ['es', '"short":"Economy, Premium o Van?"'],
    ['it', '"short":"Economy, Premium o Van?"'],
  ])('repeats in the language %s', async (language, short) => {
    const { environment, told } = await asked({ agent: { language } });
    await environment.advance(15_000);
    expect(told()).toContain(short);
  });

  test('repeats later or not at all if so configured', async () => {
    const never = await asked({ voice: { nudgeAfterMs: null } });
    await never.environment.advance(60_000);
    expect(never.asked()).toBeNull();
    const later = await asked({ voice: { nudgeAfterMs: 20_000 } });
    await later.environment.advance(19_900);
    expect(later.asked()).toBeNull();
    await later.environment.advance(100);
    expect(later.asked()).not.toBeNull();
  });
});

describe('SILENCE-2, SILENCE-3: a silent user', () => {
  test('counts as away once, and as back again at the first sound', async () => {
    const { environment, events, away, model, speak } = await asked();
    await environment.advance(14_900);
    expect(away()).toEqual([]);
    await environment.advance(100);
    expect(events.at(-1) && away()).toEqual(['user.away']);
    expect(events).toContainEqual({ type: 'user.away', silentMs: 15_000 });
    await speak('Economy, Premium or Van?');
    await environment.advance(60_000);
    expect(away()).toEqual(['user.away']);
    model().speechStarted('u9');
    expect(away()).toEqual(['user.away', 'user.back']);
  });

  test('counts as back after a typed message', async () => {
    const { environment, away, session } = await asked();
    await environment.advance(15_000);
    await session.sendText('premium');
    expect(away()).toEqual(['user.away', 'user.back']);
  });

  test('never counts as away if this feature is off', async () => {
    const { environment, away } = await asked({ voice: { awayAfterMs: null } });
    await environment.advance(60_000);
    expect(away()).toEqual([]);
  });
});
