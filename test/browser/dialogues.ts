// `npm run dialogues:browser`: plays the dialogues in a real browser, in real time and with real speech, which takes an
// hour for all of them. Needs the built-in voice and `CHROMIUM_PATH`. The audio of failed dialogues is saved in
// test/dialogues/recordings.
//
//   --only WORDS    only the dialogues whose names contain these words
//   --voice NAME    with this voice of Flite: rms, awb, kal16, kal
//   --repeats N     each so often

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dialogues } from '../dialogues/corpus/index.ts';
import { judgeDialogue } from '../dialogues/judge.ts';
import { playDialogue } from '../dialogues/play.ts';
import { reportRow, tableOf, type Run } from '../dialogues/table.ts';
import { browserStages } from './support/dialogue-stage.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    voice: { type: 'string', default: 'rms' },
    repeats: { type: 'string', default: '1' },
  },
});

const recordings = join(import.meta.dirname, '../dialogues/recordings');
const stages = await browserStages({ voice: values.voice, recordings });
const runs: Run[] = [];
for (let repeat = 0; repeat < Number(values.repeats); repeat += 1)
  for (const dialogue of dialogues) {
    if (!dialogue.name.includes(values.only)) continue;
    const stage = await stages.open(dialogue);
    const verdict = judgeDialogue(dialogue, await playDialogue(stage, dialogue));
    if (verdict.faults.length > 0) await stage.keep?.();
    await stage.close();
    // The recogniser may mishear, so a dialogue counts only if every line was recognised correctly.
    const isKnown = verdict.faults.length === 0 || !verdict.isHeardRight;
    const run = { dialogue, stage: 'browser', verdict, isKnown };
    runs.push(run);
    console.log(reportRow(run));
  }
await stages.close();
console.log(tableOf(runs));
process.exitCode = runs.some(({ isKnown }) => !isKnown) ? 1 : 0;
