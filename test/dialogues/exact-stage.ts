// The tests for one stage in simulated time: every dialogue either succeeds or fails as `known.json` states. A dialogue
// that now succeeds must be removed from that file.

import { describe, expect, test } from 'vitest';
import { dialogues } from './corpus/index.ts';
import { judgeDialogue } from './judge.ts';
import { knownFaults } from './known.ts';
import { playDialogue } from './play.ts';
import { exactStages, isPlayedOn } from './stages/index.ts';

export function testDialogues(name: string): void {
  describe(`dialogues: ${name}`, () => {
    test.each(dialogues.filter((dialogue) => isPlayedOn(name, dialogue)))(
      '$kind: $name',
      async (dialogue) => {
        const stage = await exactStages[name]?.();
        if (!stage) throw new Error(`Expected a stage ${name}`);
        const { faults } = judgeDialogue(dialogue, await playDialogue(stage, dialogue));
        await stage.close();
        const kinds = [...new Set(faults.map(({ fault }) => fault))].toSorted();
        expect(
          kinds,
          `${JSON.stringify(faults)}; \`npm run dialogues -- --stage ${name} --write\` renews known.json`,
        ).toEqual(knownFaults(dialogue.name, name));
      },
    );
  });
}
