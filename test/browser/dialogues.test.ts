// Some of the dialogues in a real browser, with real speech and a room; `npm run dialogues:browser` plays all. The
// recogniser may mishear, and a machine may be slow. In any case no delivery may be lost, repeated or left
// unanswered, and correctly recognised words must take effect.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialogues } from '../dialogues/corpus/index.ts';
import { judgeDialogue, type Fault } from '../dialogues/judge.ts';
import { playDialogue } from '../dialogues/play.ts';
import { browserStages, type BrowserStages } from './support/dialogue-stage.ts';

const names = ['a ride, asked and answered', 'a listening word into a result'];
/** Faults of the session, independent of the recognised words. */
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
