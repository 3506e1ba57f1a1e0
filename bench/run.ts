// `npm run bench`: measures, and prints one JSON line for each figure.
//
// Each repetition is a new process, and the contenders alternate, so that neither a warm cache nor a busy minute of
// the machine favours one. A figure is the median of the repetitions.
//
//   npm run bench                        all of it, some fifty minutes
//   npm run bench -- --only run_cpu      one measurement (may be given more than once)
//   npm run bench -- --repetitions 1     a quick look
//   npm run bench -- --markdown          rows for the table in README.md, in place of JSON

import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import type { Contender, Line, Measurement, Numbers } from './lib/measurement.ts';
import { median } from './lib/statistics.ts';
import { measurements } from './measurements/index.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    repetitions: { type: 'string' },
    markdown: { type: 'boolean' },
  },
});

const execute = promisify(execFile);
const child = new URL('child.ts', import.meta.url).pathname;
const LONGEST_MS = 300_000;

async function measureOnce(name: string, contender: Contender, n: number): Promise<Numbers> {
  const options = measurements[name]?.nodeOptions ?? [];
  const { stdout } = await execute(
    process.execPath,
    ['--expose-gc', ...options, child, name, contender, String(n)],
    { timeout: LONGEST_MS },
  );
  return JSON.parse(stdout) as Numbers;
}

type Results = Partial<Record<Contender, Numbers[]>>;

async function measure(name: string, measurement: Measurement, n: number): Promise<Results> {
  const contenders = Object.keys(measurement.contenders) as Contender[];
  const repetitions = Number(values.repetitions ?? measurement.repetitions);
  const results: Results = {};
  for (let repetition = 0; repetition < repetitions; repetition += 1)
    for (const contender of contenders) {
      console.error(`${name} n=${n}: ${contender}, ${repetition + 1} of ${repetitions}`);
      (results[contender] ??= []).push(await measureOnce(name, contender, n));
    }
  return results;
}

function print({ figure, unit, number, floor, goal }: Line, n: number, results: Results): void {
  const medianOf = (contender: Contender | null): number | null => {
    const numbers = contender && results[contender]?.map((one) => one[number] ?? NaN);
    return numbers ? rounded(median(numbers)) : null;
  };
  const value = medianOf('offstage') ?? NaN;
  const base = medianOf(floor);
  const ratio = base === null ? null : rounded(value / base);
  const verdict = goal ? verdictOf(goal, unit, value, base ?? NaN) : '';
  const cells = [`\`${figure}\``, n, `${value} ${unit}`, base ?? '', ratio ?? '', verdict];
  if (values.markdown) console.log(`| ${cells.join(' | ')} |`);
  else console.log(JSON.stringify({ figure, n, value, unit, floor: base, ratio }));
  if (verdict.endsWith('missed')) console.error(`${figure} n=${n} misses its goal: ${verdict}`);
}

/** Returns the verdict of the column `goal` of README.md. */
function verdictOf(goal: NonNullable<Line['goal']>, unit: string, value: number, base: number) {
  const verdict = (wanted: string, isMet: boolean): string =>
    `${wanted}: ${isMet ? 'met' : 'missed'}`;
  if ('ratio' in goal) return verdict(`${goal.ratio}`, value / base <= goal.ratio);
  if ('value' in goal) return verdict(`${goal.value} ${unit}`, value <= goal.value);
  return verdict(`floor + ${goal.aboveFloor} ${unit}`, value - base <= goal.aboveFloor);
}

/** Rounds to three digits. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

const only = values.only ?? Object.keys(measurements);
for (const name of only) {
  const measurement = measurements[name];
  if (!measurement)
    throw new Error(`Expected one of ${Object.keys(measurements).join(', ')}, got ${name}`);
  for (const n of measurement.sizes) {
    const results = await measure(name, measurement, n);
    for (const line of measurement.lines) print(line, n, results);
  }
}
