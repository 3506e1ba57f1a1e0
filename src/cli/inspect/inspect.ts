// `offstage inspect`: serves the inspector's page for a journal on this machine. The page follows a journal that
// another process writes, and combines several journals into one.
//
// Invariants
//   SEVERAL-JOURNALS-1. A session keeps its id. If two journals contain sessions with the same id, the name of the
//       later journal is appended to its session's id.
//   SEVERAL-JOURNALS-2. If a journal fails later, the other journals remain visible, and only the sessions of this
//       journal are missing from the list.

import { once } from 'node:events';
import { createGuard } from '../../adapters/listen/guard.ts';
import { loopbackHosts } from '../../adapters/listen/access.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import { inspector } from '../../inspector/index.ts';
import type { ScopeSummary } from '../../entries/journal.ts';
import { ConfigurationError, messageOf, OffstageError } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';
import type { Journal } from '../../index.ts';
import { isWrongCall, openSource, type Source } from '../journal/source.ts';

const usage = `offstage inspect --journal <file or address> [options]

Serves a page to look at the sessions of a journal: who does what, what was said when, why something waits, and
the state after each entry. A journal is a SQLite file that no process has open, a recording (JSON Lines), or the
address of a database, postgres://…, whose running sessions the page follows. A process that has its SQLite file open
serves the same page itself: inspector() of offstage/inspector. The page only looks. It needs no account and no
network; its address has a secret of its own.

  --journal <file>  the journal, by its file or address; may be given several times
  --schema <name>   the schema of a journal in PostgreSQL (offstage)
  --port <n>        the port on 127.0.0.1; any free one if it is left out
  --words           show the words of users and models, which are hidden otherwise
  --json            print the address as JSON: { "url": … }

Ctrl+C ends it. Exit status: 0 it was ended, 2 for a wrong call.
`;

const options = {
  journal: { type: 'string', multiple: true },
  port: { type: 'string' },
  schema: { type: 'string' },
  words: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

const HOST = '127.0.0.1';
const CLOSE_GRACE_MS = 1_000;

/** @param untilEnd Resolves when the command should stop. */
export function inspectFor(untilEnd: () => Promise<unknown>): Command {
  return commandOf({
    name: 'inspect',
    summary: 'look at the sessions of a journal, live or past, on a page',
    usage,
    async run(args, print, complain) {
      const { values } = argumentsOf({ args: [...args], options });
      const { journal: places = [], schema, port = '0', words, json } = values;
      if (places.length === 0) throw new WrongCall('Expected --journal with a file');
      if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
        throw new WrongCall(`Expected --port to be a number up to 65535, got \`${port}\``);
      try {
        const opened = (url: string): void =>
          print(json ? `${JSON.stringify({ url })}\n` : `Open ${url}\n`);
        const sources: Source[] = [];
        try {
          for (const place of places) sources.push(await openSource(place, { schema }));
          const [only, ...others] = sources;
          const lost = (error: unknown, name: string): void =>
            complain(`${name}: ${messageOf(error)}\n`);
          const journal =
            only && others.length === 0 ? only.journal : severalJournals(sources, lost);
          await serve(journal, { wanted: Number(port), words, opened, untilEnd });
        } finally {
          for (const source of sources) await source.close();
        }
        return 0;
      } catch (error) {
        if (!(error instanceof OffstageError)) throw error;
        complain(`${error.message}\n`);
        return isWrongCall(error) ? 2 : 1;
      }
    },
  });
}

export const inspect: Command = inspectFor(() => once(process, 'SIGINT'));

interface Serving {
  /** The port; 0 selects any free port. */
  readonly wanted: number;
  readonly words: boolean;
  readonly opened: (url: string) => void;
  readonly untilEnd: () => Promise<unknown>;
}

async function serve(
  journal: Journal,
  { wanted, words, opened, untilEnd }: Serving,
): Promise<void> {
  const environment = nodeEnvironment();
  const { ids } = environment;
  const token = `${ids.next('see')}${ids.next('')}`;
  const page = inspector({ journal, token, redact: !words, environment });
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
  opened(`http://${HOST}:${port}/inspect#token=${encodeURIComponent(token)}`);
  await untilEnd();
  await guard.close({ graceMs: CLOSE_GRACE_MS });
}

/** The journal and the scope of a listed session. */
interface Place {
  readonly source: Source;
  readonly scope: string;
}

/**
 * Combines several journals into one read-only journal that has all their sessions.
 * @param sources Open journals, in order.
 * @param onError Receives the error when the sessions of a journal cannot be listed.
 */
export function severalJournals(
  sources: readonly Source[],
  onError: (error: unknown, name: string) => void,
): Journal & Required<Pick<Journal, 'scopes'>> {
  const places = new Map<string, Place>();
  const listed = async (source: Source): Promise<readonly ScopeSummary[]> => {
    try {
      return await source.journal.scopes();
    } catch (error) {
      onError(error, source.name);
      return [];
    }
  };
  const scopes = async (): Promise<readonly ScopeSummary[]> => {
    const all: ScopeSummary[] = [];
    const taken = new Set<string>();
    for (const source of sources)
      for (const summary of await listed(source)) {
        const { scope } = summary;
        const name = taken.has(scope) ? `${scope} (${source.name})` : scope;
        taken.add(name);
        places.set(name, { source, scope });
        all.push({ ...summary, scope: name });
      }
    return all;
  };
  return {
    scopes,
    async read({ scope: name, ...query } = {}) {
      if (name === undefined)
        return (await Promise.all(sources.map(async ({ journal }) => journal.read(query)))).flat();
      if (!places.has(name)) await scopes();
      const place = places.get(name);
      return place ? place.source.journal.read({ ...query, scope: place.scope }) : [];
    },
    async readAfter(entry) {
      const place = places.get(entry.scope);
      return (await place?.source.journal.readAfter?.({ ...entry, scope: place.scope })) ?? null;
    },
    append() {
      throw new ConfigurationError('READ_ONLY', 'Several journals are only looked at');
    },
  };
}
