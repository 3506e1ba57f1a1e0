// A recorded session makes a test of two lines.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { exportRecording } from '../../../src/entries/replay.ts';
import { recording, RecordingError } from '../../../src/testing/index.ts';
import { wholeRide } from '../../actors/replay/support.ts';

let text = '';

beforeAll(async () => {
  const { of, talk } = await wholeRide();
  await talk.close();
  text = await exportRecording(of.begin().runtime.journal, 'ses');
});

function file(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'recording-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'ride.jsonl');
  writeFileSync(path, content);
  return path;
}

test('passes if a session behaves as recorded', async () => {
  const path = file(text);
  await recording(path).check();
  await recording(pathToFileURL(path)).check();
  expect((await recording(path).read()).scope).toBe('ses');
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('fails if a recording differs, and names the entry and the difference', async () => {
  const path = file(text.replace('"connection":"connecting"', '"connection":"active"'));
  const error: unknown = await recording(path)
    .check()
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RecordingError);
  expect(error).toMatchObject({
    code: 'RECORDING_DIFFERS',
    number: 2,
    entry: { event: { type: 'session.start' } },
    message: `${path}, entry 2 (\`session.start\` for session of ses):\n  connection: was \`active\`, is \`connecting\``,
  });
});

describe('an invalid file', () => {
  test('reports a file that does not exist', async () => {
    await expect(recording('no/such/file.jsonl').check()).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('throws an error if it is not a recording', async () => {
    const path = file('hello');
    await expect(recording(path).check()).rejects.toThrow(`${path}, line 1: expected`);
  });
});
