// `npm run timers`: each session of a pool has a reminder, and all sessions sleep on SQLite. The used memory must not
// grow with them: the bench prints heap and bytes on disk after each tenth. Then the simulated clock advances to the
// reminders of some sessions. The pool must wake exactly the session that is due, and it must say its reminder once. A
// heap that has grown by a fifth since the first tenth, or another session that wakes, is an error.
//
//   npm run timers -- --sessions 1000    a look

import { deepEqual } from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createRuntime, TextSession } from '../src/index.ts';
import { createSessionPool } from '../src/entries/journal.ts';
import { sqliteJournal } from '../src/adapters/sqlite-journal/index.ts';
import { simulatedEnvironment } from '../src/testing/index.ts';
import { askingModel, deskApp } from './lib/desk.ts';
import { heapBytes } from './lib/process.ts';

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '10000' } } });
const SESSIONS = Number(values.sessions);
if (!Number.isInteger(SESSIONS / 10)) throw new Error('Expected ten to divide --sessions');
const FIRST_MS = 86_400_000;
const APART_MS = 60_000;
const WOKEN = 20;
const MOST_GROWTH = 1.2;

const folder = mkdtempSync(join(tmpdir(), 'offstage-timers-'));
const path = join(folder, 'journal');
const environment = simulatedEnvironment();
const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
const app = deskApp(askingModel(() => {}));
const idOf = (number: number): string => `ses_${number}`;
const startAt = environment.clock.now();
const dueAt = (number: number): number => startAt + FIRST_MS + number * APART_MS;

let opened: string[] = [];
const due = new Map<string, number>();
const pool = createSessionPool({
  runtime,
  lookMs: Infinity,
  idleMs: 1000,
  onError(error) {
    throw error;
  },
  open(sessionId) {
    opened.push(sessionId);
    const session = new TextSession({ runtime, sessionId, ...app });
    session.events.subscribe((event) => {
      if (event.type === 'schedule.changed' && event.schedule.state === 'done')
        due.set(sessionId, (due.get(sessionId) ?? 0) + 1);
    });
    return session;
  },
});
await pool.start();

let early: number | null = null;
for (let number = 0; number < SESSIONS; number += 1) {
  await pool.use(idOf(number), (session) =>
    session.schedule({ key: 'tea', at: dueAt(number), say: 'The tea is ready.' }),
  );
  const asleep = number + 1;
  const isTenth = Number.isInteger((10 * asleep) / SESSIONS);
  if (isTenth || asleep % 50 === 0) await environment.advance(2000);
  if (!isTenth) continue;
  deepEqual(pool.awakeCount, 0);
  const heap = await heapBytes();
  console.log(JSON.stringify({ asleep, heap, disk: statSync(path).size / asleep }));
  early ??= heap;
  if (heap > MOST_GROWTH * early)
    throw new Error(`Expected the heap to stay what it was, ${early}; it is ${heap}`);
}

opened = [];
for (let number = 0; number < WOKEN; number += 1) {
  await environment.advance(dueAt(number) + APART_MS / 2 - environment.clock.now());
  deepEqual(opened, [idOf(number)]);
  opened = [];
}
deepEqual(
  [...due.values()],
  Array.from({ length: WOKEN }, () => 1),
);
console.log(
  JSON.stringify({
    woken: WOKEN,
    timers: environment.pendingTimers + environment.backgroundTimers,
  }),
);
await pool.close();
journal.close();
rmSync(folder, { recursive: true });
