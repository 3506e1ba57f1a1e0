#!/usr/bin/env node
// The entry point of `offstage` on the command line.

import { runCommand, type Command } from './command/command.ts';
import { create } from './create/create.ts';
import { doctor } from './doctor/doctor.ts';
import { ownVersion } from './doctor/findings.ts';
import { inspect } from './inspect/inspect.ts';
import { replay } from './replay/replay.ts';
import { sessions } from './sessions/sessions.ts';
import { simulate } from './simulate/simulate.ts';
import { voice } from './voice/voice.ts';

// The program that reads the output has closed the pipe: `offstage replay … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

const commands: readonly Command[] = [create, doctor, inspect, replay, sessions, simulate, voice];

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  version: ownVersion(),
});
