// `npm run fuzz -- --calls 100000 --seed 1` fuzzes the public API for any number of calls. `--case N` repeats one case
// of that seed. Exits with code 1 if it found a violation.

import { parseArgs } from 'node:util';
import { fuzz } from './fuzzer.ts';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    case: { type: 'string' },
  },
});
const calls = Number(values.calls);
const seed = Number(values.seed);
let told = 0;
const report = await fuzz({
  calls,
  seed,
  ...(values.case === undefined ? {} : { only: Number(values.case) }),
  onProgress: (done) => {
    if (done < told + 10_000) return;
    told = done;
    console.log(`${done} calls`);
  },
});
console.log(
  `\nseed ${seed}: ${report.calls} calls in ${report.cases} cases, of ${report.functions} functions, and ${report.sessions} sessions`,
);
const endings = Object.entries(report.endings).toSorted(([, a], [, b]) => b - a);
for (const [ending, count] of endings) console.log(`  ${String(count).padStart(8)} ${ending}`);

/** One violation of each kind: the same place and the same error are the same kind. */
const kinds = new Map<
  string,
  { readonly first: (typeof report.violations)[number]; count: number }
>();
for (const violation of report.violations) {
  const key = `${violation.what.split('(')[0]} ${violation.why}`;
  const kind = kinds.get(key);
  if (kind) kind.count += 1;
  else kinds.set(key, { first: violation, count: 1 });
}
console.log(`${report.violations.length} violations, of ${kinds.size} kinds`);
for (const { first, count } of kinds.values())
  console.log(`\n${count} times, first in case ${first.case}: ${first.what}\n  ${first.why}`);
process.exit(report.violations.length > 0 ? 1 : 0);
