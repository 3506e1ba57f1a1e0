// A turn of a voice model, as a test of one of its parts needs it.

import { createHost, type Host } from '../../src/actors/runtime/host.ts';
import { memoryJournal, type Environment } from '../../src/index.ts';
import type { TurnInput } from '../../src/machines/index.ts';

/** A session without anything but its host. */
export const sessionIn = (environment: Environment): { id: string; host: Host } => ({
  id: 'ses',
  host: createHost({ environment, journal: memoryJournal() }),
});

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
