import { describe, expect, test } from 'vitest';
import { Interruptions } from '../../../src/voice/turns/interruptions.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

function speaking({ falseInterruptionMs = 2000, canPause = true } = {}) {
  const environment = simulatedEnvironment();
  const done: string[] = [];
  let isPaused = false;
  const interruptions = new Interruptions(
    environment,
    { falseInterruptionMs, backchannelMs: 1000 },
    {
      pause: () => {
        if (!canPause) return false;
        isPaused = true;
        done.push('pause');
        return true;
      },
      isPaused: () => isPaused,
      resume: () => {
        isPaused = false;
        done.push('goOn');
      },
      breakOff: () => {
        isPaused = false;
        done.push('breakOff');
      },
      backchannelIn: (text) =>
        text === 'mm-hm' ? 'whole' : 'mm-hm'.startsWith(text) ? 'beginning' : 'none',
    },
  );
  return { environment, interruptions, done };
}

describe('INTERRUPTIONS-1 INTERRUPTIONS-2: speech stops at once, and', () => {
  test('goes on after a word of somebody who listens', () => {
    const { interruptions, done } = speaking();
    interruptions.began('u1');
    expect(done).toEqual(['pause']);
    expect(interruptions.understood('u1', 'mm', false)).toBe(false);
    interruptions.ended('u1');
    expect(interruptions.understood('u1', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'goOn']);
  });

  test('goes on after a noise', () => {
    const { interruptions, done } = speaking();
    interruptions.began('u1');
    interruptions.ended('u1');
    expect(interruptions.understood('u1', ' ', true)).toBe(false);
    expect(done).toEqual(['pause', 'goOn']);
  });

  test.each([
    ['all of the words', true],
    ['the first words', false],
  ])('is broken off by %s', (_what, final) => {
    const { interruptions, done } = speaking();
    interruptions.began('u1');
    expect(interruptions.understood('u1', 'stop', final)).toBe(false);
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('is broken off when the user goes on for too long', async () => {
    const { interruptions, done, environment } = speaking();
    interruptions.began('u1');
    await environment.advance(1599);
    expect(done).toEqual(['pause']);
    await environment.advance(1);
    expect(done).toEqual(['pause', 'breakOff']);
    // What it was does not matter any more.
    interruptions.ended('u1');
    expect(interruptions.understood('u1', 'mm-hm', true)).toBe(false);
    expect(done).toEqual(['pause', 'breakOff']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('is broken off when the user begins once more', () => {
    const { interruptions, done } = speaking();
    interruptions.began('u1');
    interruptions.ended('u1');
    interruptions.began('u2');
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('is broken off when the model has stopped by itself', () => {
    const { interruptions, done } = speaking();
    interruptions.confirm();
    expect(done).toEqual([]);
    interruptions.began('u1');
    interruptions.confirm();
    interruptions.confirm();
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('goes on when nobody will say what it was, and the user is silent', async () => {
    const { interruptions, done, environment } = speaking();
    interruptions.began('u1');
    interruptions.ended('u1');
    interruptions.reset();
    interruptions.reset();
    await environment.advance(10_000);
    expect(done).toEqual(['pause', 'goOn']);
  });

  test('is broken off when nobody will say what it was, and the user is still speaking', () => {
    const { interruptions, done } = speaking();
    interruptions.began('u1');
    interruptions.reset();
    interruptions.reset();
    expect(done).toEqual(['pause', 'breakOff']);
  });
});

describe('without words in time', () => {
  async function letGo() {
    const talk = speaking();
    talk.interruptions.began('u1');
    await talk.environment.advance(900);
    talk.interruptions.ended('u1');
    await talk.environment.advance(1999);
    expect(talk.done).toEqual(['pause']);
    await talk.environment.advance(1);
    expect(talk.done).toEqual(['pause', 'goOn']);
    return talk;
  }

  test('INTERRUPTIONS-4: it goes on, and words that come then still break it off', async () => {
    const { interruptions, done } = await letGo();
    expect(interruptions.understood('u1', 'stop', true)).toBe(false);
    expect(done).toEqual(['pause', 'goOn', 'breakOff']);
  });

  test('words of somebody who listens change nothing', async () => {
    const { interruptions, done } = await letGo();
    expect(interruptions.understood('u1', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'goOn']);
  });

  test('the next utterance is in doubt again', async () => {
    const { interruptions, done } = await letGo();
    interruptions.began('u2');
    expect(interruptions.understood('u1', 'stop', true)).toBe(false);
    expect(interruptions.understood('u2', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'goOn', 'pause', 'goOn']);
  });
});

test.each([{ falseInterruptionMs: 0 }, { canPause: false }])(
  'there may be no doubt: %j',
  (options) => {
    const { interruptions, done, environment } = speaking(options);
    interruptions.began('u1');
    expect(interruptions.understood('u1', 'mm-hm', true)).toBe(false);
    expect(done).toEqual(['breakOff']);
    expect(environment.pendingTimers).toBe(0);
  },
);
