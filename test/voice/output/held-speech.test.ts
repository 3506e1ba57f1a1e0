// The held speech of a model that answers on its own is released or dropped as a whole and in order.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { HeldSpeech, type ReplyReader } from '../../../src/voice/output/held-speech.ts';
import type { TransportEvent } from '../../../src/voice/connection/transport.ts';

const PATIENCE_MS = 5000;

function heldOf({ isInRealTime = false } = {}) {
  const environment = simulatedEnvironment();
  const world = { isUndecided: true, hasFloor: false };
  const told: string[] = [];
  const held = new HeldSpeech(
    environment,
    {
      isUndecided: () => world.isUndecided,
      hasFloor: () => world.hasFloor,
      play: ({ itemId, samples }) => told.push(`sound ${itemId} ${samples.length}`),
      handle: (event) => happen(event),
      silenced: (responseId, isOver) => told.push(`silenced ${responseId} ${isOver}`),
      refused: (callId) => told.push(`refused ${callId}`),
      unplayed: (itemId) => told.push(`unplayed ${itemId}`),
    },
    { patienceMs: PATIENCE_MS, isInRealTime },
  );
  /** Forwards a frame immediately unless it is held, as a session does. */
  const say = (responseId: string, ms: number): void => {
    const frame = {
      samples: new Int16Array(ms * 24),
      sampleRateHz: 24_000,
      itemId: `i_${responseId}`,
      responseId,
    };
    if (!held.handleFrame(frame)) told.push(`sound ${frame.itemId} ${frame.samples.length}`);
  };
  const happen = (event: TransportEvent): void => {
    if (!held.handleEvent(event)) told.push(nameOf(event));
  };
  return { environment, world, told, held, say, happen };
}

const nameOf = (event: TransportEvent): string =>
  'text' in event ? `${event.type} ${event.text}` : event.type;
const words = (responseId: string, text: string): TransportEvent => ({
  type: 'assistant.transcribed',
  itemId: `i_${responseId}`,
  responseId,
  text,
  final: false,
});
const ended = (responseId: string): TransportEvent => ({
  type: 'response.ended',
  responseId,
  responseKey: null,
  status: 'completed',
  reason: null,
  audio: [],
});
const called = (responseId: string, callId: string): TransportEvent => ({
  type: 'tool.called',
  callId,
  name: 'pay',
  arguments: '{}',
  responseId,
});

test('does not hold anything if the utterance can only be meant for the lead agent', () => {
  const { world, held, say, told, happen } = heldOf();
  world.isUndecided = false;
  held.began('r');
  say('r', 10);
  happen(words('r', 'Hi'));
  expect(told).toEqual(['sound i_r 240', 'assistant.transcribed Hi']);
});

describe('HELD-SPEECH-1: order', () => {
  test('releases held speech in order, before any later speech', () => {
    const { held, say, told, happen } = heldOf();
    held.began('r');
    say('r', 10);
    happen(words('r', 'Hi'));
    say('r', 20);
    happen(called('r', 'c'));
    happen(ended('r'));
    expect(told).toEqual([]);
    held.release();
    say('other', 30);
    expect(told).toEqual([
      'sound i_r 240',
      'sound i_r 480',
      'assistant.transcribed Hi',
      'tool.called',
      'response.ended',
      'sound i_other 720',
    ]);
  });

  test('plays each frame at most once and in order, whatever the decisions', () => {
    const step = fc.record({
      kind: fc.constantFrom(
        'begin',
        'sound',
        'sound',
        'end',
        'release',
        'silence',
        'unwanted',
        'wanted',
      ),
      of: fc.nat(2),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { held, told, say, happen } = heldOf();
        let current = 0;
        let frames = 0;
        const silencedAt = new Map<string, number>();
        for (const { kind, of } of steps) {
          if (kind === 'begin') held.began(`r${(current += 1)}`);
          else if (kind === 'sound') say(`r${Math.max(0, current - of)}`, (frames += 1));
          else if (kind === 'end') happen(ended(`r${current}`));
          else if (kind === 'release') held.release();
          else if (kind === 'silence') held.silence();
          else if (kind === 'unwanted') held.expectUnwanted(1000, of === 0);
          else held.expectWanted();
        }
        told.forEach((line, index) => {
          const [what, id = ''] = line.split(' ');
          if (what === 'silenced') silencedAt.set(`i_${id}`, index);
        });
        const sounds = told.filter((line) => line.startsWith('sound'));
        expect(new Set(sounds).size).toBe(sounds.length);
        for (const [item, index] of silencedAt)
          expect(told.slice(index).some((line) => line.startsWith(`sound ${item} `))).toBe(false);
        const byItem = new Map<string, number>();
        for (const line of sounds) {
          const [, item = '', size = ''] = line.split(' ');
          expect(Number(size)).toBeGreaterThan(byItem.get(item) ?? 0);
          byItem.set(item, Number(size));
        }
      }),
    );
  });
});

