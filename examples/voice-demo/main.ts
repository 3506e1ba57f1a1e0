// `npm start` runs the demo (program.ts). If the demo is killed, it is restarted and the conversation continues. PORT
// sets the port, 8080 by default. With `npm start -- --forget`, neither the conversation nor the link is stored.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('program.ts', import.meta.url));

/** Starts program.ts from its source. `port`: the port of the killed program, where open pages look for the server. */
function run(port?: number): void {
  const env = { ...process.env, ...(port !== undefined && { PORT: String(port), AGAIN: '1' }) };
  const child = fork(program, process.argv.slice(2), {
    env,
    execArgv: ['--conditions=offstage-source'],
  });
  let served: number | undefined;
  child.on('message', ({ port: taken }: { port: number }) => void (served = taken));
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on('SIGTERM', forward);
  child.on('exit', (status, signal) => {
    process.off('SIGTERM', forward);
    // A program that never served a page would only be killed again.
    if (signal === 'SIGKILL' && served !== undefined) run(served);
    else process.exitCode = status ?? 1;
  });
}

// Ctrl+C also reaches the program, which then exits on its own.
process.on('SIGINT', () => undefined);
run();
