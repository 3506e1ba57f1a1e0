// A program that another user runs. It runs the commands on each journal that its arguments name, and prints one line
// of JSON each: the command, the journal, the exit status, and the errors.

import { replay } from '../../../src/cli/replay/replay.ts';
import { sessions } from '../../../src/cli/sessions/sessions.ts';

const acts = ['--session', 'scope', '--by', 'ann', '--journal'];
const calls = [
  [sessions, 'ls', '--journal'],
  [replay],
  [sessions, 'cancel', 'sub_1', ...acts],
  [sessions, 'answer', 'sub_1.q1', '--text', 'yes', ...acts],
  [sessions, 'message', 'sub_1', 'go on', ...acts],
  [sessions, 'raise', 'sub_1', '--tokens', '5', ...acts],
] as const;

for (const place of process.argv.slice(2))
  for (const [command, ...args] of calls) {
    let complained = '';
    const status = await command.run(
      [...args, place],
      () => {},
      (text) => void (complained += text),
    );
    const [verb = command.name] = args;
    process.stdout.write(`${JSON.stringify([verb, place, status, complained])}\n`);
  }
