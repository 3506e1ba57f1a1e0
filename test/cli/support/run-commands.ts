// A program of another user: runs the commands on each of the journals that its arguments name, and prints a line of JSON for each:
// the command, the journal, its exit status, and what it complained of.

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
