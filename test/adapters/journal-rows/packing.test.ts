import { crc32, deflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { DICTIONARIES } from '../../../src/adapters/journal-rows/dictionaries.ts';
import { packed, unpacked } from '../../../src/adapters/journal-rows/stored-rows.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

const long = 'äöü 🚕 "quoted"\n\u2028'.repeat(1000);

test('unpacks a packed value unchanged', () => {
  for (const text of [long, long.repeat(20), 'x'.repeat(4000)])
    expect(unpacked(packed(text) ?? Buffer.of())).toBe(text);
});

test('does not pack a short value', () => {
  expect(packed('x'.repeat(3999))).toBeNull();
});

test('DICTIONARIES-1: leaves the dictionaries that packed existing journals unchanged', () => {
  expect(DICTIONARIES.map((one) => crc32(one))).toEqual([2_101_770_692, 3_373_798_799]);
});

test('DICTIONARIES-1: reads values that were packed with the first dictionary', () => {
  const bytes = 'AavGMxqOWteBvAWKJ6WsRB2FUTyKR/EoHsWjeBSP4lE8ikfxKB7Fo3gUDyxWiq0FAA==';
  expect(unpacked(Buffer.from(bytes, 'base64'))).toBe(
    `{"type":"session.snapshot","services":{},"texts":["${'ja, '.repeat(1000)}"]}`,
  );
});

test.each([
  ['an empty value', Buffer.of()],
  ['bytes without a dictionary', Buffer.concat([Buffer.of(0), deflateRawSync('text')])],
  ['bytes of an unknown dictionary', Buffer.concat([Buffer.of(200), deflateRawSync('text')])],
  ['a part of a packed value', packed(long)?.subarray(0, -1) ?? Buffer.of()],
  ['noise', Buffer.from([1, 0xff, 0xff, 0xff])],
])('refuses to unpack %s', (_what, bytes) => {
  expect(() => unpacked(bytes)).toThrow();
});

test('stores a session with a waiting subagent in less than an eighth of its original size', async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal({ keep: Infinity });
  const talk = textTalk({
    runtime: createRuntime({ environment, journal, snapshots: { trim: true } }),
    environment,
    subagents: {
      booking: {
        script: turns(
          calls(['ask_user', { question: 'From which station do you want to leave?' }]),
        ),
        config: { interactive: true },
      },
    },
  });
  await talk.start();
  await talk.type('What can you do for somebody who has never been here before?');
  await talk.type('use booking');
  await talk.session.suspend();
  const [snapshot] = journal.read();
  expect(snapshot?.event.type).toBe('session.snapshot');
  const text = JSON.stringify(snapshot?.event);
  expect(packed(text)?.length).toBeLessThan(text.length / 8);
});
