// `npm run soak`: one session talks for two hours of simulated time, in which 100,000 subagents do their work; half of
// them ask the user. The used memory must not grow. The bench prints heap, handles and the size of the journal after
// each tenth; heap or handles that have grown by a fifth since the second tenth are an error.
//
//   npm run soak -- --subagents 10000    a quick look

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createRuntime, TextSession } from '../src/index.ts';
import { sqliteJournal } from '../src/adapters/sqlite-journal/index.ts';
import { simulatedEnvironment } from '../src/testing/index.ts';
import { deskApp } from './lib/desk.ts';
import { heapBytes } from './lib/process.ts';
import { call, model, stepsDone, text } from './lib/workload.ts';

const { values } = parseArgs({ options: { subagents: { type: 'string' } } });
const SUBAGENTS = Number(values.subagents ?? 100_000);
const AT_A_TIME = 20;
const ROUND_MS = (2 * 3_600_000) / (SUBAGENTS / AT_A_TIME);
const MOST_GROWTH = 1.2;
/** The tolerance for handles, whose number varies. */
const MOST_HANDLES = 10;

let spawned = 0;
/** Every second subagent asks first. */
const subagents = model((prompt) =>
  stepsDone(prompt) === 0 && (spawned += 1) % 2 === 0
    ? [call('ask_user', { question: 'Shall it be first or second class?' })]
    : [text('It is booked.')],
);

const folder = mkdtempSync(join(tmpdir(), 'offstage-soak-'));
const path = join(folder, 'journal');
const environment = simulatedEnvironment();
const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
const session = new TextSession({
  runtime,
  sessionId: 'ses_soak',
  ...deskApp(subagents),
  limits: { maxTotalPerSession: Number.MAX_SAFE_INTEGER, stateRetentionMs: 60_000 },
});
let told = 0;
let answered = 0;
session.notifications.subscribe(({ kind, state }) => {
  if (kind === 'result' && state === 'delivered') told += 1;
});
session.questions.subscribe(({ requestId, state }) => {
  if (state !== 'open') return;
  answered += 1;
  void session.answer(requestId, { text: 'First class.' });
});

interface Left {
  readonly heap: number;
  readonly handles: number;
  readonly disk: number;
}

async function left(): Promise<Left> {
  return {
    heap: await heapBytes(),
    handles: process.getActiveResourcesInfo().length + environment.pendingTimers,
    disk: statSync(path).size,
  };
}

// The app reads the replies and watches the screen.
session.parts.subscribe();
session.store.subscribe(() => {});
await session.start();
let early: Left | null = null;
for (let round = 1; round <= SUBAGENTS / AT_A_TIME; round += 1) {
  await session.sendText(`errands ${AT_A_TIME}`);
  await environment.advance(ROUND_MS);
  const tenth = (10 * round * AT_A_TIME) / SUBAGENTS;
  if (!Number.isInteger(tenth)) continue;
  const now = await left();
  console.log(JSON.stringify({ subagents: round * AT_A_TIME, told, answered, ...now }));
  if (tenth === 2) early = now;
  for (const what of ['heap', 'handles'] as const)
    if (early && now[what] > MOST_GROWTH * early[what] + MOST_HANDLES)
      throw new Error(`Expected ${what} to stay what it was, ${early[what]}; it is ${now[what]}`);
}
if (told !== SUBAGENTS) throw new Error(`Expected ${SUBAGENTS} results to be told, got ${told}`);
await session.close();
journal.close();
rmSync(folder, { recursive: true });
