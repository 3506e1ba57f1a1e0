// The microphone hears the loudspeaker: the lead agent's speech does not count as the user's and does not stop itself
// (P5). The client plays in simulated time, and its microphone hears the loudspeaker.

import { describe, expect, test } from 'vitest';
import { speechLike, toPcm } from '../support/speech-like.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const RATE_HZ = 24_000;
const TICK_MS = 20;
const TICK = (RATE_HZ * TICK_MS) / 1000;
const REPORTED_EVERY_MS = 100;
const STORY = 'Once upon a time there was a king who had three daughters and no money at all.';
const STORY_MS = 6000;

interface RoomOptions {
  readonly echoDb?: number;
  readonly delayMs?: number;
}

/** Starts a story that the lead agent tells in a room. */
async function story({ echoDb = -20, delayMs = 120 }: RoomOptions = {}) {
  const talk = voiceTalk();
  const { session, environment, model, events } = talk;
  const gain = 10 ** (echoDb / 20);
  let delay = (delayMs * RATE_HZ) / 1000;
  /** The loudspeaker's audio from the first moment. */
  const heard: number[] = [];
  let queue: { itemId: string; samples: Int16Array; at: number }[] = [];
  const playedMs = new Map<string, number>();
  const tell = (itemId: string): void =>
    session.playout.next({ itemId, playedMs: playedMs.get(itemId) ?? 0 });
  session.audioOut.subscribe(({ itemId = '', samples }) => queue.push({ itemId, samples, at: 0 }));
  session.events.subscribe(({ type }) => {
    if (type !== 'playout.clear') return;
    const stopped = new Set(queue.map(({ itemId }) => itemId));
    queue = [];
    for (const itemId of stopped) tell(itemId);
  });
  const playTick = (): void => {
    for (let left = TICK; left > 0;) {
      const [first] = queue;
      const part = first?.samples.subarray(first.at, first.at + left) ?? new Int16Array(left);
      for (const sample of part) heard.push(sample / 32_768);
      left -= part.length;
      if (!first) continue;
      first.at += part.length;
      const ms = (part.length * 1000) / RATE_HZ;
      playedMs.set(first.itemId, (playedMs.get(first.itemId) ?? 0) + ms);
      if (first.at < first.samples.length) continue;
      queue.shift();
      tell(first.itemId);
    }
  };
  let now = 0;
  /** Lets time pass while the user's audio arrives. */
  const pass = async (ms: number, user?: Float32Array): Promise<void> => {
    for (let at = 0; at < ms; at += TICK_MS) {
      playTick();
      now += TICK_MS;
      const [itemId] = queue.map((each) => each.itemId);
      if (now % REPORTED_EVERY_MS === 0 && itemId !== undefined) tell(itemId);
      const from = heard.length - TICK;
      const sound = Float32Array.from(
        { length: TICK },
        (_, index) =>
          gain * (heard[from + index - delay] ?? 0) + (user?.[(at / TICK_MS) * TICK + index] ?? 0),
      );
      session.audioIn.next({ samples: toPcm(sound), sampleRateHz: RATE_HZ });
      await environment.advance(TICK_MS);
    }
  };
  await talk.start();
  await talk.say('tell me a story');
  const spoken = model().begin(STORY, 0);
  const { itemId, responseId } = spoken;
  model().audio.next({
    samples: toPcm(speechLike(1, STORY_MS, RATE_HZ)),
    sampleRateHz: RATE_HZ,
    itemId,
    responseId,
  });
  spoken.end();
  await pass(1500);
  return {
    ...talk,
    pass,
    heard,
    /** Sets the delay of audio on its way to the microphone from now on. */
    delays(ms: number): void {
      delay = (ms * RATE_HZ) / 1000;
    },
    eventsOf: (type: string) => events.filter((event) => event.type === type),
    /** Returns the loudspeaker's longest silence between two times, in milliseconds. */
    hole: (fromMs: number, toMs: number): number => {
      let [longest, length] = [0, 0];
      for (const sample of heard.slice((fromMs * RATE_HZ) / 1000, (toMs * RATE_HZ) / 1000)) {
        length = sample === 0 ? length + 1 : 0;
        longest = Math.max(longest, length);
      }
      return (longest * 1000) / RATE_HZ;
    },
    levelAt: (fromMs: number, toMs: number): number => {
      const part = heard.slice((fromMs * RATE_HZ) / 1000, (toMs * RATE_HZ) / 1000);
      return Math.sqrt(part.reduce((sum, sample) => sum + sample * sample, 0) / part.length);
    },
    /** Returns the user's last utterance. */
    said: () => talk.state().transcript.findLast(({ role }) => role === 'user')?.text,
    async hears(text: string, id = 'echo') {
      model().speechEnded(id, text);
      await environment.settle();
    },
  };
}

