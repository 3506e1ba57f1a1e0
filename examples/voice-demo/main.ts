// `npm start`: runs the demo (program.ts), and runs it again when it was killed: the conversation goes on.
// Port: PORT, default 8080. `npm start -- --forget` keeps nothing: neither the conversation after a crash, nor the link.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('program.ts', import.meta.url));

/** As source: there is nothing to build. `port`: of the program that was killed; open pages look for it there. */
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
    // One that never served would be killed again and again.
    if (signal === 'SIGKILL' && served !== undefined) run(served);
    else process.exitCode = status ?? 1;
  });
}

// Ctrl+C reaches the program, too, which then ends by itself.
process.on('SIGINT', () => undefined);
run();
