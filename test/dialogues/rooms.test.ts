// Some of the dialogues with real speech in rooms; `npm run dialogues:rooms` plays all of them. The recogniser may
// mishear. Even then, nothing may be lost or delivered twice, and what was recognised correctly must take effect.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { greeting } from '../../examples/voice-demo/rules/phrases.ts';
import { dialogues } from './corpus/index.ts';
import type { Background, Dialogue } from './dialogue.ts';
import { judgeDialogue, type Fault } from './judge.ts';
import { playDialogue } from './play.ts';
import { roomStages, type RoomStages } from './stages/room-stage.ts';

/** Faults of the session that do not depend on what was recognised. */
const always: ReadonlySet<Fault> = new Set(['told twice', 'lost', 'error']);
const ofAnyRoom: ReadonlySet<string> = new Set([
  'a ride, asked and answered',
  'a listening word into a question, and then the answer',
  'held out: pardon',
]);

let stages: RoomStages;
beforeAll(async () => {
  stages = await roomStages();
});
afterAll(() => stages.close());

interface Case {
  readonly room: Background | undefined;
  readonly name: string;
  readonly dialogue: Dialogue;
}

const cases = dialogues.flatMap((dialogue): readonly Case[] => {
  const { name, background } = dialogue;
  if (background) return [{ room: background, name, dialogue }];
  const rooms = ofAnyRoom.has(name) ? ([undefined, 'noise', 'echo'] as const) : [];
  return rooms.map((room) => ({ room, name, dialogue }));
});

test('finds every named dialogue', () => {
  const named = cases.filter(({ room }) => room === undefined).map(({ name }) => name);
  expect(named.toSorted()).toEqual([...ofAnyRoom].toSorted());
});

/** A television whose sentence ends together with the greeting could be a quiet user, so the lead agent answers it. */
test.each([0, 500, 3000])(
  'television from %d ms on: gets the greeting again or one reply at most, and never holds the floor',
  async (roomFromMs) => {
    const stage = await stages.open({
      name: 'a television is on',
      kind: 'room',
      background: 'television',
      roomFromMs,
      lines: [],
      work: [],
    });
    await stage.pass(30_000);
    const { said, sounds, errors } = await stage.finish();
    await stage.close();
    const gaps = sounds.slice(1).map(({ from }, index) => from - (sounds[index]?.to ?? from));
    const isBounded = said.length === 2 && said.includes(greeting);
    const isRight = isBounded && gaps.length > 0 && gaps.every((gap) => gap <= 10_000);
    expect({ errors, story: isRight ? [] : stage.story }).toEqual({ errors: [], story: [] });
  },
);

describe('a dialogue in a room', () => {
  test.each(cases)('$room: $name', async ({ room, dialogue }) => {
    const stage = await stages.open({ ...dialogue, ...(room && { background: room }) });
    const record = await playDialogue(stage, dialogue);
    await stage.close();
    const { faults, isHeardRight } = judgeDialogue(dialogue, record);
    const ours = faults.filter(({ fault }) => always.has(fault) || isHeardRight);
    expect({ ours, story: ours.length > 0 ? stage.story : [] }).toEqual({ ours: [], story: [] });
    // The session mistook speech without a transcript for an echo, or for another person's speech.
    const unheard = record.utterances.filter(
      ({ line, heard }) => heard === null && !dialogue.lines[line]?.wantsNothing,
    );
    if (room !== 'television') expect(unheard).toEqual([]);
  });
});
