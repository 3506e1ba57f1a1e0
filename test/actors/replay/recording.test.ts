// A session that was recorded as text, compared with later code.

import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  checkRecording,
  exportRecording,
  importRecording,
  parseRecording,
} from '../../../src/entries/replay.ts';
import { redactingJournal } from '../../../src/entries/journal.ts';
import { memoryJournal } from '../../../src/index.ts';
import { SubagentLog } from '../../../src/actors/subagent/subagent-log.ts';
import { wholeRide } from './support.ts';

let text = '';
let lines: readonly string[] = [];

beforeAll(async () => {
  const { of, talk } = await wholeRide();
  await talk.close();
  text = await exportRecording(of.begin().runtime.journal, 'ses');
  lines = text.trimEnd().split('\n');
});

/** Returns the recording with line `number` changed; the header is line 1. */
function withLine(number: number, change: (line: Record<string, unknown>) => object): string {
  const changed = lines.map((line, index) =>
    index === number - 1
      ? JSON.stringify(change(JSON.parse(line) as Record<string, unknown>))
      : line,
  );
  return changed.join('\n');
}

const lineOf = (type: string): number =>
  lines.findIndex((line) => line.includes(`"type":"${type}"`)) + 1;

describe('RECORDING-1: exported recordings', () => {
  test('parse into the original steps', () => {
    const { scope, steps } = parseRecording(text);
    expect(scope).toBe('ses');
    expect(steps).toHaveLength(lines.length - 1);
    expect(steps[1]).toMatchObject({
      entry: { scope: 'ses', unit: 'ses', seq: 2, event: { type: 'session.start' } },
      changes: { connection: 'connecting' },
      isAccepted: true,
    });
    expect(checkRecording(parseRecording(text))).toBeNull();
  });

  test('parse with other line endings', () => {
    expect(checkRecording(parseRecording(text.replaceAll('\n', '\r\n')))).toBeNull();
  });

  test('survive a round trip through a journal', async () => {
    const journal = memoryJournal({ keep: Infinity });
    await importRecording(journal, parseRecording(text));
    expect(await exportRecording(journal, 'ses')).toBe(text);
    await expect(importRecording(journal, parseRecording(text))).rejects.toMatchObject({
      code: 'SESSION_EXISTS',
    });
  });

  test('contain no secrets if the journal does not contain any', async () => {
    const journal = memoryJournal({ keep: Infinity });
    await importRecording(
      redactingJournal(journal, { values: ['use ride and weather'] }),
      parseRecording(text),
    );
    const redacted = await exportRecording(journal, 'ses');
    expect(redacted).not.toContain('use ride and weather');
    expect(checkRecording(parseRecording(redacted))).toBeNull();
  });
});

describe('a difference', () => {
  test('names the first entry with a changed consequence, and shows the recorded value', () => {
    const number = lineOf('client.attached');
    const other = withLine(number, (line) => ({ ...line, ledTo: { client: 'attached', x: '1' } }));
    expect(checkRecording(parseRecording(other))).toMatchObject({
      number: number - 1,
      entry: { event: { type: 'client.attached' } },
      differences: ['x: was `1`, is left as it was'],
    });
  });

  test('names an entry that is no longer accepted', () => {
    const number = lineOf('question.answered');
    const other = withLine(number, (line) => ({
      ...line,
      event: { type: 'question.answered', requestId: 'another', answer: { userResponse: 'x' } },
    }));
    expect(checkRecording(parseRecording(other))).toMatchObject({
      number: number - 1,
      differences: ['it was accepted, and is not any more'],
    });
  });

  test('names an entry that can no longer be folded', () => {
    const number = lineOf('model.responded');
    const other = withLine(number, (line) => ({ ...line, definitionVersion: 99 }));
    expect(checkRecording(parseRecording(other))).toMatchObject({
      number: number - 1,
      differences: [expect.stringMatching(/^it cannot be folded any more: Entry \d+ of sub_1/)],
    });
  });

  test('appears when the code changes', () => {
    const spy = vi.spyOn(SubagentLog.prototype, 'answered').mockImplementation(() => {});
    onTestFinished(() => spy.mockRestore());
    expect(checkRecording(parseRecording(text))).toMatchObject({
      entry: { event: { type: 'question.answered' } },
      differences: [
        'subagent sub_1: was `ride ready, step 2 (5 messages, 2 calls)`, is `ride ready, step 2 (5 messages, 1 calls)`',
      ],
    });
  });
});

describe('RECORDING-2: an invalid text', () => {
  test.each([
    ['', 'line 1: expected a line that `exportRecording` wrote: expected JSON'],
    ['hello', 'line 1: expected a line that `exportRecording` wrote: expected JSON'],
    ['{"some":"json"}', 'line 1: expected a line that `exportRecording` wrote: ✖'],
  ])('%j', (other, message) => {
    expect(() => parseRecording(other, 'may.jsonl')).toThrow(`may.jsonl, ${message}`);
  });

  test('fails to parse when it is truncated', () => {
    expect(() => parseRecording(lines.slice(0, -1).join('\n'))).toThrow(
      `expected ${lines.length - 1} entries, got ${lines.length - 2}`,
    );
    expect(() => parseRecording(text.slice(0, -20))).toThrow(`line ${lines.length}: expected`);
  });

  test('fails to parse when a line is not an entry', () => {
    const other = withLine(5, (line) => ({ ...line, actor: undefined }));
    expect(() => parseRecording(other, 'may.jsonl')).toThrow(
      /may\.jsonl, line 5 .*entry 4 of ses/s,
    );
  });

  test('fails to parse when its version is newer', () => {
    const other = withLine(1, (line) => ({ ...line, recording: 2 }));
    expect(() => parseRecording(other)).toThrow(
      expect.objectContaining({ code: 'RECORDING_TOO_NEW' }),
    );
  });
});
