// All conversations that readers answer.

import type { Conversation } from '../play.ts';
import { agents } from './agents.ts';
import { chat } from './chat.ts';
import { questions } from './questions.ts';
import { rides } from './rides.ts';
import { time } from './time.ts';
import { wordsMeanwhile } from './words-meanwhile.ts';
import { steering, tasks } from './work.ts';

export const conversations: readonly Conversation[] = [
  ...rides,
  ...questions,
  ...tasks,
  ...steering,
  ...wordsMeanwhile,
  ...agents,
  ...chat,
  ...time,
];
