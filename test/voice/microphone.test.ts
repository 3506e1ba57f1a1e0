// The user's audio on its way to the model. Audio at the model's rate passes unchanged, and other audio is converted as
// if a single resampler had processed all of it.

import { from, lastValueFrom, toArray } from 'rxjs';
import { expect, test } from 'vitest';
import type { AudioFrame } from '../../src/voice/audio/audio-frame.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { tone } from './audio/signals.ts';
import { resampleFrames } from '../../src/voice/audio/frame-operators.ts';

const MODEL_HZ = 24_000;

/** 20 ms of a tone. */
const frame = (sampleRateHz: number, hz: number): AudioFrame => ({
  samples: tone({ hz, sampleRateHz, seconds: 0.02 }),
  sampleRateHz,
});

test('delivers all audio in order from a client that changes its sample rate', async () => {
  const frames = [
    frame(MODEL_HZ, 300),
    frame(48_000, 400),
    frame(48_000, 500),
    frame(MODEL_HZ, 600),
    frame(MODEL_HZ, 700),
    { samples: new Int16Array(0), sampleRateHz: MODEL_HZ },
    frame(16_000, 800),
    frame(MODEL_HZ, 900),
  ];
  const transport = new FakeTransport();
  const talk = voiceTalk({ transport });
  await talk.start();
  for (const each of frames) talk.session.audioIn.next(each);
  const expected = await lastValueFrom(from(frames).pipe(resampleFrames(MODEL_HZ), toArray()));
  expect(transport.inUse.heard).toEqual(expected);
});
