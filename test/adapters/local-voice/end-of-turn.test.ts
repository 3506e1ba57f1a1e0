// The end of a user's turn depends on the words so far, on the open question, and on a function of the app. All times
// are audio times.

import { describe, expect, test } from 'vitest';
import { judgeTurn } from '../../../src/adapters/local-voice/end-of-turn.ts';
import type { HearingOptions, OpenQuestion } from '../../../src/adapters/local-voice/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { startHarness, type Harness } from './support/harness.ts';
import { tone } from './support/scripted-speech.ts';
import type { WireClient } from './support/wire-client.ts';

const COMPLETED = 'conversation.item.input_audio_transcription.completed';
const BEGUN = 4_000;
const WHOLE = 5_000;
const ECONOMY = 6_000;
const UM = 7_000;
const YES = 8_000;
const words = {
  [BEGUN]: 'Book me a ride to.',
  [WHOLE]: 'Book me a ride to the station.',
  [ECONOMY]: 'Economy.',
  [UM]: 'Um.',
  [YES]: 'Yes.',
};

const rides: OpenQuestion = {
  kind: 'choice',
  options: [
    { id: 'e', label: 'Economy' },
    { id: 'p', label: 'Premium' },
  ],
};

interface Stage extends Harness {
  readonly client: WireClient;
  /** The lengths of the transcribed pieces of audio, in milliseconds. */
  readonly transcribed: number[];
}

async function start(
  hearing: HearingOptions = {},
  turnDetection: Record<string, unknown> = { type: 'semantic_vad' },
): Promise<Stage> {
  const harness = await startHarness({ words, hearing });
  const transcribed: number[] = [];
  const { speech } = harness;
  const { transcribe } = speech;
  speech.transcribe = (sound) => {
    transcribed.push(sound.samples.length / 24);
    return transcribe(sound);
  };
  const client = await harness.connect();
  client.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      audio: {
        input: {
          transcription: { model: 'any' },
          turn_detection: { ...turnDetection, create_response: false },
        },
      },
    },
  });
  client.speak(tone(0, 1_000));
  return { ...harness, client, transcribed };
}

/** Returns how long the user was silent before the turn ended; 600 ms of speech started after 1000 ms. */
async function waitedMs(client: WireClient): Promise<number> {
  return (await client.next('input_audio_buffer.speech_stopped'))['audio_end_ms'] - 1_600;
}

