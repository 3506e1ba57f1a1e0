// `npm run dialogues`: plays every dialogue on every stage and prints a table.
//
//   --stage NAME    only this stage: text, openai-realtime, openai-live, gemini-live
//   --only WORDS    only the dialogues whose names contain these words
//   --write         renews the table of what is known to go wrong

import { parseArgs } from 'node:util';
import { dialogues } from './corpus/index.ts';
import { judgeDialogue, type Fault, type Verdict } from './judge.ts';
import { knownFaults, writeKnown } from './known.ts';
import { playDialogue } from './play.ts';
import { exactStages, isPlayedOn } from './stages/index.ts';
import { reportRow, tableOf, type Run } from './table.ts';

const { values } = parseArgs({
  options: {
    stage: { type: 'string' },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});

const chosen = dialogues.filter(({ name }) => name.includes(values.only));
const runs: Run[] = [];
const note = (run: Run): void => {
  runs.push(run);
  console.log(reportRow(run));
};

for (const [stage, open] of Object.entries(exactStages)) {
  if (values.stage !== undefined && values.stage !== stage) continue;
  for (const dialogue of chosen) {
    if (!isPlayedOn(stage, dialogue)) continue;
    const on = await open();
    const verdict = judgeDialogue(dialogue, await playDialogue(on, dialogue));
    await on.close();
    note({ dialogue, stage, verdict, isKnown: isKnown(dialogue.name, stage, verdict) });
  }
}
if (values.write)
  writeKnown(
    runs.map(({ dialogue: { name }, stage, verdict }) => ({
      name,
      stage,
      faults: kindsOf(verdict),
    })),
  );

console.log(tableOf(runs));
process.exitCode = runs.some((run) => !run.isKnown) ? 1 : 0;

function isKnown(name: string, stage: string, verdict: Verdict): boolean {
  return kindsOf(verdict).join() === knownFaults(name, stage).toSorted().join();
}

function kindsOf({ faults }: Verdict): readonly Fault[] {
  return [...new Set(faults.map(({ fault }) => fault))].toSorted();
}
