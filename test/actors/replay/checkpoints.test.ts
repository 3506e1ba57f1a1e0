// A replay that continues from a checkpoint.

import { expect, test } from 'vitest';
import { Replay, quarantineReasons } from '../../../src/actors/replay/replay-session.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import { wholeRide } from './support.ts';

/** Returns the steps as plain values, because some fields are computed on access. */
function steps(replay: Replay, entries: readonly JournalEntry[]) {
  return entries.map((entry) => {
    const { number, isAccepted, setAside, changes, view, machines } = replay.take(entry);
    const states = machines && {
      ...machines,
      questions: [...machines.questions].map(([id, { value, context }]) => [id, value, context]),
      subagents: [...machines.subagents].map(([id, { value, context }]) => [id, value, context]),
      session: [machines.session?.value, machines.session?.context],
      interaction: [machines.interaction?.value, machines.interaction?.context],
      outbox: [machines.outbox?.value, machines.outbox?.context],
    };
    return structuredClone({ number, isAccepted, setAside, changes, view, states });
  });
}

test('REPLAY-SESSION-3: replays the remaining entries identically from a checkpoint at any entry', async () => {
  const { of, talk } = await wholeRide();
  await talk.close();
  const { entries } = of;
  const quarantined = quarantineReasons(entries);
  const whole = steps(new Replay(quarantined), entries);
  for (let at = 1; at < entries.length; at += 1) {
    const before = new Replay(quarantined);
    for (const entry of entries.slice(0, at)) before.take(entry);
    const checkpoint = before.toCheckpoint();
    if (!checkpoint) throw new Error('Expected a checkpoint');
    const rest = steps(Replay.from(checkpoint, quarantined), entries.slice(at));
    expect(rest, `from entry ${at + 1}`).toEqual(whole.slice(at));
    // The checkpoint can be used again, and the replay that created it continues.
    expect(steps(Replay.from(checkpoint, quarantined), entries.slice(at, at + 1))).toEqual(
      whole.slice(at, at + 1),
    );
    expect(steps(before, entries.slice(at))).toEqual(whole.slice(at));
  }
});
