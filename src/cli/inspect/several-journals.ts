// Several journals as one, to look at: the sessions of all of them.
//
// SEVERAL-JOURNALS-1. A session has its own id; where two journals have a session of the same id, the later one has the
//      name of its journal behind it.
// SEVERAL-JOURNALS-2. A journal that fails later does not hide the others: its sessions are left out of the list.

import type { Journal } from '../../index.ts';
import type { ScopeSummary } from '../../entries/journal.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { Source } from '../journal/source.ts';

/** Where a listed session is kept. */
interface Place {
  readonly source: Source;
  readonly scope: string;
}

/**
 * @param sources Open journals, the first one first.
 * @param onError Is told of a journal that cannot be listed.
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
