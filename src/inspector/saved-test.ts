// The beginning of a session as a test: one file that runs as it is, with `node --test`.
//
// SAVED-TEST-1. The file holds the recording as JSON texts: whatever the session says, none of it is code.

import type { JournalEntry } from '../actors/ports/journal.ts';
import { exportRecording } from '../actors/replay/recording.ts';

export interface SavedTest {
  /** The name of the file. */
  readonly name: string;
  readonly text: string;
}

/** @throws the errors of `exportRecording` */
export async function savedTest(
  scope: string,
  entries: readonly JournalEntry[],
): Promise<SavedTest> {
  const recording = await exportRecording({ append() {}, read: () => entries }, scope);
  const lines = recording.trimEnd().split('\n');
  const title = JSON.stringify(`${scope} up to entry ${entries.length} leads to the same state`);
  return {
    name: `${scope.replaceAll(/[^\w-]+/g, '_').slice(0, 100)}-${entries.length}.test.ts`,
    text: `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRecording, parseRecording } from 'offstage/replay';

const lines = [
${lines.map((line) => `  ${JSON.stringify(line)},`).join('\n')}
];

test(${title}, () => {
  const recording = parseRecording(lines.join('\\n'), 'the recording of this test');
  assert.deepEqual(checkRecording(recording), null);
});
`,
  };
}
