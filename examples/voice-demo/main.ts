// `npm start` runs the demo (program.ts). If the demo is killed, it is started again, and the conversation continues.
// PORT sets the port, 8080 by default. With `npm start -- --forget` neither the conversation nor the link is kept.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('program.ts', import.meta.url));

/** Starts program.ts from source. `port`: the port of the killed program, where open pages look for it. */
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
    // A program that never served would only be killed again.
    if (signal === 'SIGKILL' && served !== undefined) run(served);
    else process.exitCode = status ?? 1;
  });
}

// Ctrl+C also reaches the program, which then ends by itself.
process.on('SIGINT', () => undefined);
run();
