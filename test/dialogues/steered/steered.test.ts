// Dialogues about running work, in text and on the three wires, with perfect transcripts.

import { describe, expect, test } from 'vitest';
import { voiceWires } from '../stages/wire-stage.ts';
import { otherPeople } from './other-people.ts';
import { own } from './own.ts';
import { playSteered, wantedOf } from './steered.ts';

describe.each(['text', ...voiceWires] as const)('%s', (where) => {
  test.each([...otherPeople, ...own])('$name', async (dialogue) => {
    expect(await playSteered(where, dialogue)).toEqual(wantedOf(dialogue));
  });
});
