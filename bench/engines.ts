// `npm run bench:engines`: compares whole runs on Restate and Temporal with the same work on the engine's SDK: four
// model calls that take no time, a look-up, a question that the user answers at once, and a charge. Then it repeats
// the same work without the question. The bare program either knows that no question comes, or waits for one as
// Offstage's program does (`…_runs_watched`). Both programs alternate on the same server and in the same worker.
//
//   npm run bench:engines                    both engines
//   npm run bench:engines -- restate         one
//   npm run bench:engines -- --markdown      rows for the table in README.md, in place of JSON
//
// `npm run test:engines` installs the packages and servers. TEMPORAL_DEV_SERVER names the program `temporal`; without
// it the bench measures Temporal's test server, which keeps everything in memory.

import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nodeEnvironment } from '../src/adapters/node/index.ts';
import { createRuntime } from '../src/index.ts';
import { runSubagent } from '../src/entries/subagents.ts';
import type { LiveEngine } from '../test/engines/support/live-engine.ts';
import { median, percentile } from './lib/statistics.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { markdown: { type: 'boolean' }, runs: { type: 'string' } },
});

if (!existsSync(here('../test/engines/node_modules'))) {
  console.error('The packages of the engines are missing: npm run test:engines installs them.');
  process.exit(1);
}
const { ANSWER, rides, SILENT, TASK, WATCHED } = await import('../test/engines/bench/work.js');

/** Performs one run, from its beginning to its result. */
type Manner = (id: string, task: string, answering: () => string) => Promise<string>;

const RUNS = Number(values.runs ?? 60);
const ROUNDS = 3;
const WARM_ROUNDS = 3;
const AT_ONCE = 10;
const ALONE = Math.min(20, RUNS);

let runs = 0;
const wallNow = (): number => performance.timeOrigin + performance.now();

interface Seen {
  /** Runs per second, 10 at once. */
  readonly cycles: number[];
  readonly silent: number[];
  /** Milliseconds from the answer to the next model call, one run at a time. */
  readonly latency: number[];
  readonly bytes: number[];
}

async function perSecond(manner: Manner, task: string): Promise<number> {
  let left = RUNS;
  const begin = performance.now();
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await once(manner, task, () => ANSWER);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return (RUNS * 1_000) / (performance.now() - begin);
}

async function once(manner: Manner, task: string, answering: () => string): Promise<number> {
  runs += 1;
  const words = await manner(`bench-${process.pid}-${runs}`, task, answering);
  const [, begunAt] = /begunAt ([\d.]+)/u.exec(words) ?? [];
  if (begunAt === undefined) throw new Error(`The ride was not booked: ${words}`);
  return Number(begunAt);
}

async function latencies(manner: Manner): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < ALONE; at += 1) {
    let answeredAt = 0;
    const begunAt = await once(manner, TASK, () => {
      answeredAt = wallNow();
      return ANSWER;
    });
    all.push(begunAt - answeredAt);
  }
  return all;
}

async function bytesIn(directory: string | null): Promise<number> {
  if (directory === null) return NaN;
  const files = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizes = files
    .filter((file) => file.isFile())
    .map(async (file) => (await stat(join(file.parentPath, file.name)).catch(() => null))?.size);
  return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

interface Manners extends Readonly<Record<'offstage' | 'bare', Manner>> {
  /** The bare program that waits for a question while it waits for the result. */
  readonly watching: Manner;
}

async function measure(live: LiveEngine, manners: Manners) {
  const watched: number[] = [];
  const seen: Record<'offstage' | 'bare', Seen> = {
    offstage: { cycles: [], silent: [], latency: [], bytes: [] },
    bare: { cycles: [], silent: [], latency: [], bytes: [] },
  };
  const both = ['offstage', 'bare'] as const;
  // Warms up, because a worker lives for long: code is compiled and connections are opened.
  for (let round = 0; round < WARM_ROUNDS; round += 1)
    for (const who of both) await perSecond(manners[who], TASK);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const who of both) {
      const { cycles, silent, latency, bytes } = seen[who];
      const before = await bytesIn(live.directory);
      cycles.push(await perSecond(manners[who], TASK));
      bytes.push(((await bytesIn(live.directory)) - before) / RUNS);
      silent.push(await perSecond(manners[who], `${TASK} ${SILENT}`));
      latency.push(...(await latencies(manners[who])));
      if (who === 'bare') watched.push(await perSecond(manners.watching, `${TASK} ${SILENT}`));
    }
  return { ...seen, watched };
}

