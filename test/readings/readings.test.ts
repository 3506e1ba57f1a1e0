// Conversations as readers answered them. A call whose text has changed since then makes its recording stale: it is
// answered anew (README.md here).

import { describe, expect, it } from 'vitest';
import { conversations } from './conversations/index.ts';
import { play } from './play.ts';
import { readRecording } from './recording.ts';

const recorded = conversations
  .map((conversation) => ({ ...conversation, recording: readRecording(conversation.name) }))
  .filter(({ recording }) => recording.isComplete);

describe('a conversation that was read', () => {
  it.each(recorded)('plays "$name" as it was read: $about', async (conversation) => {
    const { waiting, calls, failed } = await play(conversation, conversation.recording);
    // What a reader would get now, beside what it got: `npm run readings -- play NAME` asks for a new answer.
    expect(waiting.map(({ who, after, keeps, reads }) => ({ who, after, keeps, reads }))).toEqual(
      [],
    );
    expect(calls).toHaveLength(conversation.recording.calls.length);
    expect(failed).toEqual([]);
  });

  it.each(conversations)('stops "$name" at a call that has no answer', async (conversation) => {
    const nothing = { calls: [], isComplete: false };
    const { waiting, calls } = await play(conversation, nothing);
    expect(calls).toEqual([]);
    expect(waiting).toMatchObject([{ after: null, keeps: 0, isStale: false }]);
  });

  it.each(recorded.filter(({ wire }) => wire === undefined))(
    'begins each call of "$name" that continues a turn as the call before it',
    ({ recording: { calls } }) => {
      const broken = calls.filter(({ after, keeps, reads }) => {
        const roles = rolesIn(reads).join('');
        if (!roles.endsWith('<<tool>>')) return false;
        const before = calls[after ?? -1];
        // What it adds is that answer, and the results of its calls.
        const isNext = before && /^<<assistant>>(<<tool>>)+$/.test(roles);
        return !isNext || keeps !== before.keeps + rolesIn(before.reads).length;
      });
      expect(broken).toEqual([]);
    },
  );
});

/** A provider has cached what the calls of one turn have in common: the next one only adds to it. */
function rolesIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => /^<<.+>>$/.test(line));
}