describe('HELD-SPEECH-2: silence', () => {
  test("silences a response's audio, text and calls, even if they arrive late", () => {
    const { held, say, told, happen } = heldOf();
    held.began('r');
    say('r', 10);
    happen(words('r', 'Hi'));
    happen(called('r', 'c1'));
    expect(held.silence()).toBe(true);
    say('r', 10);
    happen(words('r', 'there'));
    happen(called('r', 'c2'));
    happen(ended('r'));
    expect(told).toEqual([
      'silenced r false',
      'unplayed i_r',
      'refused c1',
      'refused c2',
      'response.ended',
    ]);
    expect(held.silence()).toBe(false);
  });

  test('reports the end of a silenced response', () => {
    const { held, told, happen } = heldOf();
    held.began('r');
    happen(ended('r'));
    held.silence();
    expect(told).toEqual(['silenced r true', 'response.ended']);
  });

  test('drops a held call when the call is cancelled', () => {
    const { held, told, happen } = heldOf();
    held.began('r');
    happen(called('r', 'c'));
    happen({ type: 'tool.cancelled', callId: 'c' });
    held.release();
    happen({ type: 'tool.cancelled', callId: 'c' });
    expect(told).toEqual(['tool.cancelled']);
  });

  test('silences replies to an utterance for a subagent, until a time limit or the next request', async () => {
    const { held, told, world, environment } = heldOf();
    world.isUndecided = false;
    held.expectUnwanted(1000, false);
    held.began('a');
    held.expectWanted();
    held.began('b');
    held.expectUnwanted(1000, false);
    await environment.advance(1000);
    held.began('c');
    expect(told).toEqual(['silenced a false']);
  });

  test('starts the time limit after the current response has ended', async () => {
    const { held, told, world, environment, happen } = heldOf();
    world.isUndecided = false;
    held.expectUnwanted(1000, true);
    await environment.advance(10_000);
    happen(ended('r'));
    await environment.advance(900);
    held.began('a');
    await environment.advance(100);
    held.began('b');
    expect(told).toEqual(['response.ended', 'silenced a false']);
  });
});

