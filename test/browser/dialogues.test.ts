// Some of the dialogues in a real browser, with real speech and in a room; `npm run dialogues:browser` plays all of
// them. The recogniser may mishear, and a machine may be slow. Even then, no delivery may be lost, repeated or left
// unanswered, and what was recognised correctly must take effect.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialogues } from '../dialogues/corpus/index.ts';
import { judgeDialogue, type Fault } from '../dialogues/judge.ts';
import { playDialogue } from '../dialogues/play.ts';
import { browserStages, type BrowserStages } from './support/dialogue-stage.ts';

const names = ['a ride, asked and answered', 'a listening word into a result'];
/** Faults of the session that do not depend on what was recognised. */
const always: ReadonlySet<Fault> = new Set(['told twice', 'lost', 'error']);

let stages: BrowserStages;
beforeAll(async () => {
  stages = await browserStages();
});
afterAll(() => stages.close());

test.each(names)('%s', async (name) => {
  const dialogue = dialogues.find((each) => each.name === name);
  if (!dialogue) throw new Error(`Expected a dialogue with the name ${JSON.stringify(name)}`);
  const stage = await stages.open(dialogue);
  const record = await playDialogue(stage, dialogue);
  await stage.close();
  const { faults, isHeardRight } = judgeDialogue(dialogue, record);
  const ours = faults.filter(
    ({ fault, why }) =>
      always.has(fault) ||
      // The duration depends on this machine.
      (fault === 'dead air' ? why.startsWith('nothing') : isHeardRight),
  );
  expect(ours).toEqual([]);
});
