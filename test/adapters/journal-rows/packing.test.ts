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

test('a packed value is unpacked unchanged', () => {
  for (const text of [long, long.repeat(20), 'x'.repeat(4000)])
    expect(unpacked(packed(text) ?? Buffer.of())).toBe(text);
});

test('a short value is not packed', () => {
  expect(packed('x'.repeat(3999))).toBeNull();
});

test('DICTIONARIES-1: dictionaries are what they were: whoever changes one makes journals unreadable', () => {
  expect(DICTIONARIES.map((one) => crc32(one))).toEqual([2_101_770_692, 3_373_798_799]);
});

test('DICTIONARIES-1: values that were packed with the first dictionary stay readable', () => {
  const bytes = 'AavGMxqOWteBvAWKJ6WsRB2FUTyKR/EoHsWjeBSP4lE8ikfxKB7Fo3gUDyxWiq0FAA==';
  expect(unpacked(Buffer.from(bytes, 'base64'))).toBe(
    `{"type":"session.snapshot","services":{},"texts":["${'ja, '.repeat(1000)}"]}`,
  );
});

test.each([
  ['nothing', Buffer.of()],
  ['without a dictionary', Buffer.concat([Buffer.of(0), deflateRawSync('text')])],
  ['with one that is not known', Buffer.concat([Buffer.of(200), deflateRawSync('text')])],
  ['a part of it', packed(long)?.subarray(0, -1) ?? Buffer.of()],
  ['noise', Buffer.from([1, 0xff, 0xff, 0xff])],
])('what was not packed is an error: %s', (_what, bytes) => {
  expect(() => unpacked(bytes)).toThrow();
});

test('a session with a subagent that waits takes less than an eighth of what it consists of', async () => {
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