describe('HELD-SPEECH-3: limits', () => {
  test('releases held speech after a timeout but not while the user is speaking', async () => {
    const { held, say, told, world, environment } = heldOf();
    held.began('r');
    say('r', 10);
    world.hasFloor = true;
    await environment.advance(PATIENCE_MS);
    expect(told).toEqual([]);
    world.hasFloor = false;
    await environment.advance(PATIENCE_MS);
    expect(told).toEqual(['sound i_r 240']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('cuts off audio beyond the limit without leaving a gap', () => {
    const { held, say, told } = heldOf();
    held.began('r');
    say('r', 59_000);
    say('r', 2000);
    say('r', 500);
    held.release();
    say('r', 100);
    expect(told).toEqual([`sound i_r ${59_000 * 24}`]);
  });

  test('drops held speech on reset', async () => {
    const { held, say, told, environment } = heldOf();
    held.began('r');
    say('r', 10);
    held.reset();
    expect(environment.pendingTimers).toBe(0);
    held.release();
    expect(told).toEqual([]);
  });
});

describe('HELD-SPEECH-4: a reply that only acknowledges an answer', () => {
  const world = { isLate: false };
  const reader: ReplyReader = {
    read: (text) => {
      if (text === 'Premium.' || text === 'Premium. One moment.') return 'whole';
      return 'Premium. One moment.'.startsWith(text) ? 'beginning' : 'none';
    },
    isLate: () => world.isLate,
  };

  test('plays once it is complete', () => {
    const { held, say, told, happen } = heldOf();
    held.began('r');
    say('r', 100);
    happen(words('r', 'Premium.'));
    expect(held.silenceUnless(reader)).toBe(true);
    happen(words('r', ' One moment.'));
    say('r', 100);
    expect(told).toEqual([]);
    held.release();
    happen(ended('r'));
    expect(told).toEqual([
      'sound i_r 2400',
      'sound i_r 2400',
      'assistant.transcribed Premium.',
      'assistant.transcribed  One moment.',
      'response.ended',
    ]);
  });

  test('never plays if another utterance was meant for the lead agent', () => {
    const { held, told, happen } = heldOf();
    held.began('r');
    happen(words('r', 'Premium.'));
    held.silenceUnless(reader);
    held.expectWanted();
    happen(words('r', ' One moment.'));
    happen(ended('r'));
    expect(told).toEqual(['silenced r false', 'response.ended']);
  });

  test.each([
    ['says more', () => words('r', 'Premium. One moment. It is booked!')],
    ['calls something', () => called('r', 'c1')],
  ])('falls silent if it %s', (_, event) => {
    const { held, told, happen } = heldOf();
    held.began('r');
    happen(words('r', 'Premium. One moment.'));
    held.silenceUnless(reader);
    happen(event());
    happen(ended('r'));
    expect(told.filter((each) => each.startsWith('assistant') || each.startsWith('sound'))).toEqual(
      [],
    );
    expect(told.some((each) => each.startsWith('silenced r'))).toBe(true);
  });

  describe('HELD-SPEECH-5: an acknowledgement whose audio arrives in real time', () => {
    const begun = async () => {
      const made = heldOf({ isInRealTime: true });
      made.held.silenceUnless(reader);
      made.held.expectUnwanted(5000, false);
      made.held.began('r');
      const speak = async (text: string, ms: number) => {
        made.happen(words('r', text));
        for (let left = ms; left > 0; left -= 100) {
          made.say('r', 100);
          await made.environment.advance(100);
        }
      };
      await speak('Premium.', 600);
      return { ...made, speak };
    };
    const soundMs = (told: readonly string[]) =>
      100 * told.filter((each) => each.startsWith('sound')).length;

    test('plays to its end as it arrives', async () => {
      const { told, speak, happen, environment } = await begun();
      expect(told[0]).toBe('assistant.transcribed Premium.');
      expect(soundMs(told)).toBe(300);
      world.isLate = true;
      await speak(' One moment.', 500);
      world.isLate = false;
      expect(soundMs(told)).toBe(800);
      await environment.advance(300);
      expect(soundMs(told)).toBe(1100);
      happen(ended('r'));
      expect(told.filter((each) => !each.startsWith('sound'))).toEqual([
        'assistant.transcribed Premium.',
        'assistant.transcribed  One moment.',
        'response.ended',
      ]);
      expect(environment.pendingTimers).toBe(1);
    });

    test('stops when its text goes beyond an acknowledgement', async () => {
      const { told, speak, happen, environment } = await begun();
      const before = soundMs(told);
      await speak(' It is booked.', 1000);
      await environment.advance(1000);
      happen(ended('r'));
      expect(soundMs(told)).toBe(before);
      expect(told.filter((each) => !each.startsWith('sound'))).toEqual([
        'assistant.transcribed Premium.',
        'silenced r false',
        'response.ended',
      ]);
    });

    test('stops when the user speaks', async () => {
      const { told, held, environment } = await begun();
      const before = soundMs(told);
      held.silence();
      await environment.advance(1000);
      expect(soundMs(told)).toBe(before);
      expect(told.at(-1)).toBe('silenced r false');
      expect(environment.pendingTimers).toBe(0);
    });

    test('never plays if another utterance is already due', async () => {
      world.isLate = true;
      const { told } = await begun();
      world.isLate = false;
      expect(soundMs(told)).toBe(0);
    });

    test('suppresses a second acknowledgement', async () => {
      const { told, held, say, happen, environment } = await begun();
      held.began('s');
      say('s', 100);
      happen(words('s', 'Premium.'));
      happen(ended('s'));
      await environment.advance(1000);
      expect(told.filter((each) => each.includes('_s'))).toEqual(['unplayed i_s']);
      expect(soundMs(told)).toBe(600);
    });
  });

  test('becomes silent if it takes too long or if the user speaks', async () => {
    for (const isTooLong of [true, false]) {
      const { environment, held, told, happen } = heldOf();
      held.began('r');
      happen(words('r', 'Premium.'));
      held.silenceUnless(reader);
      if (isTooLong) await environment.advance(2500);
      else held.silence();
      expect(told).toEqual(['silenced r false']);
      happen(words('r', ' One moment.'));
      expect(told).toHaveLength(1);
    }
  });

  test('plays once even if it arrives after the answer', () => {
    const { held, told, say, happen } = heldOf();
    held.silenceUnless(reader);
    held.expectUnwanted(5000, false);
    for (const id of ['r', 's']) {
      held.began(id);
      say(id, 100);
      happen(words(id, 'Premium. One moment.'));
      happen(ended(id));
    }
    expect(told.slice(0, 3)).toEqual([
      'sound i_r 2400',
      'assistant.transcribed Premium. One moment.',
      'response.ended',
    ]);
    expect(told[3]).toBe('silenced s false');
  });
});
