import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Loudspeaker } from '../../../src/voice/output/speech.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';

/** One sample per millisecond. The value of each sample is the number of its millisecond. */
const RATE_HZ = 8000;
const PER_MS = RATE_HZ / 1000;

function loud() {
  const heard: AudioFrame[] = [];
  let clears = 0;
  const speaker = new Loudspeaker(() => {
    clears += 1;
  });
  speaker.audioOut.subscribe((frame) => heard.push(frame));
  const said = new Map<string, number>();
  const say = (itemId: string, ms: number): void => {
    const from = said.get(itemId) ?? 0;
    said.set(itemId, from + ms);
    const samples = Int16Array.from(
      { length: ms * PER_MS },
      (_, n) => from + Math.floor(n / PER_MS),
    );
    speaker.say({ samples, sampleRateHz: RATE_HZ, itemId, responseId: 'resp_1' });
  };
  /** The audio that has been sent to the client since then: the item name and the first and last millisecond. */
  const given = (since = 0) =>
    heard
      .slice(since)
      .map(({ itemId, samples }) => [itemId, samples[0], (samples.at(-1) as number) + 1] as const);
  return { speaker, say, heard, given, clears: () => clears };
}

test('passes speech to the client unchanged', () => {
  const { say, given, clears } = loud();
  say('a', 100);
  say('a', 50);
  say('b', 20);
  expect(given()).toEqual([
    ['a', 0, 100],
    ['a', 100, 150],
    ['b', 0, 20],
  ]);
  expect(clears()).toBe(0);
});

describe('a pause', () => {
  test("LOUDSPEAKER-1: keeps the previous item's position if the reported item has not started", () => {
    const { speaker, say, given, heard } = loud();
    say('a', 100);
    say('b', 80);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 40 });
    speaker.played({ itemId: 'b', playedMs: 0 });
    const since = heard.length;
    expect(speaker.resume()).toEqual({ itemId: 'a', playedMs: 40 });
    expect(given(since)).toEqual([
      ['a~2', 40, 100],
      ['b~2', 0, 80],
    ]);
  });

  test('LOUDSPEAKER-1, LOUDSPEAKER-2: resumes where it was last heard, with the speech added since then', () => {
    const { speaker, say, given, heard, clears } = loud();
    say('a', 100);
    say('a', 100);
    speaker.played({ itemId: 'a', playedMs: 60 });
    expect(speaker.pause()).toBe(true);
    expect(clears()).toBe(1);
    speaker.played({ itemId: 'a', playedMs: 130 });
    const since = heard.length;
    say('a', 50);
    expect(heard).toHaveLength(since);
    expect(speaker.resume()).toEqual({ itemId: 'a', playedMs: 130 });
    expect(given(since)).toEqual([
      ['a~2', 130, 200],
      ['a~2', 200, 250],
    ]);
    // Later audio of the item also gets the new name.
    say('a', 10);
    expect(given().at(-1)).toEqual(['a~2', 250, 260]);
    expect(clears()).toBe(1);
  });

  test("LOUDSPEAKER-3: reports positions within the model's item after any number of pauses", () => {
    const { speaker, say, given } = loud();
    say('a', 200);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 50 });
    speaker.resume();
    expect(speaker.played({ itemId: 'a~2', playedMs: 30 })).toEqual({ itemId: 'a', playedMs: 80 });
    speaker.pause();
    expect(speaker.played({ itemId: 'a~2', playedMs: 50 })).toEqual({ itemId: 'a', playedMs: 100 });
    speaker.resume();
    expect(given().at(-1)).toEqual(['a~3', 100, 200]);
    expect(speaker.played({ itemId: 'a~3', playedMs: 100 })).toEqual({
      itemId: 'a',
      playedMs: 200,
    });
    // A late report under the old name is still understood.
    expect(speaker.played({ itemId: 'a~2', playedMs: 20 })).toEqual({ itemId: 'a', playedMs: 70 });
  });

  test('LOUDSPEAKER-1: drops items before the one that was reported', () => {
    const { speaker, say, given, heard } = loud();
    say('a', 100);
    say('b', 100);
    say('c', 100);
    speaker.played({ itemId: 'b', playedMs: 100 });
    speaker.pause();
    const since = heard.length;
    expect(speaker.resume()).toEqual({ itemId: 'c', playedMs: 0 });
    expect(given(since)).toEqual([['c~2', 0, 100]]);
  });

  test('LOUDSPEAKER-3: renames the rest of an item after its received part has been fully played', () => {
    const { speaker, say, given, heard } = loud();
    say('a', 100);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 100 });
    const since = heard.length;
    expect(speaker.resume()).toBeNull();
    say('a', 50);
    expect(given(since)).toEqual([['a~2', 100, 150]]);
    expect(speaker.played({ itemId: 'a~2', playedMs: 50 }).playedMs).toBe(150);
  });

  test('returns no stop position when speech is dropped after it has resumed', () => {
    const { speaker, say } = loud();
    say('a', 100);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 40 });
    speaker.resume();
    expect(speaker.drop()).toBeNull();
  });

  test('returns the stop position when speech is dropped, and plays nothing more', () => {
    const { speaker, say, heard, clears } = loud();
    say('a', 100);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 40 });
    expect(speaker.drop()).toEqual({ itemId: 'a', playedMs: 40 });
    expect(speaker.isPaused).toBe(false);
    expect(clears()).toBe(1);
    const since = heard.length;
    expect(speaker.resume()).toBeNull();
    expect(heard).toHaveLength(since);
  });

  test("clears the client's audio and returns no position if speech is dropped without a pause", () => {
    const { speaker, say, clears } = loud();
    say('a', 100);
    speaker.played({ itemId: 'a', playedMs: 40 });
    expect(speaker.drop()).toBeNull();
    expect(clears()).toBe(1);
  });

  test('LOUDSPEAKER-4: fails beyond the buffer limit until everything buffered has been played', () => {
    const { speaker, say, clears } = loud();
    for (let count = 0; count < 13; count += 1) say('a', 10_000);
    expect(speaker.pause()).toBe(false);
    expect(clears()).toBe(0);
    speaker.drained();
    say('b', 100);
    expect(speaker.pause()).toBe(true);
  });
});

