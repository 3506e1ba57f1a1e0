// The inspector in a session of n entries, whose subagents worked one after another: the time of a jump near the end,
// from the nearest checkpoint. The floor folds the same entries from the first one.

import { createRuntime, memoryJournal, type Journal } from '../../src/index.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { Replay, quarantineReasons } from '../../src/actors/replay/replay-session.ts';
import { redactNothing } from '../../src/adapters/inspect/shown-value.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { InspectedSession } from '../../src/inspector/inspected-session.ts';
import { askingModel, openDesk } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';

const SESSION = 'ses_desk';

/** Creates a session with one errand, and repeats the errand under other ids. */
async function entriesOf(n: number): Promise<readonly JournalEntry[]> {
  const journal = memoryJournal();
  const environment = nodeEnvironment();
  const desk = await openDesk(
    createRuntime({ environment, journal }),
    askingModel(() => {}),
    1,
    SESSION,
  );
  await desk.start(1);
  const { session } = desk;
  const [question] = session.store.getSnapshot().context.questions;
  const { requestId = '', subagentId = '' } = question ?? {};
  session.questionShown(requestId);
  await session.answer(requestId, { optionId: 'first' });
  await session.idle();
  const lived = journal.read({ scope: SESSION });
  await session.close();
  const errand = lived.filter(({ unit }) => unit === subagentId);
  const text = JSON.stringify(errand);
  const more = Array.from(
    { length: Math.ceil((n - lived.length) / errand.length) },
    (_, index) => JSON.parse(text.replaceAll(subagentId, `sub_again_${index}`)) as JournalEntry[],
  );
  return [...lived, ...more.flat()].slice(0, n);
}

async function offstage(n: number): Promise<Numbers> {
  const entries = await entriesOf(n);
  const journal: Journal = { append() {}, read: () => entries };
  const inspected = new InspectedSession(journal, SESSION, redactNothing, nodeEnvironment());
  const readFrom = performance.now();
  await inspected.refresh();
  const from = performance.now();
  if (!inspected.subjectAt(n - 1, 'session', 'ann')) throw new Error(`Expected an entry ${n - 1}`);
  return { ms: performance.now() - from, readMs: from - readFrom };
}

async function floor(n: number): Promise<Numbers> {
  const entries = await entriesOf(n);
  const from = performance.now();
  const replay = new Replay(quarantineReasons(entries));
  for (const entry of entries.slice(0, n - 1)) replay.take(entry);
  const ms = performance.now() - from;
  return { ms, readMs: ms };
}

export const timeTravel: Measurement = {
  contenders: { offstage, floor },
  sizes: [10_000, 100_000],
  repetitions: 3,
  lines: [
    { figure: 'time_travel', unit: 'ms', number: 'ms', floor: 'floor', goal: { ratio: 0.5 } },
    { figure: 'time_travel_read', unit: 'ms', number: 'readMs', floor: 'floor', goal: null },
  ],
};
