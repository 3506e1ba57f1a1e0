// Prints the origin of the text that the models of a recorded conversation read, by kind: `node bench/model-input.ts
// [NAME]` (measurements/model-input.ts). Without a name: the share of each conversation, and the kinds of `chat`.

import { conversations } from '../test/readings/conversations/index.ts';
import { modelInput, percent, tokensOf } from './measurements/model-input.ts';

const [wanted] = process.argv.slice(2);
const shown = (share: number): string => `${share.toFixed(0).padStart(3)} %`;

if (wanted === undefined)
  for (const { name } of conversations) {
    const { calls, all, fresh } = modelInput(name);
    if (calls > 0)
      console.log(
        `${name.padEnd(24)} ${String(calls).padStart(3)} calls ${String(tokensOf(all.app + all.runtime)).padStart(6)} tokens, of the runtime ${shown(percent(all))}, of those that are new in a call ${shown(percent(fresh))}`,
      );
  }

const { all, kinds } = modelInput(wanted ?? 'chat');
const whole = (all.app + all.runtime) / 100;
for (const { kind, chars, freshChars } of kinds)
  console.log(
    `${(chars / whole).toFixed(1).padStart(6)} % ${String(tokensOf(chars)).padStart(7)} tokens, new ${String(tokensOf(freshChars)).padStart(6)}  ${kind}`,
  );
