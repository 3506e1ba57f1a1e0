// Conversations recorded with the readers' answers. If the text of a call changes, the recording becomes stale, and a
// reader must answer that call again (see README.md here).

import { describe, expect, it } from 'vitest';
import { conversations } from './conversations/index.ts';
import { play } from './play.ts';
import { readRecording } from './recording.ts';

const recorded = conversations
  .map((conversation) => ({ ...conversation, recording: readRecording(conversation.name) }))
  .filter(({ recording }) => recording.isComplete);

describe('a conversation that was recorded with a reader', () => {
  it.each(recorded)('replays "$name" as recorded: $about', async (conversation) => {
    const { waiting, calls, failed } = await play(conversation, conversation.recording);
    // A failure shows what a reader would now receive: `npm run readings -- play NAME` asks for a new answer.
    expect(waiting.map(({ who, after, keeps, reads }) => ({ who, after, keeps, reads }))).toEqual(
      [],
    );
    expect(calls).toHaveLength(conversation.recording.calls.length);
    expect(failed).toEqual([]);
  });

  it.each(conversations)(
    'stops "$name" at a model call whose answer was not recorded',
    async (conversation) => {
      const nothing = { calls: [], isComplete: false };
      const { waiting, calls } = await play(conversation, nothing);
      expect(calls).toEqual([]);
      expect(waiting).toMatchObject([{ after: null, keeps: 0, isStale: false }]);
    },
  );

  it.each(recorded.filter(({ wire }) => wire === undefined))(
    'starts each call of "$name" that continues a turn with the previous call\'s messages',
    ({ recording: { calls } }) => {
      const broken = calls.filter(({ after, keeps, reads }) => {
        const roles = rolesIn(reads).join('');
        if (!roles.endsWith('<<tool>>')) return false;
        const before = calls[after ?? -1];
        // The call adds only that answer and the results of the answer's tool calls.
        const isNext = before && /^<<assistant>>(<<tool>>)+$/.test(roles);
        return !isNext || keeps !== before.keeps + rolesIn(before.reads).length;
      });
      expect(broken).toEqual([]);
    },
  );
});

/** A provider caches the shared start of the calls of one turn, so each call only adds to it. */
function rolesIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => /^<<.+>>$/.test(line));
}
