// The stages in simulated time, on which every utterance is transcribed exactly.

import type { Dialogue } from '../dialogue.ts';
import type { DialogueStage } from '../record.ts';
import { textStage } from './text-stage.ts';
import { voiceWires, wireStage } from './wire-stage.ts';

export const exactStages: Readonly<Record<string, () => Promise<DialogueStage>>> = {
  text: textStage,
  ...Object.fromEntries(voiceWires.map((wire) => [wire, () => wireStage(wire)])),
};

/** Returns whether a stage plays a dialogue: these stages have no room audio, and the text stage has no speech. */
export function isPlayedOn(stage: string, { background, isSpokenOnly }: Dialogue): boolean {
  return background === undefined && !(stage === 'text' && isSpokenOnly === true);
}
