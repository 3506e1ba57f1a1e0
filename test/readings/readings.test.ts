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
});
