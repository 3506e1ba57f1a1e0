// A turn of a voice model, as a test of one of its parts needs it.

import type { TurnInput } from '../../src/machines/index.ts';

/** The input of a turn whose model is asked for each reply, or answers by itself. */
export const turnOf = ({ answersWords }: { answersWords: boolean }): TurnInput => ({
  keepsOffers: false,
  whileToolWorks: 'keeps_floor',
  answersWords,
  answersResults: answersWords,
  holdsFloorMs: 2000,
  settleTimeoutMs: 3000,
  replyTimeoutMs: 5000,
  doubtMs: 1600,
  falseInterruptionMs: 2000,
});
