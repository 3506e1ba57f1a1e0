// A turn of a voice model, for tests of the turn's parts.

import { createHost, type Host } from '../../src/actors/runtime/host.ts';
import { memoryJournal, type Environment } from '../../src/index.ts';
import type { TurnInput } from '../../src/machines/index.ts';

/** Creates a session that only has a host. */
export const sessionIn = (environment: Environment): { id: string; host: Host } => ({
  id: 'ses',
  host: createHost({ environment, journal: memoryJournal() }),
});

/** Returns the input of a turn whose model either is asked for each reply or answers without a request. */
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
