import { describe, expect, test } from 'vitest';
import {
  LevelGate,
  levelOf,
  nearestLevel,
  windowsBeforeNearest,
} from '../../../src/adapters/local-voice/level-gate.ts';
import { startHarness } from './support/harness.ts';
import { tone } from './support/scripted-speech.ts';

const WINDOW_MS = 32;
const NOISE_DB = -65;
const USER_DB = -20;

interface Heard {
  readonly db: number;
  readonly ms: number;
  readonly isVoice?: boolean;
}

/** Pushes a stretch of audio, and returns the share of its windows that count as the user's speech. */
function hear(gate: LevelGate, { db, ms, isVoice = true }: Heard): number {
  const count = Math.round(ms / WINDOW_MS);
  let speech = 0;
  for (let index = 0; index < count; index += 1)
    if (gate.admit(isVoice ? 0.9 : 0.01, db, WINDOW_MS, 0.5) >= 0.5) speech += 1;
  return speech / count;
}

const silence = (ms: number): Heard => ({ db: NOISE_DB, ms, isVoice: false });

function afterUser(): LevelGate {
  const gate = new LevelGate(15);
  hear(gate, silence(1_000));
  for (let count = 0; count < 3; count += 1) {
    hear(gate, { db: USER_DB, ms: 1_000 });
    gate.ended();
    gate.accepted(USER_DB);
    hear(gate, silence(1_000));
  }
  return gate;
}

describe('LEVEL-GATE-1: a gate', () => {
  test.each([
    ['the user', USER_DB, 1],
    ['the user, more quietly', USER_DB - 14, 1],
    ['a television', USER_DB - 22, 0],
  ])('judges %s by level', (_name, db, expected) => {
    const gate = afterUser();
    const share = hear(gate, { db, ms: 1_000 });
    expect(share).toBe(expected);
  });

  test('admits loud sounds and sounds well above the noise before the first utterance', () => {
    const gate = new LevelGate(15);
    expect(hear(gate, { db: USER_DB, ms: 320 })).toBe(1);
    const quiet = new LevelGate(15);
    hear(quiet, silence(1_000));
    expect(hear(quiet, { db: NOISE_DB + 10, ms: 1_000 })).toBe(0);
    expect(hear(quiet, { db: NOISE_DB + 20, ms: 1_000 })).toBe(1);
  });

  test('admits a fading syllable', () => {
    const gate = afterUser();
    hear(gate, { db: USER_DB, ms: WINDOW_MS });
    expect(hear(gate, { db: USER_DB - 30, ms: 2 * WINDOW_MS })).toBe(1);
    expect(hear(gate, { db: USER_DB - 30, ms: WINDOW_MS })).toBe(0);
  });
});

test('LEVEL-GATE-2: first accepts a television, but rejects it as soon as the user speaks', () => {
  const gate = new LevelGate(15);
  hear(gate, silence(1_000));
  for (let count = 0; count < 5; count += 1) gate.accepted(USER_DB - 22);
  expect(hear(gate, { db: USER_DB - 22, ms: 320 })).toBe(1);
  gate.accepted(USER_DB);
  expect(hear(gate, { db: USER_DB - 22, ms: 1_000 })).toBeLessThan(0.1);
});

describe('LEVEL-GATE-4: a television that was heard first', () => {
  test('no longer passes once the user has spoken', () => {
    const gate = new LevelGate(15);
    hear(gate, silence(1_000));
    expect(hear(gate, { db: USER_DB - 25, ms: 3_000 })).toBe(1);
    expect(hear(gate, { db: USER_DB, ms: 1_500 })).toBe(1);
    expect(hear(gate, { db: USER_DB - 25, ms: 3_000 })).toBeLessThan(0.05);
  });

  test('passes in the next utterance, but not after an utterance of the user has been accepted', () => {
    const gate = new LevelGate(15);
    hear(gate, silence(1_000));
    hear(gate, { db: USER_DB, ms: 1_500 });
    gate.ended();
    expect(hear(gate, { db: USER_DB - 25, ms: 1_000 })).toBe(1);
    gate.ended();
    gate.accepted(USER_DB);
    expect(hear(gate, { db: USER_DB - 25, ms: 1_000 })).toBeLessThan(0.1);
  });
});

