// The cost of observers for a process whose n text sessions do one errand after another (the user asks, a subagent
// asks back, is answered, its result is told), as a share of the CPU of this work. The sessions work first. Then, in
// the same process, the observers get the same entries: a page of the inspector that follows one session and polls as
// often as usual, and a traced journal without and with a provider. If it were measured during the work, the cost
// would disappear: the work differs by a fifth between two periods.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createRuntime, memoryJournal, type Journal } from '../../src/index.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { tracedJournal } from '../../src/adapters/otel/index.ts';
import { inspector } from '../../src/inspector/index.ts';
import { askingModel, openDesk, type Desk } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { collectGarbage } from '../lib/process.ts';
import { median } from '../lib/statistics.ts';

const ROUNDS = 3;
const ERRANDS = 15;
/** The pause between two errands of a session: less than models and users would take. */
const PAUSE_MS = 150;
/** The value of `POLL_MS` in the page's script. */
const POLL_MS = 700;
const TOKEN = 'a token of the bench';

const journalOf = (): Journal => memoryJournal({ keep: Infinity });

/** CPU of this thread, in microseconds. */
async function cpuOf(work: () => void | Promise<void>): Promise<number> {
  await collectGarbage();
  const begun = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(begun);
  return user + system;
}

async function errands({ session }: Desk, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) {
    const asked = Promise.withResolvers<string>();
    const told = Promise.withResolvers<void>();
    const questions = session.questions.subscribe(({ requestId, state }) => {
      if (state === 'open') asked.resolve(requestId);
    });
    const notices = session.notifications.subscribe(({ kind, state }) => {
      if (kind === 'result' && state === 'delivered') told.resolve();
    });
    await session.sendText('errands 1');
    const requestId = await asked.promise;
    session.questionShown(requestId);
    await session.answer(requestId, { optionId: 'first' });
    await told.promise;
    questions.unsubscribe();
    notices.unsubscribe();
    await sleep(PAUSE_MS);
  }
}

interface Worked {
  readonly cpu: number;
  readonly entries: readonly JournalEntry[];
}

async function worked(n: number): Promise<Worked> {
  const journal = journalOf();
  const runtime = createRuntime({ environment: nodeEnvironment(), journal });
  const numbers = Array.from({ length: n }, (_, number) => number);
  const desks = await Promise.all(
    numbers.map((number) =>
      openDesk(
        runtime,
        askingModel(() => {}),
        100,
        `ses_${number}`,
      ),
    ),
  );
  const cpu = await cpuOf(async () => {
    await Promise.all(desks.map((desk) => errands(desk, ERRANDS)));
  });
  const entries = await journal.read();
  await Promise.all(desks.map(({ session }) => session.close()));
  return { cpu, entries };
}

/** Follows the first session like the page: all polls in the time that the work took. */
async function following(entries: readonly JournalEntry[]): Promise<number> {
  const journal = journalOf();
  // The polls follow one another here; skipping the clock ahead gives the inspector its pauses, because it reads at
  // most a twentieth of the time.
  let paused = 0;
  const environment = { ...nodeEnvironment(), clock: { now: () => Date.now() + paused } };
  const http = createServer(inspector({ journal, token: TOKEN, environment }).handle);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  const worker = new Worker(new URL('../page-worker.ts', import.meta.url), {
    workerData: { base: `http://127.0.0.1:${port}/inspect`, token: TOKEN, session: 'ses_0' },
  });
  await once(worker, 'online');
  const followed = entries.filter(({ scope }) => scope === 'ses_0');
  const firstAt = followed[0]?.at ?? 0;
  const polls = Map.groupBy(followed, ({ at }) => Math.floor((at - firstAt) / POLL_MS));
  const last = Math.max(...polls.keys());
  let shown = 0;
  const cpu = await cpuOf(async () => {
    // On a busy machine a slow reading delays the next one: the page polls until it has all entries.
    for (let poll = 0; poll <= last || (shown < followed.length && poll < last + 100); poll += 1) {
      for (const entry of polls.get(poll) ?? []) await journal.append(entry);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of a thread has no origin
      worker.postMessage('poll');
      [shown] = (await once(worker, 'message')) as [number];
      paused += POLL_MS;
    }
  });
  await worker.terminate();
  http.closeAllConnections();
  http.close();
  if (shown < followed.length)
    throw new Error(`The page has ${shown} of ${followed.length} entries`);
  return cpu;
}

const appending = (entries: readonly JournalEntry[], journal: Journal): Promise<number> =>
  cpuOf(async () => {
    for (const entry of entries) await journal.append(entry);
  });

/** Without the app's exporter: this one drops its spans. */
async function tracing(entries: readonly JournalEntry[]): Promise<number> {
  let spans = 0;
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [
      new BatchSpanProcessor(
        {
          export(some, done) {
            spans += some.length;
            done({ code: 0 });
          },
          shutdown: () => Promise.resolve(),
        },
        { maxQueueSize: 1_000_000 },
      ),
    ],
  });
  const appended = await appending(entries, tracedJournal(journalOf(), { tracerProvider }));
  const flushed = await cpuOf(() => tracerProvider.forceFlush());
  await tracerProvider.shutdown();
  if (spans === 0) throw new Error('Expected spans, got none');
  return appended + flushed;
}

async function offstage(n: number): Promise<Numbers> {
  const rounds: Numbers[] = [];
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const { cpu, entries } = await worked(n);
    const plain = await appending(entries, journalOf());
    const unheard = await appending(entries, tracedJournal(journalOf()));
    const traced = await tracing(entries);
    const followed = await following(entries);
    const percent = (part: number): number => (100 * part) / cpu;
    const numbers = {
      cpu: cpu / (n * ERRANDS),
      followed: percent(followed),
      unheard: percent(unheard - plain),
      unheardAppend: unheard / plain,
      traced: percent(traced - plain),
    };
    if (round > 0) rounds.push(numbers);
  }
  const of = (name: string): number => median(rounds.map((numbers) => numbers[name] ?? NaN));
  return {
    cpu: of('cpu'),
    followed: of('followed'),
    unheard: of('unheard'),
    unheardAppend: of('unheardAppend'),
    traced: of('traced'),
  };
}

export const inspected: Measurement = {
  contenders: { offstage },
  sizes: [10, 50],
  repetitions: 3,
  lines: [
    { figure: 'inspected_errand', unit: 'us', number: 'cpu', floor: null, goal: null },
    {
      figure: 'inspected_followed',
      unit: '%',
      number: 'followed',
      floor: null,
      goal: { value: 5 },
    },
    { figure: 'inspected_unheard', unit: '%', number: 'unheard', floor: null, goal: { value: 1 } },
    {
      figure: 'inspected_unheard_append',
      unit: 'x',
      number: 'unheardAppend',
      floor: null,
      goal: null,
    },
    { figure: 'inspected_traced', unit: '%', number: 'traced', floor: null, goal: null },
  ],
};
