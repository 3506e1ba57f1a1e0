// All dialogues, by kind.

import type { Dialogue } from '../dialogue.ts';
import { answers } from './answers.ts';
import { heldOut } from './held-out.ts';
import { interruptions } from './interruptions.ts';
import { repairs } from './repairs.ts';
import { requests } from './requests.ts';
import { rooms } from './rooms.ts';
import { steering } from './steering.ts';
import { turnsAside } from './turns-aside.ts';

export const dialogues: readonly Dialogue[] = [
  ...requests,
  ...answers,
  ...repairs,
  ...turnsAside,
  ...interruptions,
  ...rooms,
  ...steering,
  ...heldOut,
];
