#!/usr/bin/env node
// `offstage`, on the command line.

import { runCommand, type Command } from './command.ts';
import { doctor } from './doctor/doctor.ts';

const commands: readonly Command[] = [doctor];

process.exitCode = await runCommand(commands, process.argv.slice(2), (text) => {
  process.stdout.write(text);
});
