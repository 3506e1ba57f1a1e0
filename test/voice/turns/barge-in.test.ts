import { describe, expect, test } from 'vitest';
import { TurnChart } from '../../../src/actors/session/lead/turn-chart.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { EchoMeter } from '../../../src/voice/audio/echo-meter.ts';
import { bargeInOf, END_LAG_MS } from '../../../src/voice/turns/listening.ts';
import { sessionIn, turnOf } from '../../support/turn.ts';

type Parts = Parameters<typeof bargeInOf>;

/** The lead agent is speaking. Only the part that the interruption uses is present. */
function speaking({ falseInterruptionMs = 2000, canPause = true } = {}) {
  const environment = simulatedEnvironment();
  const done: string[] = [];
  let isPaused = false;
  const core = {
    host: { environment },
    unit: { owner: null },
    agents: { current: { language: 'en' } },
    tree: { live: [] },
    projection: { emit: () => {} },
  };
  const speech = {
    playing: ['i1'],
    echo: new EchoMeter(),
    get canPause() {
      return canPause && !isPaused;
    },
    pause() {
      isPaused = true;
      done.push('pause');
    },
    resume() {
      isPaused = false;
      done.push('resume');
    },
  };
  const responses = {
    ownSince: Number.NEGATIVE_INFINITY,
    isSpeaking: true,
    held: { expectWanted: () => {} },
    silence() {
      isPaused = false;
      done.push('breakOff');
    },
  };
  const chart = new TurnChart(
    sessionIn(environment),
    { ...turnOf({ answersWords: false }), falseInterruptionMs, doubtMs: 1000 + END_LAG_MS },
    () => true,
    {
      pause: () => speech.pause(),
      resume: () => speech.resume(),
      breakOff: () => utterances.breakOff(),
    },
  );
  const utterances = bargeInOf(
    core as unknown as Parts[0],
    {
      falseInterruptionMs,
      backchannelMs: 1000,
      settleTimeoutMs: 5000,
      maxUtteranceMs: 60_000,
      capabilities: { utterances: 'reported' } as never,
    },
    { asks: () => false, wordsOf: () => '' } as unknown as Parts[2],
    responses as unknown as Parts[3],
    speech as unknown as Parts[4],
    chart,
  );
  const bargeIn = {
    began: (utteranceId: string, startedAt: number) => utterances.began(utteranceId, startedAt),
    ended: (utteranceId: string) => chart.send({ type: 'user.ended', utteranceId }),
    isBackchannel: (utteranceId: string, text: string, final: boolean) =>
      utterances.read(utteranceId, text, final) === 'backchannel',
    /** The model has stopped on its own. */
    confirm: () => chart.send({ type: 'model.stopped' }),
    /** No recogniser will report what the user said. */
    reset: () => chart.send({ type: 'doubt.lost' }),
  };
  return { environment, bargeIn, done };
}

describe('INTERRUPTIONS-1, INTERRUPTIONS-2: paused speech', () => {
  test('resumes after a backchannel', () => {
    const { bargeIn, done } = speaking();
    bargeIn.began('u1', 0);
    expect(done).toEqual(['pause']);
    expect(bargeIn.isBackchannel('u1', 'mm', false)).toBe(false);
    bargeIn.ended('u1');
    expect(bargeIn.isBackchannel('u1', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'resume']);
  });

  test('resumes after a noise', () => {
    const { bargeIn, done } = speaking();
    bargeIn.began('u1', 0);
    bargeIn.ended('u1');
    expect(bargeIn.isBackchannel('u1', ' ', true)).toBe(false);
    expect(done).toEqual(['pause', 'resume']);
  });

  test.each([
    ['all of the words', true],
    ['the first words', false],
  ])('stops at %s', (_what, final) => {
    const { bargeIn, done } = speaking();
    bargeIn.began('u1', 0);
    expect(bargeIn.isBackchannel('u1', 'stop', final)).toBe(false);
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('stops when the user speaks longer than a backchannel', async () => {
    const { bargeIn, done, environment } = speaking();
    bargeIn.began('u1', 0);
    await environment.advance(1599);
    expect(done).toEqual(['pause']);
    await environment.advance(1);
    expect(done).toEqual(['pause', 'breakOff']);
    // The words that were heard no longer matter.
    bargeIn.ended('u1');
    expect(bargeIn.isBackchannel('u1', 'mm-hm', true)).toBe(false);
    expect(done).toEqual(['pause', 'breakOff']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('stops when the user starts to speak again', () => {
    const { bargeIn, done } = speaking();
    bargeIn.began('u1', 0);
    bargeIn.ended('u1');
    bargeIn.began('u2', 0);
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('stops when the model confirms that it has stopped on its own', () => {
    const { bargeIn, done } = speaking();
    bargeIn.confirm();
    expect(done).toEqual([]);
    bargeIn.began('u1', 0);
    bargeIn.confirm();
    bargeIn.confirm();
    expect(done).toEqual(['pause', 'breakOff']);
  });

  test('resumes if no transcript will arrive and the user is silent', async () => {
    const { bargeIn, done, environment } = speaking();
    bargeIn.began('u1', 0);
    bargeIn.ended('u1');
    bargeIn.reset();
    bargeIn.reset();
    await environment.advance(10_000);
    expect(done).toEqual(['pause', 'resume']);
  });

  test('stops if no transcript will arrive and the user is still speaking', () => {
    const { bargeIn, done } = speaking();
    bargeIn.began('u1', 0);
    bargeIn.reset();
    bargeIn.reset();
    expect(done).toEqual(['pause', 'breakOff']);
  });
});

describe('transcripts that do not arrive in time', () => {
  async function withoutWords() {
    const talk = speaking();
    talk.bargeIn.began('u1', 0);
    await talk.environment.advance(900);
    talk.bargeIn.ended('u1');
    await talk.environment.advance(1999);
    expect(talk.done).toEqual(['pause']);
    await talk.environment.advance(1);
    expect(talk.done).toEqual(['pause', 'resume']);
    return talk;
  }

  test('INTERRUPTIONS-4: let the speech resume at the timeout, and can stop it later', async () => {
    const { bargeIn, done } = await withoutWords();
    expect(bargeIn.isBackchannel('u1', 'stop', true)).toBe(false);
    expect(done).toEqual(['pause', 'resume', 'breakOff']);
  });

  test('have no effect if they turn out to be a backchannel', async () => {
    const { bargeIn, done } = await withoutWords();
    expect(bargeIn.isBackchannel('u1', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'resume']);
  });

  test('do not affect the pause for the next utterance', async () => {
    const { bargeIn, done } = await withoutWords();
    bargeIn.began('u2', 0);
    expect(bargeIn.isBackchannel('u1', 'stop', true)).toBe(false);
    expect(bargeIn.isBackchannel('u2', 'mm-hm', true)).toBe(true);
    expect(done).toEqual(['pause', 'resume', 'pause', 'resume']);
  });
});

test.each([{ falseInterruptionMs: 0 }, { canPause: false }])(
  'stops immediately if the waiting period is turned off: %j',
  (options) => {
    const { bargeIn, done, environment } = speaking(options);
    bargeIn.began('u1', 0);
    expect(bargeIn.isBackchannel('u1', 'mm-hm', true)).toBe(false);
    expect(done).toEqual(['breakOff']);
    expect(environment.pendingTimers).toBe(0);
  },
);
