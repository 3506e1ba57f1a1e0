// Traces three paths through a voice session: the files in `src` that each path enters, according to V8's coverage.
// Prints a table with the limit of each path. `--files` lists the files, and `--check` fails if a path exceeds its
// limit. docs/architecture.md contains the table. Simulated time makes the numbers repeatable.

import { Session } from 'node:inspector/promises';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { calls, say, steps } from '../test/support/subagent-runs.ts';
import { voiceTalk } from '../test/support/voice-talk.ts';

const src = fileURLToPath(new URL('../src/', import.meta.url));
const inspector = new Session();
inspector.connect();
await inspector.post('Profiler.enable');
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/**
 * Returns the files in `src` that have been entered since the last call, with the number of their functions that were
 * called.
 */
async function entered(): Promise<Map<string, number>> {
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  const files = new Map<string, number>();
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue;
    const path = fileURLToPath(url);
    if (!path.startsWith(src) || path.startsWith(`${src}testing${sep}`)) continue;
    // A function without a name at the start of a file is the module itself.
    const called = functions.filter(
      ({ functionName, ranges: [range] }) =>
        (functionName !== '' || range?.startOffset !== 0) && (range?.count ?? 0) > 0,
    );
    if (called.length > 0) files.set(path.slice(src.length), called.length);
  }
  return files;
}

const asking = steps(calls(['ask_user', { question: 'Which class?' }]), say('Booked.'));
const talk = voiceTalk({
  subagents: {
    ride: { script: asking, config: { interactive: true } },
    stay: { script: asking, config: { interactive: true } },
  },
});
await talk.start();
await talk.use('ride');
await talk.pause();
await talk.speak(talk.asked() ?? '');

interface Way {
  readonly name: string;
  /** The maximum number of files that the path may enter; this number only goes down. */
  readonly limit: number;
  readonly goal: number;
  before?(): Promise<void>;
  go(): unknown;
}

const ways: readonly Way[] = [
  {
    name: 'a spoken answer, until its result is pending',
    limit: 120,
    goal: 45,
    go: () => talk.say('economy'),
  },
  {
    name: 'the cancellation of a subagent that is asking a question',
    limit: 88,
    goal: 25,
    async before() {
      await talk.use('stay');
      await talk.pause();
    },
    go() {
      const asks = talk.state().subagents.find(({ endedAt }) => endedAt === null);
      if (!asks || !talk.session.subagents.cancel(asks.id)) throw new Error('nothing to cancel');
    },
  },
  { name: 'a client that leaves', limit: 49, goal: 12, go: () => talk.leave() },
];
const rows: string[] = [];
for (const { name, limit, goal, before, go } of ways) {
  await before?.();
  await entered();
  await go();
  await talk.environment.settle();
  const files = await entered();
  const functions = [...files.values()].reduce((sum, count) => sum + count, 0);
  rows.push(`| ${name} | ${files.size} | ${functions} | ${limit} | ${goal} |`);
  if (files.size > limit && process.argv.includes('--check')) process.exitCode = 1;
  if (process.argv.includes('--files'))
    for (const [file, count] of files) rows.push(`  ${file.replaceAll(sep, '/')} ${count}`);
}
const result = talk.state().deliveries.find(({ kind }) => kind === 'result');
if (!result) throw new Error('the answer led to no result');
console.log(
  ['| way | files | functions | limit of files | goal |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  ),
);
await talk.close();
inspector.disconnect();