describe('P5: a lead agent that hears itself', () => {
  test.each([{ echoDb: -6 }, { echoDb: -20 }, { echoDb: -35 }, { delayMs: 300 }])(
    'continues to speak: %o',
    async (room) => {
      const { pass, hole, levelAt, model, hears, eventsOf, events } = await story(room);
      model().speechStarted('echo');
      await pass(3500);
      // The detector reports the end of the audio when the speech is over.
      await pass(1500);
      await hears('Upon a time there was a king who had free daughters and no money at all');
      expect(eventsOf('speech.interrupted')).toEqual([]);
      expect(model().of('response.cancel')).toEqual([]);
      expect(hole(500, 5900)).toBeLessThan(400);
      // The speech is as loud as it was before.
      expect(levelAt(3000, 5000) / levelAt(0, 1400)).toBeGreaterThan(0.7);
      const routed = events.flatMap((event) =>
        event.type === 'utterance.routed' && event.utteranceId === 'echo' ? [event] : [],
      );
      expect(routed).toEqual([
        { type: 'utterance.routed', utteranceId: 'echo', to: 'nobody', reason: 'echo' },
      ]);
    },
  );

  test('continues to speak if the echo arrives in pieces', async () => {
    const { pass, model, hears, eventsOf } = await story();
    model().speechStarted('piece');
    await pass(300);
    model().events.next({ type: 'utterance.ended', utteranceId: 'piece' });
    await pass(200);
    model().speechStarted('echo');
    await pass(3500);
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'piece',
      text: 'Who had',
      final: true,
    });
    await pass(1500);
    await hears('three daughters and no money at all');
    expect(eventsOf('speech.interrupted')).toEqual([]);
  });

  test.each([
    ['of late', true],
    ['never before', false],
  ])(
    'recognizes an echo by its text only if an echo has been measured (%s)',
    async (_, isKnown) => {
      const { pass, model, hears, events, delays } = await story(isKnown ? {} : { delayMs: 1500 });
      model().speechStarted('echo');
      await pass(1600);
      await hears('Upon a time there was a king');
      // Audio that arrives later than any echo does not match any audio that was played.
      delays(1500);
      model().speechStarted('late');
      await pass(600);
      await hears('who had tree daughters', 'late');
      const routes = events.flatMap((event) =>
        event.type === 'utterance.routed' && event.utteranceId === 'late' ? [event.to] : [],
      );
      expect(routes).toEqual([isKnown ? 'nobody' : 'lead']);
    },
  );

  test("recognizes an echo whose late transcript ends with the user's answer", async () => {
    const { pass, model, hears, said, eventsOf } = await story();
    model().speechStarted('echo');
    await pass(1600);
    await hears('Upon a time there was a king');
    await pass(4500);
    for (const [id, text, own] of [
      ['late', 'three daughters and no money at all', 'tell me a story'],
      ['answer', 'daughters and no money at all. And then?', 'And then?'],
    ] as const) {
      model().events.next({ type: 'utterance.started', utteranceId: id, audioStartMs: 4500 });
      await pass(100);
      await hears(text, id);
      expect(said()).toBe(own);
    }
    expect(eventsOf('speech.interrupted')).toEqual([]);
  });

  test('stops when the user speaks over it', async () => {
    const { pass, model, hears, eventsOf, heard, events, said } = await story({ echoDb: -30 });
    model().speechStarted('echo');
    await pass(1500);
    expect(eventsOf('speech.interrupted')).toEqual([]);
    const before = heard.length;
    await pass(1600, speechLike(7, 1600, RATE_HZ));
    expect(eventsOf('speech.interrupted')).toHaveLength(1);
    const after = heard.slice(before);
    const stopped = after.findIndex((_, index) =>
      after.slice(index, index + RATE_HZ / 2).every((sample) => sample === 0),
    );
    expect((stopped * 1000) / RATE_HZ).toBeLessThan(1200);
    await hears('who had three daughters please stop that and tell me another one');
    expect(said()).toBe('please stop that and tell me another one');
    expect(events.some((event) => event.type === 'utterance.routed' && event.to === 'lead')).toBe(
      true,
    );
  });

  test('stops for a voice that is not an echo', async () => {
    const { pass, model, hears, eventsOf } = await story({ echoDb: -90 });
    model().speechStarted('user');
    await pass(1000, speechLike(7, 1000, RATE_HZ));
    await hears('Please stop.', 'user');
    expect(eventsOf('speech.interrupted')).toHaveLength(1);
  });

  test('accepts a phrase of its own speech if the user repeats it', async () => {
    const { pass, model, hears, eventsOf, events } = await story({ echoDb: -90 });
    model().speechStarted('user');
    await pass(1000, speechLike(7, 1000, RATE_HZ));
    await hears('There was a king?', 'user');
    expect(eventsOf('speech.interrupted')).toHaveLength(1);
    expect(
      events.some(
        (event) =>
          event.type === 'utterance.routed' && event.utteranceId === 'user' && event.to === 'lead',
      ),
    ).toBe(true);
  });

  test('ECHO-2: accepts an answer that follows the echo and removes the echo from its text', async () => {
    const { pass, model, hears, events, said } = await story({ echoDb: -20 });
    model().speechStarted('echo');
    await pass(4600);
    await pass(800, speechLike(7, 800, RATE_HZ));
    await hears('had tree daughters, and no money. At all? And then, what?');
    expect(said()).toBe('And then, what?');
    expect(
      events.some(
        (event) =>
          event.type === 'utterance.routed' && event.utteranceId === 'echo' && event.to === 'lead',
      ),
    ).toBe(true);
  });

  test("ECHO-3: removes a known echo from the transport's audio but preserves a voice over it", async () => {
    const { pass, model, hears, heard } = await story({ echoDb: -20 });
    const levelOf = (from: number): number => {
      const samples = model()
        .heard.slice(from)
        .flatMap(({ samples: part }) => [...part]);
      return Math.hypot(...samples) / Math.sqrt(samples.length) / 32_768;
    };
    const playedAt = (from: number): number => {
      const part = heard.slice(from);
      return Math.hypot(...part) / Math.sqrt(part.length);
    };
    model().speechStarted('echo');
    await pass(1500);
    await hears('Upon a time');
    const [sent, played] = [model().heard.length, heard.length];
    await pass(1000);
    // -20 dB in the room and another 20 dB on the line.
    expect(levelOf(sent) / playedAt(played)).toBeLessThan(0.01);
    const over = model().heard.length;
    const user = speechLike(7, 800, RATE_HZ);
    await pass(800, user);
    expect(levelOf(over) * Math.sqrt(user.length)).toBeGreaterThan(0.9 * Math.hypot(...user));
  });
});
