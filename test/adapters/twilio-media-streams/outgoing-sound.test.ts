import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type OutgoingMessage,
  OutgoingSound,
} from '../../../src/adapters/twilio-media-streams/twilio-call.ts';
import { decodeMuLaw } from '../../../src/voice/audio/mu-law.ts';

/** A phone that plays as far as the test decides, and holds the marks until then. */
function onPhone({ maxAheadMs = 1000, maxQueuedMs = 300_000 } = {}) {
  const sent: OutgoingMessage[] = [];
  const reports: { itemId: string; playedMs: number }[] = [];
  let overflows = 0;
  const sound = new OutgoingSound(
    {
      send: (message) => sent.push(message),
      played: (item) => reports.push({ ...item }),
      overflowed: () => (overflows += 1),
    },
    { maxAheadMs, maxQueuedMs },
  );
  const marks = (): string[] => sent.flatMap((it) => (it.event === 'mark' ? [it.mark.name] : []));
  let given = 0;
  return {
    sound,
    sent,
    reports,
    marks,
    overflows: () => overflows,
    /** At 8 kHz, so that a millisecond is 8 samples on both sides. */
    speak: (itemId: string | undefined, ms: number, value = 1000, sampleRateHz = 8000) =>
      sound.spoke({
        samples: new Int16Array((ms * sampleRateHz) / 1000).fill(value),
        sampleRateHz,
        ...(itemId === undefined ? {} : { itemId, responseId: `resp_${itemId}` }),
      }),
    /** Returns this many more marks. */
    giveBack: (count: number) => {
      for (const name of marks().slice(given, given + count)) sound.marked(name);
      given = Math.min(given + count, marks().length);
    },
    sentMs: () =>
      sent
        .filter((it) => it.event === 'media')
        .map(({ media }) => Buffer.from(media.payload, 'base64').length / 8),
  };
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

describe('OUTGOING-SOUND-1: reports', () => {
  test('cover the audio confirmed by marks, separately for each item', () => {
    const phone = onPhone();
    phone.speak('a', 250);
    phone.speak('b', 100);
    expect(phone.reports).toEqual([]);
    phone.giveBack(2);
    expect(phone.reports).toEqual([
      { itemId: 'a', playedMs: 100 },
      { itemId: 'a', playedMs: 200 },
    ]);
    phone.giveBack(2);
    expect(phone.reports.slice(2)).toEqual([
      { itemId: 'a', playedMs: 250 },
      { itemId: 'b', playedMs: 100 },
    ]);
  });

  test('include audio that was sent before a lost mark', () => {
    const phone = onPhone();
    phone.speak('a', 300);
    phone.sound.marked(phone.marks()[2] as string);
    expect(phone.reports.at(-1)).toEqual({ itemId: 'a', playedMs: 300 });
  });

  test('omit unknown and outdated marks', () => {
    const phone = onPhone();
    phone.speak('a', 100);
    phone.sound.marked('somebody else’s');
    phone.giveBack(1);
    phone.sound.marked(phone.marks()[0] as string);
    expect(phone.reports).toEqual([{ itemId: 'a', playedMs: 100 }]);
  });

  test('omit audio that belongs to no item, although that audio is played', () => {
    const phone = onPhone();
    phone.speak(undefined, 100);
    phone.giveBack(1);
    expect(total(phone.sentMs())).toBe(100);
    expect(phone.reports).toEqual([]);
  });
});

describe('OUTGOING-SOUND-2: a clear', () => {
  test('ignores marks that arrive after it', () => {
    const phone = onPhone();
    phone.speak('a', 500);
    phone.giveBack(2);
    expect(phone.sound.clear()).toEqual({ itemId: 'a', playedMs: 200 });
    expect(phone.sent.at(-1)).toEqual({ event: 'clear' });
    phone.giveBack(3);
    expect(phone.reports.at(-1)).toEqual({ itemId: 'a', playedMs: 200 });
  });

  test('restarts the count for the next item', () => {
    const phone = onPhone();
    phone.speak('a', 500);
    phone.sound.clear();
    phone.speak('b', 100);
    phone.giveBack(5);
    expect(phone.reports).toEqual([]);
    phone.giveBack(1);
    expect(phone.reports).toEqual([{ itemId: 'b', playedMs: 100 }]);
  });

  test('reports 0 ms for an item without a confirmed mark', () => {
    const phone = onPhone();
    phone.speak('a', 100);
    phone.giveBack(1);
    phone.speak('b', 100);
    expect(phone.sound.clear()).toEqual({ itemId: 'b', playedMs: 0 });
  });

  test('reports no truncation if everything has been played, but still reaches Twilio', () => {
    const phone = onPhone();
    phone.speak('a', 100);
    phone.giveBack(1);
    expect(phone.sound.clear()).toBeNull();
    expect(phone.sent.at(-1)).toEqual({ event: 'clear' });
  });

  test('drops buffered audio', () => {
    const phone = onPhone({ maxAheadMs: 100 });
    phone.speak('a', 1000);
    phone.sound.clear();
    const before = phone.sent.length;
    phone.giveBack(10);
    expect(phone.sent).toHaveLength(before);
  });
});

describe('OUTGOING-SOUND-3: pacing by marks', () => {
  test('limits the audio buffered by Twilio', () => {
    const phone = onPhone({ maxAheadMs: 300 });
    phone.speak('a', 1000);
    expect(total(phone.sentMs())).toBe(300);
    phone.giveBack(1);
    expect(total(phone.sentMs())).toBe(400);
    for (let count = 0; count < 9; count += 1) phone.giveBack(1);
    expect(total(phone.sentMs())).toBe(1000);
  });

  test('combines buffered frames into chunks of 100 ms, and sends other frames immediately', () => {
    const phone = onPhone({ maxAheadMs: 20 });
    for (let count = 0; count < 11; count += 1) phone.speak('a', 20);
    expect(phone.sentMs()).toEqual([20]);
    phone.giveBack(1);
    expect(phone.sentMs()).toEqual([20, 100]);
    phone.speak('b', 20);
    phone.giveBack(1);
    phone.giveBack(1);
    expect(phone.sentMs()).toEqual([20, 100, 100, 20]);
  });
});

describe('OUTGOING-SOUND-4: outgoing audio', () => {
  test('contains the spoken audio in order, at 8 kHz', () => {
    const phone = onPhone();
    phone.speak('a', 60, 5000, 24_000);
    phone.speak('b', 60, -5000, 24_000);
    phone.speak('c', 60, 0, 24_000);
    const samples = phone.sent.flatMap((it) =>
      it.event === 'media' ? [...decodeMuLaw(Buffer.from(it.media.payload, 'base64'))] : [],
    );
    // The end of the last audio is missing, because the filter still holds it.
    expect(samples.length).toBeGreaterThan(8 * 170);
    // At that level, one code stands for 256 values.
    expect(Math.abs((samples[8 * 30] as number) - 5000)).toBeLessThan(200);
    expect(Math.abs((samples[8 * 90] as number) + 5000)).toBeLessThan(200);
    expect(Math.abs(samples[8 * 150] as number)).toBeLessThan(20);
  });

  test('loses its end, not its middle, if it does not fit, and the loss is reported once', () => {
    const phone = onPhone({ maxAheadMs: 100, maxQueuedMs: 300 });
    phone.speak('a', 1000);
    phone.speak('a', 100);
    expect(phone.overflows()).toBe(1);
    for (let count = 0; count < 10; count += 1) phone.giveBack(1);
    const first = total(phone.sentMs());
    expect(phone.reports.at(-1)).toEqual({ itemId: 'a', playedMs: first });
    expect(first).toBeLessThan(500);
    phone.speak('a', 100);
    expect(total(phone.sentMs())).toBe(first);
    phone.speak('b', 100);
    expect(total(phone.sentMs())).toBe(first + 100);
  });
});

test('OUTGOING-SOUND-1, OUTGOING-SOUND-2, OUTGOING-SOUND-3: never reports more than has been played', () => {
  const action = fc.oneof(
    fc.record({ do: fc.constant('speak'), item: fc.nat(3), ms: fc.integer({ min: 1, max: 400 }) }),
    fc.record({ do: fc.constant('mark'), item: fc.nat(3), ms: fc.constant(0) }),
    fc.record({ do: fc.constant('clear'), item: fc.constant(0), ms: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const phone = onPhone({ maxAheadMs: 200 });
      let item = 0;
      const spoken = new Map<string, number>();
      for (const step of actions) {
        if (step.do === 'speak') {
          item += step.item === 0 ? 1 : 0;
          const itemId = `item_${item}`;
          spoken.set(itemId, (spoken.get(itemId) ?? 0) + step.ms);
          phone.speak(itemId, step.ms);
        } else if (step.do === 'mark') phone.giveBack(1);
        else {
          const cut = phone.sound.clear();
          const known = phone.reports.findLast(({ itemId }) => itemId === cut?.itemId);
          if (cut && known) expect(cut.playedMs).toBeLessThanOrEqual(known.playedMs);
          // After a clear, the rest of the same item counts from zero.
          item += 1;
        }
        const last = new Map<string, number>();
        for (const { itemId, playedMs } of phone.reports) {
          expect(playedMs).toBeGreaterThan(last.get(itemId) ?? 0);
          last.set(itemId, playedMs);
          expect(playedMs).toBeLessThanOrEqual(spoken.get(itemId) ?? 0);
        }
      }
    }),
  );
});