test('LOUDSPEAKER-1, LOUDSPEAKER-2, LOUDSPEAKER-3: plays each millisecond once and none too early', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('say'), item: fc.nat(4), ms: fc.integer({ min: 1, max: 80 }) }),
    fc.record({ do: fc.constant('play'), item: fc.nat(0), ms: fc.integer({ min: 1, max: 120 }) }),
    fc.record({ do: fc.constant('pause'), item: fc.nat(0), ms: fc.constant(0) }),
    fc.record({ do: fc.constant('goOn'), item: fc.nat(0), ms: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const { speaker, say, heard } = loud();
      /** A client: the frames that it has not yet played, and how much of each item it has played. */
      let queue: AudioFrame[] = [];
      let taken = 0;
      const played = new Map<string, number>();
      const toUser: string[] = [];
      const made: string[] = [];
      let item = 1;
      const said = new Map<string, number>();
      const take = (): void => {
        queue.push(...heard.slice(taken));
        taken = heard.length;
      };
      for (const { do: what, item: change, ms } of [...steps, { do: 'goOn', item: 0, ms: 0 }]) {
        if (what === 'say') {
          if (change === 0) item += 1;
          const itemId = `i${item}`;
          const from = said.get(itemId) ?? 0;
          for (let at = from; at < from + ms; at += 1) made.push(`${itemId}:${at}`);
          said.set(itemId, from + ms);
          say(itemId, ms);
          if (!speaker.isPaused) take();
        } else if (what === 'play') {
          let left = ms;
          while (left > 0 && queue[0] && !speaker.isPaused) {
            const { itemId = '', samples } = queue[0];
            const now = Math.min(left, samples.length / PER_MS);
            for (let at = 0; at < now; at += 1)
              toUser.push(`${itemId.split('~')[0]}:${samples[at * PER_MS]}`);
            played.set(itemId, (played.get(itemId) ?? 0) + now);
            const rest = samples.slice(now * PER_MS);
            if (rest.length > 0) queue[0] = { ...queue[0], samples: rest };
            else queue.shift();
            left -= now;
            const report = speaker.played({ itemId, playedMs: played.get(itemId) ?? 0 });
            expect(`${report.itemId}:${report.playedMs - 1}`).toBe(toUser.at(-1));
          }
        } else if (what === 'pause') {
          if (speaker.pause()) queue = [];
        } else if (speaker.isPaused) {
          speaker.resume();
          take();
        }
      }
      expect(toUser).toEqual(made.slice(0, toUser.length));
    }),
  );
});

describe('LOUDSPEAKER-5: lowered speech', () => {
  const low = (value: number) => Math.round(value * 0.25);

  test('resumes where it was last heard, at its original level and with the speech added since then', () => {
    const { speaker, say, given, heard } = loud();
    say('a', 200);
    speaker.pause();
    speaker.played({ itemId: 'a', playedMs: 80 });
    let since = heard.length;
    speaker.resume(0.25);
    say('a', 40);
    expect(given(since)).toEqual([
      ['a~2', low(80), low(199) + 1],
      ['a~2', low(200), low(239) + 1],
    ]);
    speaker.pause();
    speaker.played({ itemId: 'a~2', playedMs: 60 });
    since = heard.length;
    expect(speaker.resume()).toEqual({ itemId: 'a', playedMs: 140 });
    // The remaining audio is at full volume.
    expect(given(since)).toEqual([
      ['a~3', 140, 200],
      ['a~3', 200, 240],
    ]);
  });

  test.each([
    ['it was all heard', (speaker: Loudspeaker) => speaker.drained()],
    ['it was stopped', (speaker: Loudspeaker) => speaker.drop()],
    ['it is raised', (speaker: Loudspeaker) => speaker.raise()],
  ])('returns to its original level when %s', (_when, end) => {
    const { speaker, say, given } = loud();
    say('a', 100);
    speaker.pause();
    speaker.resume(0.25);
    end(speaker);
    say('b', 100);
    expect(given().at(-1)).toEqual(['b', 0, 100]);
  });
});