function print(
  engine: string,
  { offstage, bare, watched }: Awaited<ReturnType<typeof measure>>,
): void {
  const line = (figure: string, unit: string, value: number, floor: number, ratio: number) => {
    const [a, b, c] = [value, floor, ratio].map((one) => Number(one.toPrecision(3)));
    const verdict = `1.5: ${ratio <= 1.5 ? 'met' : 'missed'}`;
    if (Number.isNaN(value)) return;
    if (values.markdown)
      console.log(`| \`${engine}_${figure}\` | ${a} ${unit} | ${b} ${unit} | ${c} | ${verdict} |`);
    else
      console.log(
        JSON.stringify({ figure: `${engine}_${figure}`, value: a, unit, floor: b, ratio: c }),
      );
  };
  for (const [figure, theirs, others] of [
    ['runs', offstage.silent, bare.silent],
    ['runs_watched', offstage.silent, watched],
    ['question_cycles', offstage.cycles, bare.cycles],
  ] as const) {
    const [own, floor] = [median(theirs), median(others)];
    line(figure, '/s', own, floor, floor / own);
  }
  for (const share of [0.5, 0.99]) {
    const [own, floor] = [percentile(offstage.latency, share), percentile(bare.latency, share)];
    line(`answer_to_step_p${share * 100}`, 'ms', own, floor, own / floor);
  }
  const [own, floor] = [median(offstage.bytes), median(bare.bytes)];
  line('bytes_per_run', 'B', own, floor, own / floor);
}

const offstageOn = (live: LiveEngine): Manner => {
  const runtime = createRuntime({ environment: nodeEnvironment() });
  const engine = live.runs();
  return async (id, task, answering) => {
    const { result } = runSubagent(rides, task, {
      runtime,
      engine,
      id,
      onQuestion: () => ({ text: answering() }),
      onError: (error, where) => console.error(where, error),
    });
    const { status, text, error } = await result;
    if (status !== 'completed') throw new Error(`${status}: ${error?.message}`);
    return text;
  };
};

async function onRestate(): Promise<void> {
  const { openRestate } = await import('../test/engines/support/restate.ts');
  const live = await openRestate('rides', undefined, {
    worker: here('../test/engines/bench/restate-worker.js'),
  });
  const ask = async (path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${live.env['RESTATE_INGRESS']}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const words = await response.text();
    if (!response.ok) throw new Error(`${path}: ${words}`);
    return words === '' ? null : JSON.parse(words);
  };
  const bare: Manner = async (id, task, answering) => {
    await ask(`/bare_rides/${id}/run/send`, task);
    if (!task.includes(SILENT)) {
      await ask(`/bare_rides/${id}/question`, {});
      await ask(`/bare_rides/${id}/answer`, answering());
    }
    return String(await ask(`/restate/workflow/bare_rides/${id}/attach`));
  };
  const watching: Manner = async (id, task) => {
    await ask(`/bare_rides/${id}/run/send`, `${task} ${WATCHED}`);
    const question = ask(`/bare_rides/${id}/question`, {});
    const words = await ask(`/restate/workflow/bare_rides/${id}/attach`);
    await question;
    return String(words);
  };
  try {
    print('restate', await measure(live, { offstage: offstageOn(live), bare, watching }));
  } finally {
    await live.close();
  }
}

async function onTemporal(): Promise<void> {
  const { missingServer, openTemporal } = await import('../test/engines/support/temporal.ts');
  const missing = missingServer();
  if (missing !== null) throw new Error(`There is no Temporal server: ${missing}`);
  const live = await openTemporal('rides', undefined, {
    worker: here('../test/engines/bench/temporal-worker.js'),
  });
  const bare: Manner = async (id, task, answering) => {
    const options = { workflowId: id, taskQueue: 'offstage-jobs', args: [task] };
    await live.client.workflow.start('bareRides', options);
    const handle = live.client.workflow.getHandle(id);
    if (!task.includes(SILENT)) {
      await handle.executeUpdate('question', { args: [] });
      await handle.executeUpdate('answer', { args: [answering()] });
    }
    return String(await handle.result());
  };
  const watching: Manner = async (id, task) => {
    const options = {
      workflowId: id,
      taskQueue: 'offstage-jobs',
      args: [`${task} ${WATCHED}`],
    };
    await live.client.workflow.start('bareRides', options);
    const handle = live.client.workflow.getHandle(id);
    const question = handle.executeUpdate('question', { args: [] });
    const words = await handle.result();
    await question;
    return String(words);
  };
  try {
    print('temporal', await measure(live, { offstage: offstageOn(live), bare, watching }));
  } finally {
    await live.close();
  }
}

const engines = { restate: onRestate, temporal: onTemporal };
for (const name of positionals.length > 0 ? positionals : Object.keys(engines)) {
  const run = engines[name as keyof typeof engines];
  if (!run) throw new Error(`Expected restate or temporal, got ${name}`);
  await run();
}
// Open connections must not keep the process alive.
process.exit(0);