test('LEVEL-GATE-1: uses the level of the nearest voice in an utterance', () => {
  const user = Array.from({ length: 30 }, (_, index) => USER_DB - (index % 10));
  const far = Array.from({ length: 200 }, () => USER_DB - 30);
  expect(nearestLevel([...far, ...user, ...far])).toBeGreaterThan(USER_DB - 8);
  expect(nearestLevel(user)).toBeGreaterThan(USER_DB - 8);
  expect(nearestLevel(far)).toBe(USER_DB - 30);
  // A click is not a voice.
  expect(nearestLevel([0, 0, ...far])).toBe(USER_DB - 30);
  expect(nearestLevel([])).toBeNull();
});

describe('LEVEL-GATE-3: a voice below the level', () => {
  test('passes in the second utterance, in case the user has moved away', () => {
    const gate = afterUser();
    const away = { db: USER_DB - 18, ms: 2_500 };
    expect(hear(gate, away)).toBe(0);
    hear(gate, silence(2_000));
    expect(hear(gate, away)).toBe(1);
  });

  test('does not pass if it comes from a television that keeps talking', () => {
    const gate = afterUser();
    hear(gate, { db: USER_DB - 18, ms: 30_000 });
    hear(gate, silence(2_000));
    expect(hear(gate, { db: USER_DB - 18, ms: 1_000 })).toBe(0);
  });
});

describe('LEVEL-GATE-4: the start of an utterance', () => {
  const levels = (...parts: readonly (readonly [level: number, windows: number])[]) =>
    parts.flatMap(([level, windows]) => Array.from({ length: windows }, () => level));

  test('excludes the television before the nearest voice, and the pause between them', () => {
    expect(windowsBeforeNearest(levels([-50, 100], [-70, 10], [-18, 60]))).toBe(104);
  });

  test('includes a voice that starts quietly or becomes louder', () => {
    expect(windowsBeforeNearest(levels([-70, 9], [-45, 6], [-18, 60]))).toBe(0);
    expect(windowsBeforeNearest(levels([-35, 100], [-18, 60]))).toBe(0);
  });

  test('ignores a short loud noise in the middle', () => {
    expect(windowsBeforeNearest(levels([-40, 60], [-5, 4], [-40, 60]))).toBe(0);
  });

  test('excludes nothing from an utterance that is empty or too short to be a voice', () => {
    expect(windowsBeforeNearest([])).toBe(0);
    expect(windowsBeforeNearest(levels([-20, 7]))).toBe(0);
  });
});

test('levelOf returns 0 dB for full scale, and far less for silence', () => {
  expect(levelOf(tone(32_767, 20))).toBeCloseTo(0, 1);
  expect(levelOf(tone(3_277, 20))).toBeCloseTo(-20, 1);
  expect(levelOf(tone(0, 20))).toBeLessThan(-80);
});

describe('a level gate in the server', () => {
  const USER = 8_000;
  const TELEVISION = 700;
  const words = { [USER]: 'economy please', [TELEVISION]: 'and now the weather' };

  async function stoppedAfterMs(levelMarginDb: number | null): Promise<number | null> {
    const { connect } = await startHarness({ words, hearing: { levelMarginDb } });
    const client = await connect();
    client.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        audio: {
          input: {
            transcription: { model: 'any' },
            turn_detection: { type: 'server_vad', create_response: false },
          },
        },
      },
    });
    const completed = 'conversation.item.input_audio_transcription.completed';
    client.speak(tone(0, 1_000));
    client.speak(tone(USER, 600));
    client.speak(tone(0, 1_000));
    await client.next('input_audio_buffer.speech_stopped');
    await client.next(completed);
    client.speak(tone(USER, 600));
    // The television continues for a while after the user has finished.
    client.speak(tone(TELEVISION, 3_000));
    await client.fence();
    const stopped = client.events.filter((each) => each.type.endsWith('speech_stopped'));
    return stopped.length < 2 ? null : stopped[1]?.['audio_end_ms'] - 3_200;
  }

  test("ends the user's turn while a television is talking", async () => {
    // The last loud window counts for two more windows.
    expect(await stoppedAfterMs(15)).toBe(500 + 2 * 20);
  });

  test('counts every voice as the user’s when the gate is null', async () => {
    expect(await stoppedAfterMs(null)).toBeNull();
  });
});
