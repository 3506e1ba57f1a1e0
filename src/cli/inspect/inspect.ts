// `offstage inspect`: serves the inspector's page of a journal on this machine. A journal that another process writes
// is followed as it grows.

import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { createGuard } from '../../adapters/listen/guard.ts';
import { loopbackHosts } from '../../adapters/listen/access.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import { inspector } from '../../inspector/index.ts';
import { messageOf, OffstageError } from '../../values/errors.ts';
import type { Command } from '../command/command.ts';
import { openSource } from '../replay/replay.ts';

const usage = `offstage inspect --journal <file> [options]

Serves a page to look at the sessions of a journal: who does what, what was said when, why something waits, and
the state after each entry. The file is a SQLite journal, also one that a running process writes, or a recording
(JSON Lines). The page only looks. It needs no account and no network; its address has a secret of its own.

  --journal <file>  the journal or recording
  --port <n>        the port on 127.0.0.1; any free one if it is left out
  --words           show the words of users and models, which are hidden otherwise

Ctrl+C ends it. Exit status: 0 it was ended, 2 for a wrong call.
`;

const options = {
  journal: { type: 'string' },
  port: { type: 'string' },
  words: { type: 'boolean', default: false },
} as const;

const HOST = '127.0.0.1';
const CLOSE_GRACE_MS = 1_000;

/** @param untilEnd Resolves when the command is to end. */
export function inspectFor(untilEnd: () => Promise<unknown>): Command {
  return {
    name: 'inspect',
    summary: 'look at the sessions of a journal, live or past, on a page',
    usage,
    async run(args, print) {
      let values;
      try {
        ({ values } = parseArgs({ args: [...args], options }));
      } catch (error) {
        print(`${messageOf(error)}\n\n${usage}`);
        return 2;
      }
      const { journal: path, port = '0', words } = values;
      if (path === undefined || !/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
        print(
          path === undefined
            ? `Expected --journal with a file\n\n${usage}`
            : `Expected --port to be a number up to 65535, got \`${port}\`\n\n${usage}`,
        );
        return 2;
      }
      try {
        await serve(path, Number(port), words, print, untilEnd);
        return 0;
      } catch (error) {
        if (!(error instanceof OffstageError)) throw error;
        print(`${error.message}\n`);
        return 2;
      }
    },
  };
}

export const inspect: Command = inspectFor(() => once(process, 'SIGINT'));

async function serve(
  path: string,
  wanted: number,
  words: boolean,
  print: (text: string) => void,
  untilEnd: () => Promise<unknown>,
): Promise<void> {
  const environment = nodeEnvironment();
  const source = await openSource(path, false);
  try {
    const { ids } = environment;
    const token = `${ids.next('see')}${ids.next('')}`;
    const page = inspector({ journal: source.journal, token, redact: !words, environment });
    const guard = await createGuard({
      name: 'offstage inspect',
      environment,
      isHost: (host, port) => loopbackHosts(port).includes(host),
      isOrigin: (origin, port) => loopbackHosts(port).some((host) => origin === `http://${host}`),
      request: ({ request, response }) => page.handle(request, response),
    });
    const { port } = await guard.listen({ port: wanted, host: HOST }).catch((cause: unknown) => {
      throw new OffstageError(
        'CANNOT_LISTEN',
        `Cannot listen on ${HOST}:${wanted}: ${messageOf(cause)}`,
        { cause },
      );
    });
    print(`Open http://${HOST}:${port}/inspect#token=${encodeURIComponent(token)}\n`);
    await untilEnd();
    await guard.close({ graceMs: CLOSE_GRACE_MS });
  } finally {
    source.close();
  }
}
