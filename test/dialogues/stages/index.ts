// The stages in simulated time, on which what the person says is always taken down as it was said.

import type { Dialogue } from '../dialogue.ts';
import type { DialogueStage } from '../record.ts';
import { textStage } from './text-stage.ts';
import { voiceWires, wireStage } from './wire-stage.ts';

export const exactStages: Readonly<Record<string, () => Promise<DialogueStage>>> = {
  text: textStage,
  ...Object.fromEntries(voiceWires.map((wire) => [wire, () => wireStage(wire)])),
};

/** The room is heard in the browser alone, and what is typed is typed into nothing. */
export function isPlayedOn(stage: string, { background, isSpokenOnly }: Dialogue): boolean {
  return background === undefined && !(stage === 'text' && isSpokenOnly === true);
}
