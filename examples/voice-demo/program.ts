// The program that main.ts runs: it starts the demo and prints what to do.

import { fileURLToPath } from 'node:url';
import type { Demo } from './demo.ts';
import { suggestions } from './page/about.ts';

const print = (line: string): void => console.log(line);

let demo: Demo;
try {
  // Imported only here, because its packages may not be installed.
  const { startDemo } = await import('./demo.ts');
  demo = await startDemo({
    port: Number(process.env['PORT'] || 8080),
    ...(!process.argv.includes('--forget') && {
      folder: process.env['KEPT'] || fileURLToPath(new URL('.kept', import.meta.url)),
    }),
    // The process ends like a lost machine: it reports nothing and closes nothing.
    crash: () => process.kill(process.pid, 'SIGKILL'),
    log: (line) => print(`  · ${line}`),
  });
} catch (error) {
  // An error that the reader can fix needs no stack.
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const help = code === 'ERR_MODULE_NOT_FOUND' ? 'Run `npm install` first.\n' : '';
  console.error(code === null ? error : `\n${(error as Error).message}\n${help}`);
  process.exit(1);
}

process.send?.({ port: Number(new URL(demo.url).port) });
// Without main.ts, nothing would stop this process.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
if (process.env['AGAIN'] === undefined) introduce();

function introduce(): void {
  const { transport, lead, subagents, speech } = demo.about;
  const tries = suggestions.map(({ title, hint, say, press, next = [] }, index) => {
    const first = `${index + 1}. ${title}: ${say ? `“${say}”` : `press “${press}”`}`;
    return `  ${[first, hint, ...next.map((words) => `“${words}”`)].join('\n     ')}`;
  });
  print(`
Offstage, the voice demo

  Transport   ${transport}
  Lead agent  ${lead}
  Subagents   ${subagents}
  Speech      ${speech}

  Open        ${demo.url}
  Look inside ${demo.inspectorUrl}

Things to try:

${tries.join('\n\n')}

Ctrl+C ends it.
`);
}

let isEnding = false;
const end = (signal: NodeJS.Signals): void => {
  // A second Ctrl+C kills it at once. A supervisor signals the whole group, and main.ts passes its signal on as well.
  if (isEnding) return signal === 'SIGINT' ? process.exit(1) : undefined;
  isEnding = true;
  print(`\n${signal === 'SIGINT' ? 'Ctrl+C' : signal}: closing.`);
  void demo.close().then(() => process.exit(0));
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