describe('the end of a turn, determined from its words', () => {
  test.each([
    ['a sentence that may be whole', WHOLE, 500],
    ['an answer, while no question is open', ECONOMY, 500],
    ['a sentence that breaks off', BEGUN, 1_800],
    ['a sound of thinking', UM, 1_800],
    ['nothing understood', 999, 500],
  ])('waits as long as needed after %s', async (_name, loudness, expected) => {
    const { client } = await start();
    client.speak(tone(loudness, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(expected);
  });

  test('joins the parts of a sentence that continues after a pause into one utterance', async () => {
    const { client, transcribed } = await start();
    client.speak(tone(BEGUN, 600));
    client.speak(tone(0, 1_500));
    client.speak(tone(WHOLE, 600));
    client.speak(tone(0, 600));
    expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to the station.');
    await client.fence();
    expect(client.count('input_audio_buffer.speech_started')).toBe(1);
    expect(client.count(COMPLETED)).toBe(1);
    // Each piece includes 250 ms before it and 300 ms after it.
    expect(transcribed).toEqual([600 + 550, 600 + 1_500 + 600 + 550]);
  });

  test('depends only on silence with server_vad', async () => {
    const { client } = await start({}, { type: 'server_vad' });
    client.speak(tone(BEGUN, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(500);
  });
});

describe('the end of a turn while a question is open', () => {
  const yesOrNo: OpenQuestion = { kind: 'approval', options: [] };
  test.each([
    ['an option', rides, ECONOMY, 300],
    ['a yes', yesOrNo, YES, 300],
    ['a wish', rides, WHOLE, 500],
    ['a wish that breaks off', rides, BEGUN, 1_800],
    [
      'an answer in words, which may have more of them',
      { kind: 'free_text', options: [] },
      ECONOMY,
      500,
    ],
  ] as const)('waits as long as needed after %s', async (_name, question, loudness, expected) => {
    const { client } = await start();
    client.send({ type: 'session.open_question', question });
    client.speak(tone(loudness, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(expected);
  });

  test('announces that it accepts questions, but refuses an invalid one', async () => {
    const { client } = await start();
    expect((await client.next('session.updated'))['session'].extensions).toEqual([
      'session.open_question',
    ]);
    client.send({ type: 'session.open_question', question: { kind: 'riddle' }, event_id: 'odd' });
    expect((await client.next('error'))['error']).toMatchObject({
      param: 'question.kind',
      event_id: 'odd',
    });
    client.send({ type: 'session.open_question', question: rides });
    client.send({ type: 'session.open_question', question: null });
    client.speak(tone(ECONOMY, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(500);
  });
});

describe("the end of a turn, decided by the app's function", () => {
  test('passes audio, text and the open question to the function, and waits as long as it requests', async () => {
    const asked: unknown[] = [];
    const { client } = await start({
      endOfTurn: async ({ samples, sampleRateHz }, text, openQuestion) => {
        asked.push({ durationMs: samples.length / 24, sampleRateHz, text, openQuestion });
        return text.startsWith('Book') ? 0.2 : 0.9;
      },
    });
    client.send({ type: 'session.open_question', question: rides });
    client.speak(tone(WHOLE, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(1_800);
    expect(asked).toEqual([
      // The duration includes the sound before the speech and the silence so far.
      {
        durationMs: 300 + 600 + 280,
        sampleRateHz: 24_000,
        text: 'Book me a ride to the station.',
        openQuestion: rides,
      },
    ]);
  });

  test("prefers the app's function to the word list", async () => {
    const { client } = await start({ endOfTurn: () => 1 });
    client.speak(tone(UM, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(500);
  });

  test('END-OF-TURN-1: does not call the function for an answer to a question', async () => {
    const { client } = await start({ endOfTurn: () => 0 });
    client.send({ type: 'session.open_question', question: rides });
    client.speak(tone(ECONOMY, 600));
    client.speak(tone(0, 3_000));
    expect(await waitedMs(client)).toBe(300);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no weights');
      },
      'threw: no weights',
    ],
    ['rejects', () => Promise.reject(new Error('no memory')), 'threw: no memory'],
    ['gives no probability', () => Number.NaN, 'gave NaN: expected a number from 0 to 1'],
  ])(
    'END-OF-TURN-2: reports a function that %s, and follows the list',
    async (_name, endOfTurn, failure) => {
      const { client } = await start({ endOfTurn });
      client.speak(tone(BEGUN, 600));
      client.speak(tone(0, 3_000));
      expect(await waitedMs(client)).toBe(1_800);
      expect((await client.next('error'))['error']).toMatchObject({
        type: 'server_error',
        code: 'end_of_turn_failed',
        message: `\`endOfTurn\` ${failure}`,
      });
      expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to.');
    },
  );
});

test('END-OF-TURN-2: gives the function half a second to answer', async () => {
  const environment = simulatedEnvironment();
  const failures: string[] = [];
  const judged = judgeTurn(
    {
      endOfTurn: () => new Promise(() => undefined),
      scheduler: environment.scheduler,
      failed: (message) => failures.push(message),
    },
    {
      audio: { samples: tone(BEGUN, 600), sampleRateHz: 24_000 },
      text: 'Book me a ride to',
      question: null,
      language: 'en',
    },
  );
  await environment.advance(499);
  expect(failures).toEqual([]);
  await environment.advance(1);
  expect(await judged).toBe('unfinished');
  expect(failures).toEqual(['`endOfTurn` took longer than 500 ms']);
});

describe('the longest utterance', () => {
  test('cuts speech that never pauses, transcribes it, and starts the next utterance', async () => {
    const { client } = await start({ longestUtteranceMs: 4_000 });
    client.speak(tone(WHOLE, 6_000));
    client.speak(tone(ECONOMY, 600));
    client.speak(tone(0, 2_000));
    const first = await client.next('input_audio_buffer.speech_stopped');
    // The utterance starts 300 ms before the first speech.
    expect(first['audio_end_ms']).toBe(700 + 4_000);
    expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to the station.');
    const [begun, next] = [
      await client.next('input_audio_buffer.speech_started'),
      await client.next('input_audio_buffer.speech_started'),
    ];
    expect(begun['audio_start_ms']).toBe(700);
    // The audio between the two is not lost.
    expect(next['audio_start_ms']).toBe(4_700);
    expect((await client.next(COMPLETED))['transcript']).toBe('Economy.');
  });

  test('defaults to 15 seconds', async () => {
    const { client } = await start();
    client.speak(tone(WHOLE, 16_000));
    const { audio_end_ms: endMs } = await client.next('input_audio_buffer.speech_stopped');
    expect(endMs).toBe(700 + 15_000);
  });
});

describe('transcription during a pause', () => {
  test.each([
    ['after 200 ms of silence', 1_200, 200],
    ['after 70 ms of silence, if little was said: it may be a stop', 600, 70],
  ])('INPUT-AUDIO-4: starts once, %s', async (_name, spokenMs, afterMs) => {
    const { client, transcribed } = await start();
    client.speak(tone(WHOLE, spokenMs));
    client.speak(tone(0, afterMs - 40));
    await client.fence();
    expect(transcribed).toEqual([]);
    client.speak(tone(0, 60));
    await client.fence();
    expect(transcribed).toEqual([250 + spokenMs + 300]);
    client.speak(tone(0, 2_000));
    expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to the station.');
    expect(transcribed).toHaveLength(1);
  });

  test('INPUT-AUDIO-6: reports a stop command once, before the utterance is over', async () => {
    const DELTA = 'conversation.item.input_audio_transcription.delta';
    const { client, speech } = await start();
    speech.nextTranscriptions.push(() => Promise.resolve('Stop.'));
    client.speak(tone(WHOLE, 400));
    client.speak(tone(0, 100));
    expect((await client.next(DELTA))['delta']).toBe('Stop.');
    expect(client.count('input_audio_buffer.speech_stopped')).toBe(0);
    client.speak(tone(0, 2_000));
    expect((await client.next(COMPLETED))['transcript']).toBe('Stop.');
    expect(client.count(DELTA)).toBe(1);
  });

  test('INPUT-AUDIO-4: runs again after the full silence if it found no text during the pause', async () => {
    const { client, speech, transcribed } = await start();
    for (let count = 0; count < 2; count += 1)
      speech.nextTranscriptions.push(() => Promise.resolve(''));
    client.speak(tone(WHOLE, 600));
    client.speak(tone(0, 2_000));
    expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to the station.');
    // Two cuts are made in the pause, and then comes the whole utterance.
    expect(transcribed).toEqual([250 + 600 + 300, 100 + 600 + 100, 250 + 600 + 300]);
    expect(client.count(COMPLETED)).toBe(1);
  });

  test('INPUT-AUDIO-4: discards the text from a pause if the user continues speaking', async () => {
    const { client } = await start({}, { type: 'server_vad' });
    client.speak(tone(BEGUN, 600));
    client.speak(tone(0, 300));
    client.speak(tone(WHOLE, 600));
    client.speak(tone(0, 2_000));
    expect((await client.next(COMPLETED))['transcript']).toBe('Book me a ride to the station.');
    await client.fence();
    expect(client.count(COMPLETED)).toBe(1);
  });

  test('`transcribeAfterMs: null`: transcribes only the whole utterance', async () => {
    const { client, transcribed } = await start({ transcribeAfterMs: null });
    client.speak(tone(BEGUN, 600));
    client.speak(tone(0, 2_000));
    expect(await waitedMs(client)).toBe(500);
    await client.next(COMPLETED);
    expect(transcribed).toEqual([250 + 600 + 300]);
  });
});
