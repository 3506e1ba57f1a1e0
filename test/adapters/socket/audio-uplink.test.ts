import { describe, expect, test } from 'vitest';
import { createAudioUplink } from '../../../src/adapters/socket/socket-connection.ts';
import { audioAppendText } from '../../../src/adapters/openai-realtime/wire.ts';
import { decodePcm16Base64, encodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { userAudio } from '../openai-realtime/support/connected.ts';

function start(maxBufferedMs = 300) {
  const written: string[] = [];
  let bufferedBytes = 0;
  let congestions = 0;
  const uplink = createAudioUplink({
    maxBufferedMs,
    encode: (frame) => audioAppendText(encodePcm16Base64(frame.samples)),
    write: (text) => written.push(text),
    bufferedBytes: () => bufferedBytes,
    onCongestion: () => {
      congestions += 1;
    },
  });
  return {
    uplink,
    setBufferedBytes: (bytes: number) => {
      bufferedBytes = bytes;
    },
    congestions: () => congestions,
    marks: () =>
      written.map((text) => {
        const event = JSON.parse(text) as { type: string; audio: string };
        expect(event.type).toBe('input_audio_buffer.append');
        return decodePcm16Base64(event.audio)[0];
      }),
  };
}

describe('AUDIO-UPLINK-1, AUDIO-UPLINK-2: a bounded uplink', () => {
  test('drops the oldest frames while it is closed', () => {
    const { uplink, marks, congestions } = start();
    for (const mark of [1, 2, 3, 4, 5]) uplink.push(userAudio(mark));
    expect(marks()).toEqual([]);
    uplink.open();
    expect(marks()).toEqual([3, 4, 5]);
    expect(uplink.dropped).toEqual({ frames: 2, durationMs: 200 });
    // Congestion before the connection exists is not reported at the start of a call.
    expect(congestions()).toBe(0);
  });

  test('drops the oldest frames during congestion, and reports each gap once', () => {
    const { uplink, marks, congestions, setBufferedBytes } = start();
    uplink.open();
    uplink.push(userAudio(1));
    setBufferedBytes(64_000);
    for (const mark of [2, 3, 4, 5, 6]) uplink.push(userAudio(mark));
    expect(marks()).toEqual([1]);
    expect(congestions()).toBe(1);
    setBufferedBytes(0);
    uplink.pump();
    expect(marks()).toEqual([1, 4, 5, 6]);
    setBufferedBytes(64_000);
    for (const mark of [7, 8, 9, 10]) uplink.push(userAudio(mark));
    expect(congestions()).toBe(2);
  });

  test('does not send empty frames', () => {
    const { uplink, marks } = start();
    uplink.open();
    uplink.push(userAudio(1, 0));
    expect(marks()).toEqual([]);
  });
});

describe('AUDIO-UPLINK-3: session times', () => {
  test("match the server's times if nothing has been dropped", () => {
    const { uplink } = start();
    uplink.push(userAudio());
    uplink.open();
    expect(uplink.toSessionMs(40)).toBe(40);
  });

  test('account for frames that were dropped before the first sound', () => {
    const { uplink } = start();
    for (let n = 0; n < 5; n += 1) uplink.push(userAudio());
    uplink.open();
    expect(uplink.toSessionMs(0)).toBe(200);
    expect(uplink.toSessionMs(40)).toBe(240);
  });

  test('include a gap in the middle in all times after it', () => {
    const { uplink, setBufferedBytes } = start();
    uplink.open();
    uplink.push(userAudio());
    setBufferedBytes(64_000);
    for (let n = 0; n < 5; n += 1) uplink.push(userAudio());
    setBufferedBytes(0);
    uplink.pump();
    // The server received 100 ms, then came a gap of 200 ms that it does not know of, and then 300 ms.
    expect(uplink.toSessionMs(99)).toBe(99);
    expect(uplink.toSessionMs(100)).toBe(300);
    expect(uplink.toSessionMs(150)).toBe(350);
  });

  test('account for the sum of many gaps', () => {
    const { uplink, setBufferedBytes } = start(100);
    uplink.open();
    for (let n = 0; n < 200; n += 1) {
      setBufferedBytes(64_000);
      uplink.push(userAudio());
      uplink.push(userAudio());
      setBufferedBytes(0);
      uplink.pump();
    }
    expect(uplink.dropped.durationMs).toBe(20_000);
    expect(uplink.toSessionMs(20_000)).toBe(40_000);
  });
});
