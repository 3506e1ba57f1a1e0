// One repetition: `node --expose-gc bench/child.ts <measurement> <contender> <n>` measures once and prints the
// numbers as JSON.

import type { Contender } from './lib/measurement.ts';
import { measurements } from './measurements/index.ts';

const [name = '', contender = '', n = ''] = process.argv.slice(2);
const measure = measurements[name]?.contenders[contender as Contender];
if (!measure) throw new Error(`Expected a measurement and a contender, got ${name} ${contender}`);
console.log(JSON.stringify(await measure(Number(n))));
// Timers of the measured code must not keep the process alive.
process.exit(0);
