// `npm run dialogues:rooms`: plays the dialogues with real speech in simulated time, in rooms with noise, an echo or a
// television. Needs the built-in voice.
//
//   --only WORDS    only the dialogues whose names contain these words
//   --kind KIND     only the dialogues of this kind
//   --voice NAME    with this voice of Flite: rms, awb, kal16, kal
//   --room NAME     all of them in this room: noise, echo, television
//   --repeats N     each so often, with the sound shifted a little
//   --trace         prints the events of those that go wrong

import { parseArgs } from 'node:util';
import { dialogues } from './corpus/index.ts';
import { backgrounds } from './dialogue.ts';
import { judgeDialogue } from './judge.ts';
import { playDialogue } from './play.ts';
import { roomStages } from './stages/room-stage.ts';
import { reportRow, tableOf, type Run } from './table.ts';

/** Not a multiple of a detector window or of a frame. */
const SHIFT_MS = 37;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    kind: { type: 'string' },
    voice: { type: 'string', default: 'rms' },
    room: { type: 'string' },
    repeats: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const room = backgrounds.find((each) => each === values.room);
if (values.room !== undefined && room === undefined)
  throw new Error(`Expected --room to be one of ${backgrounds.join(', ')}, got ${values.room}`);
const runs: Run[] = [];
for (let repeat = 0; repeat < Number(values.repeats); repeat += 1) {
  const stages = await roomStages({ voice: values.voice, delayMs: SHIFT_MS * repeat });
  for (const dialogue of dialogues) {
    if (!dialogue.name.includes(values.only)) continue;
    if (values.kind !== undefined && dialogue.kind !== values.kind) continue;
    const background = room ?? dialogue.background;
    const stage = await stages.open({ ...dialogue, ...(background && { background }) });
    const record = await playDialogue(stage, dialogue);
    const verdict = judgeDialogue(dialogue, record);
    await stage.close();
    const isRight = verdict.faults.length === 0;
    // The recogniser may mishear, so a dialogue counts only if every line was recognised correctly.
    const run = { dialogue, stage: 'room', verdict, isKnown: isRight || !verdict.isHeardRight };
    runs.push(run);
    console.log(reportRow(run));
    if (isRight && !values.trace) continue;
    for (const { text, heard } of record.utterances)
      console.log(`    “${text}” ${heard === null ? 'was not heard' : `was heard as “${heard}”`}`);
    if (!values.trace) continue;
    for (const line of stage.story) console.log(`      ${line}`);
  }
  await stages.close();
}
console.log(tableOf(runs));
process.exitCode = runs.some(({ isKnown }) => !isKnown) ? 1 : 0;
