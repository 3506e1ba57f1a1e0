// `npm run waiting`: a million subagents wait for the user, a hundred in each session, and all sessions hibernate, on
// SQLite. The used memory must not grow with them: the bench prints heap and bytes on disk after each tenth. Then it
// wakes some sessions and answers one question of each. A heap that has grown by a fifth since the first tenth is an
// error.
//
//   npm run waiting -- --subagents 100000    a look
//   npm run waiting -- --each 1              a session for each: a longer run

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createRuntime } from '../src/index.ts';
import { nodeEnvironment } from '../src/adapters/node/index.ts';
import { sqliteJournal } from '../src/adapters/sqlite-journal/index.ts';
import { askingModel, openDesk } from './lib/desk.ts';
import { heapBytes, until } from './lib/process.ts';
import { p50p99 } from './lib/statistics.ts';

const { values } = parseArgs({
  options: { subagents: { type: 'string' }, each: { type: 'string' } },
});
const EACH = Number(values.each ?? 100);
const SESSIONS = Number(values.subagents ?? 1_000_000) / EACH;
if (!Number.isInteger(SESSIONS / 10))
  throw new Error(
    `Expected ten times --each (${EACH}) to divide --subagents, got ${SESSIONS * EACH}`,
  );
const WOKEN = 500;
const MOST_GROWTH = 1.2;

const folder = mkdtempSync(join(tmpdir(), 'offstage-waiting-'));
const path = join(folder, 'journal');
const environment = nodeEnvironment();
const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
const model = askingModel(() => {});
const open = (number: number) => openDesk(runtime, model, EACH, `ses_${number}`);

let early: number | null = null;
const begin = performance.now();
for (let number = 0; number < SESSIONS; number += 1) {
  const desk = await open(number);
  await desk.start(EACH);
  await until(() => desk.open() !== undefined && desk.session.isIdle, 'an idle session');
  if (!(await desk.session.hibernate()))
    throw new Error(`Expected ses_${number} to be idle until it had left`);
  const asleep = number + 1;
  if (!Number.isInteger((10 * asleep) / SESSIONS)) continue;
  const heap = await heapBytes();
  const waiting = asleep * EACH;
  const seconds = Math.round((performance.now() - begin) / 1000);
  console.log(JSON.stringify({ waiting, seconds, heap, disk: statSync(path).size / waiting }));
  early ??= heap;
  if (heap > MOST_GROWTH * early)
    throw new Error(`Expected the heap to stay what it was, ${early}; it is ${heap}`);
}

const times: number[] = [];
for (let woken = 0; woken < WOKEN; woken += 1) {
  const from = performance.now();
  const desk = await open((woken * 7919) % SESSIONS);
  times.push(performance.now() - from);
  const question = desk.open();
  if (!question) throw new Error('Expected a question to be open');
  const told = desk.told();
  await desk.session.answer(question.requestId, { text: 'First class.' });
  await until(() => desk.told() > told && desk.session.isIdle, 'an answer that leads to a result');
  await desk.session.hibernate();
}
console.log(JSON.stringify({ woken: WOKEN, of: EACH, milliseconds: p50p99(times) }));
journal.close();
rmSync(folder, { recursive: true });
