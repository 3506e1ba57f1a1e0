// Tests the suite itself: each planted fault makes at least the case that checks for it fail.

import { describe, expect, test } from 'vitest';
import {
  JournalError,
  memoryWakeTimes,
  type JournalEntry,
  type JournalPosition,
  type WakeTimes,
} from '../../../src/entries/journal.ts';
import { memoryDesk, type DeskRow } from '../../../src/actors/ports/desk.ts';
import { type Journal } from '../../../src/index.ts';
import { journalConformance } from '../../../src/testing/index.ts';
import { runJournalConformance } from './support/run-journal-conformance.ts';
import { sharedStore, type Spoiled } from './support/shared-store.ts';

runJournalConformance(sharedStore({ name: 'a store without a fault' }));

/** A journal that changes the JSON of each event that it stores. */
function mangled(change: (text: string) => string): Spoiled['spoil'] {
  return ({ append }) => ({
    append: (entry) =>
      append({ ...entry, event: JSON.parse(change(JSON.stringify(entry.event))) as never }),
  });
}

function reading(
  change: (entries: readonly JournalEntry[]) => readonly JournalEntry[],
): Spoiled['spoil'] {
  return ({ read }) => ({ read: async (query) => change(await read(query)) });
}

async function cutTo(store: Journal, kept: (entries: readonly JournalEntry[]) => unknown) {
  const entries = await store.read();
  const left = kept(entries) as readonly JournalEntry[];
  for (const { scope } of entries) await store.forget?.(scope);
  for (const entry of left) await store.append(entry);
}

/**
 * A trim that deletes the wrong entries. `to`: the index of the entry that the trim received, or -1 if there is no such
 * entry.
 */
function trimming(
  isKept: (one: JournalEntry, at: number, to: number, entry: JournalEntry) => boolean,
): Spoiled['spoil'] {
  return (_, store) => ({
    trim: async ({ scope, unit, seq }) => {
      const entries = await store.read({ scope });
      const to = entries.findIndex((one) => one.unit === unit && one.seq === seq);
      const entry = entries[to] ?? { ...entries[0]!, unit, seq };
      const left = entries.filter((one, at) => isKept(one, at, to, entry));
      await store.forget?.(scope);
      for (const one of left) await store.append(one);
      // The store itself must not notice that entries are missing.
      if (left[0]) await store.trim?.(left[0]);
    },
  });
}

function waking(change: (times: WakeTimes) => Partial<WakeTimes>): Spoiled['spoil'] {
  return ({ wakeTimes = memoryWakeTimes() }) => ({
    wakeTimes: { ...wakeTimes, ...change(wakeTimes) },
  });
}

/** The last claim on each store. */
const onceClaimed = new WeakMap<WakeTimes, string>();

/** The entries of each store before the store was trimmed. */
const beforeTrim = new WeakMap<Journal, readonly JournalEntry[]>();

const without = (entry: JournalEntry, error: unknown): JournalEntry => {
  if (error instanceof JournalError && error.code === 'JOURNAL_CONFLICT') return entry;
  throw error;
};

/** Changes the entries that `readAfter` returns. */
function following(
  change: (
    found: readonly JournalEntry[] | null,
    entry: JournalPosition,
    all: readonly JournalEntry[],
  ) => readonly JournalEntry[] | null,
): Spoiled['spoil'] {
  return (_, store) => ({
    readAfter: async (entry) =>
      change((await store.readAfter?.(entry)) ?? null, entry, await store.read()),
  });
}

const followed =
  'what came after an entry is found, of all units of its scope and in their order, and nothing else';

const faults: readonly (Spoiled & { readonly found: string })[] = [
  {
    name: 'the entry itself comes after itself',
    spoil: following(
      (found, { scope, unit, seq }, all) =>
        found &&
        all
          .filter((one) => one.scope === scope && one.unit === unit && one.seq === seq)
          .concat(found),
    ),
    found: followed,
  },
  {
    name: 'only what came after in its unit is found',
    spoil: following((found, { unit }) => found && found.filter((one) => one.unit === unit)),
    found: followed,
  },
  {
    name: 'what came after in other scopes is found, too',
    spoil: following(
      (found, entry, all) =>
        found &&
        all.slice(
          1 +
            all.findIndex(
              ({ scope, unit, seq }) =>
                scope === entry.scope && unit === entry.unit && seq === entry.seq,
            ),
        ),
    ),
    found: followed,
  },
  {
    name: 'after an entry that is not there is nothing',
    spoil: following((found) => found ?? []),
    found: 'after an entry that is not there is nothing that can be told',
  },
  {
    name: 'a trimmed entry is one that nothing came after',
    spoil: following(
      (found, entry, all) =>
        found ?? (all.some(({ scope }) => scope === entry.scope) && entry.seq === 1 ? [] : null),
    ),
    found: 'after an entry that was trimmed or forgotten is nothing that can be told',
  },
  {
    name: 'only the first page of what came after is found',
    spoil: following((found) => found && found.slice(0, 2_000)),
    found: 'very many entries after an entry are found completely',
  },
  {
    name: 'a bad entry that takes the others of its turn with it',
    spoil: ({ append }) => {
      let isSpoiled = false;
      return {
        append: async (entry) => {
          const { seq, unit } = entry;
          const isBad = unit === 'bad' || unit.length > 1000 || !Number.isInteger(seq);
          if (isBad && !isSpoiled) {
            isSpoiled = true;
            setImmediate(() => (isSpoiled = false));
          }
          if (isSpoiled)
            throw new JournalError('INVALID_ENTRY', 'All of them', { retryable: false });
          await append(entry);
        },
      };
    },
    found: 'an entry that cannot be kept is refused for good, and harms no other',
  },
  {
    name: 'a bad entry that is refused as something that may pass',
    spoil: ({ append }) => ({
      append: async (entry) => {
        try {
          await append(entry);
        } catch (error) {
          if (!(error instanceof JournalError) || error.code !== 'INVALID_ENTRY') throw error;
          throw new JournalError('INVALID_ENTRY', error.message, { retryable: true });
        }
      },
    }),
    found: 'an entry that cannot be kept is refused for good, and harms no other',
  },
  {
    name: 'an append that answers before it keeps',
    spoil: ({ append }) => ({
      append(entry) {
        setImmediate(() => void Promise.resolve(append(entry)).catch(() => {}));
      },
    }),
    found: 'what was appended is there when the append returns',
  },
  {
    name: 'units in the order of their names',
    spoil: reading((entries) => entries.toSorted((a, b) => (a.unit < b.unit ? -1 : 1))),
    found: 'entries of a scope keep their order, across its units',
  },
  {
    name: 'pages of a thousand, and only the first one',
    spoil: reading((entries) => entries.slice(0, 1000)),
    found: 'more entries than fit into one page of anything',
  },
  {
    name: 'a query that knows scopes only',
    spoil: ({ read }) => ({ read: ({ scope } = {}) => read(scope === undefined ? {} : { scope }) }),
    found: 'a query finds what it asks for, and nothing else',
  },
  {
    name: 'a scope without a name means all of them',
    spoil: ({ read }) => ({
      read: (query) => (query?.scope ? read(query) : read(query?.unit ? { unit: query.unit } : {})),
    }),
    found: 'a query finds what it asks for, and nothing else',
  },
  {
    name: 'units that are the same in all scopes',
    spoil: ({ append }, store) => ({
      async append(entry) {
        const known = await store.read({ unit: entry.unit });
        if (!known.some(({ seq }) => seq === entry.seq)) await append(entry);
      },
    }),
    found: 'the same unit in two scopes is two units',
  },
  {
    name: 'a second entry with a number, which is ignored',
    spoil: ({ append }) => ({
      append: async (entry) => {
        try {
          await append(entry);
        } catch (error) {
          without(entry, error);
        }
      },
    }),
    found: 'another entry with the same number is refused for good, and harms no other',
  },
  {
    name: 'a conflict that shall be tried again',
    spoil: ({ append }) => ({
      append: async (entry) => {
        try {
          await append(entry);
        } catch (error) {
          const { scope } = without(entry, error);
          throw new JournalError('JOURNAL_CONFLICT', scope, { retryable: true });
        }
      },
    }),
    found: 'another entry with the same number is refused for good, and harms no other',
  },
  {
    name: 'the same entry again is an error',
    spoil: ({ append }, store) => ({
      append: async (entry) => {
        const { scope, unit, seq } = entry;
        const known = await store.read({ scope, unit });
        if (known.some((one) => one.seq === seq))
          throw new JournalError('JOURNAL_CONFLICT', scope, { retryable: false });
        await append(entry);
      },
    }),
    found: 'the same entry again is kept once, and is no error',
  },
  {
    name: 'names without regard to case',
    spoil: ({ read }, store) => ({
      read: async ({ scope, unit } = {}) =>
        scope === undefined
          ? read({ unit })
          : (await store.read({ unit })).filter(
              (one) => one.scope.toLowerCase() === scope.toLowerCase(),
            ),
    }),
    found: 'names are kept as they are, however they look',
  },
  {
    name: 'a text that cannot hold the character 0',
    spoil: mangled((text) => text.replaceAll(String.raw`\u0000`, '')),
    found: 'events are kept as they are: what ends a line, and what is nothing',
  },
  {
    name: 'numbers of seven digits',
    spoil: mangled((text) =>
      text.replace(/\d+\.\d{8,}/g, (digits) => String(Math.fround(+digits))),
    ),
    found: 'events are kept as they are: numbers at the limits',
  },
  {
    name: 'properties by assignment',
    spoil: mangled((text) => text.replaceAll('"__proto__":{"polluted":true},', '')),
    found: 'events are kept as they are: names of properties that mean something',
  },
  {
    name: 'texts of a limited length',
    spoil: mangled((text) => (text.length > 1_000_000 ? '{"type":"said"}' : text)),
    found: 'events are kept as they are: a long text',
  },
  {
    name: 'scopes in the order of their names',
    spoil: ({ scopes }) => ({
      scopes: async () =>
        ((await scopes?.()) ?? []).toSorted((a, b) => (a.scope < b.scope ? -1 : 1)),
    }),
    found: 'scopes are listed, the one that was written first first',
  },
  {
    name: 'one unit is forgotten, not the scope',
    spoil: (_, store) => ({
      forget: async (scope) => {
        const others = (await store.read({ scope })).filter(({ unit }) => unit !== 'unit');
        await store.forget?.(scope);
        for (const entry of others) await store.append(entry);
      },
    }),
    found: 'what is forgotten is gone, and nothing else',
  },
  {
    name: 'everything is forgotten',
    spoil: ({ forget }, store) => ({
      forget: async () => {
        for (const { scope } of (await store.scopes?.()) ?? []) await forget?.(scope);
      },
    }),
    found: 'what is forgotten is gone, and nothing else',
  },
  {
    name: 'a trim that deletes nothing',
    spoil: () => ({ trim: async () => {} }),
    found:
      'what is before an entry is deleted, of all units; it and what is after it stay, in their order',
  },
  {
    name: 'a trim of one unit',
    spoil: trimming((one, at, to, entry) => at >= to || one.unit !== entry.unit),
    found:
      'what is before an entry is deleted, of all units; it and what is after it stay, in their order',
  },
  {
    name: 'a trim that deletes the entry, too',
    spoil: trimming((_one, at, to) => at > to),
    found:
      'what is before an entry is deleted, of all units; it and what is after it stay, in their order',
  },
  {
    name: 'a trim by numbers',
    spoil: trimming((one, _at, to, entry) => to === -1 || one.seq >= entry.seq),
    found:
      'what is before an entry is what was appended before, whatever its number is and when it came',
  },
  {
    name: 'a trim by time',
    spoil: trimming((one, _at, to, entry) => to === -1 || one.at >= entry.at),
    found:
      'what is before an entry is what was appended before, whatever its number is and when it came',
  },
  {
    name: 'a trim of all scopes',
    spoil: ({ trim }, store) => ({
      trim: async (entry) => {
        await trim?.(entry);
        for (const { scope } of (await store.scopes?.()) ?? [])
          if (scope !== entry.scope) await store.forget?.(scope);
      },
    }),
    found: 'what other scopes have is not deleted',
  },
  {
    name: 'a trim to an entry that is not there, which deletes everything',
    spoil: trimming((_one, at, to) => to !== -1 && at >= to),
    found: 'an entry that is not there is before nothing',
  },
  {
    name: 'a trim that is done once',
    spoil: ({ trim }) => {
      let isDone = false;
      return {
        trim: async (entry) => {
          if (!isDone) await trim?.(entry);
          isDone = true;
        },
      };
    },
    found: 'a trim further on deletes more, the same again and one further back nothing',
  },
  {
    name: 'units that begin with 1, whatever was trimmed',
    spoil: ({ append }, store) => ({
      append: async (entry) => {
        const { scope, unit, seq } = entry;
        if (seq > 1 && (await store.read({ scope, unit })).length === 0)
          throw new JournalError('JOURNAL_CUT', unit, { retryable: false });
        await append(entry);
      },
    }),
    found: 'units go on with their numbers, also where nothing of them is left',
  },
  {
    name: 'a store that does not compare any more once it was trimmed',
    spoil: ({ append, trim }, store) => {
      const trimmed = new Set<string>();
      return {
        trim: async (entry) => {
          await trim?.(entry);
          trimmed.add(entry.scope);
        },
        append: async (entry) => {
          const { scope, unit, seq } = entry;
          const known = trimmed.has(scope) ? await store.read({ scope, unit }) : [];
          if (!known.some((one) => one.seq === seq)) await append(entry);
        },
      };
    },
    found: 'after a trim the same entry again is kept once, and another with its number is refused',
  },
  {
    name: 'a trim that takes along what is being appended',
    spoil: ({ append, trim }) => {
      let trims = 0;
      return {
        trim: async (entry) => {
          trims += 1;
          await trim?.(entry);
        },
        append: async (entry) => {
          const begun = trims;
          await new Promise((resolve) => setImmediate(resolve));
          if (begun === trims) await append(entry);
        },
      };
    },
    found: 'what is being appended during a trim is kept',
  },
  {
    name: 'scopes that are listed as if they had not been trimmed',
    spoil: ({ scopes, trim }) => {
      const were = new Map<string, number>();
      return {
        trim: async (entry) => {
          for (const { scope, firstAt } of (await scopes?.()) ?? []) were.set(scope, firstAt);
          await trim?.(entry);
        },
        scopes: async () =>
          ((await scopes?.()) ?? []).map((one) => ({
            ...one,
            firstAt: were.get(one.scope) ?? one.firstAt,
          })),
      };
    },
    found: 'a scope that was trimmed is listed with what is left of it',
  },
  {
    name: 'a scope that was trimmed cannot be forgotten',
    spoil: ({ trim, forget }) => {
      const trimmed = new Set<string>();
      return {
        trim: async (entry) => {
          await trim?.(entry);
          trimmed.add(entry.scope);
        },
        forget: async (scope) => {
          if (!trimmed.has(scope)) await forget?.(scope);
        },
      };
    },
    found: 'a scope that was trimmed can be forgotten, and begin anew',
  },
  {
    name: 'a crash that undoes a trim',
    spoil: ({ trim }, store) => ({
      trim: async (entry) => {
        beforeTrim.set(store, await store.read());
        await trim?.(entry);
      },
    }),
    crash: async (store) => {
      const before = beforeTrim.get(store) ?? [];
      await cutTo(store, (now) => [...new Set([...before, ...now])]);
    },
    found: 'what was trimmed stays so after a crash, and units go on from there',
  },
  {
    name: 'a trim by anybody',
    spoil: (_, store) => ({ trim: async (entry) => store.trim?.(entry) }),
    found: 'whoever does not write a scope trims nothing of it',
  },
  {
    name: 'a crash that takes the last entry along',
    crash: (store) => cutTo(store, (entries) => entries.slice(0, -1)),
    found: 'what was acknowledged is there after a crash, as it was',
  },
  {
    name: 'a crash that leaves a hole',
    crash: (store) =>
      cutTo(store, (entries) =>
        entries.length > 5 ? entries.filter((_, at) => at !== 3) : entries,
      ),
    found: 'a crash in the middle leaves a beginning of what was appended',
  },
  {
    name: 'a claim that takes what another process has',
    isGreedy: true,
    found: 'a scope that one process writes cannot be claimed by another',
  },
  {
    name: 'leases that nobody looks at',
    isUnfenced: true,
    found: 'after the last sign of life another process takes over, and the first is fenced',
  },
  {
    name: 'whoever is fenced shall try again',
    spoil: ({ append }) => ({
      append: async (entry) => {
        try {
          await append(entry);
        } catch (error) {
          const { code } = error as JournalError;
          throw new JournalError(code, entry.scope, { retryable: code === 'FENCED' });
        }
      },
    }),
    found: 'after the last sign of life another process takes over, and the first is fenced',
  },
  {
    name: 'a release that does nothing',
    spoil: () => ({ release: async () => {} }),
    found: 'what was released may be claimed at once, and is not written any more by who had it',
  },
  {
    name: 'wake times of an alphabet',
    spoil: waking(({ earliest }) => ({
      earliest: async (query) =>
        (await earliest(query)).toSorted(
          (one, other) => one.at - other.at || one.scope.localeCompare(other.scope, 'en'),
        ),
    })),
    found: 'wake times are found in their order, and those of one time in that of their scopes',
  },
  {
    name: 'wake times as texts',
    spoil: waking(({ earliest }) => ({
      earliest: async (query) =>
        (await earliest(query)).toSorted((one, other) =>
          String(one.at) < String(other.at) ? -1 : Number(one.at !== other.at),
        ),
    })),
    found: 'wake times are found in their order, and those of one time in that of their scopes',
  },
  {
    name: 'wake times in whole milliseconds',
    spoil: waking(({ set }) => ({
      set: (scope, at) => set(scope, at === null ? null : Math.floor(at)),
    })),
    found: 'wake times are found in their order, and those of one time in that of their scopes',
  },
  {
    name: 'the first word about a wake time counts',
    spoil: waking(({ set, earliest }) => ({
      set: async (scope, at) => {
        const known = await earliest({ limit: Infinity });
        if (at === null || !known.some((one) => one.scope === scope)) await set(scope, at);
      },
    })),
    found: 'the latest word about a wake time counts, and null is never',
  },
  {
    name: 'a wake time that is never taken back',
    spoil: waking(({ set }) => ({
      set: (scope, at) => (at === null ? undefined : set(scope, at)),
    })),
    found: 'the latest word about a wake time counts, and null is never',
  },
  {
    name: 'wake times that are set in any order',
    spoil: waking(({ set }) => ({
      set: async (scope, at) => {
        if (at !== null) await new Promise((resolve) => setImmediate(resolve));
        await set(scope, at);
      },
    })),
    found: 'the latest word about a wake time counts, and null is never',
  },
  {
    name: 'behind a wake time is what is due later',
    spoil: waking(({ earliest }) => ({
      earliest: async ({ after, limit }) => {
        const all = await earliest({ limit: Infinity });
        return all.filter(({ at }) => after === undefined || at > after.at).slice(0, limit);
      },
    })),
    found: 'wake times are found from behind one, as many as are asked for',
  },
  {
    name: 'behind a wake time that is gone is nothing',
    spoil: waking(({ earliest }) => ({
      earliest: async ({ after, limit }) => {
        const all = await earliest({ limit: Infinity });
        const from = all.findIndex(({ scope }) => scope === after?.scope) + 1;
        return after && from === 0 ? [] : all.slice(from, from + limit);
      },
    })),
    found: 'wake times are found from behind one, as many as are asked for',
  },
  {
    name: 'all wake times, however few are asked for',
    spoil: waking(({ earliest }) => ({
      earliest: ({ after }) => earliest({ after, limit: Infinity }),
    })),
    found: 'wake times are found from behind one, as many as are asked for',
  },
  {
    name: 'pages of 500 wake times, whatever is asked for',
    spoil: waking(({ earliest }) => ({
      earliest: ({ limit, ...query }) => earliest({ ...query, limit: Math.min(limit, 500) }),
    })),
    found: 'more wake times than fit into one page of anything',
  },
  {
    name: 'a wake time that outlives its scope',
    spoil: ({ forget }, { wakeTimes }) => ({
      forget: async (scope) => {
        const all = (await wakeTimes?.earliest({ limit: 100 })) ?? [];
        await forget?.(scope);
        for (const time of all) await wakeTimes?.set(time.scope, time.at);
      },
    }),
    found: 'a scope that is forgotten takes its wake time along',
  },
  {
    name: 'a trim that takes the wake time along',
    spoil: ({ trim }, { wakeTimes }) => ({
      trim: async (entry) => {
        await trim?.(entry);
        await wakeTimes?.set(entry.scope, null);
      },
    }),
    found: 'a scope that is trimmed keeps its wake time',
  },
  {
    name: 'a crash that takes wake times along',
    crash: async ({ wakeTimes }) => {
      for (const { scope } of (await wakeTimes?.earliest({ limit: 100 })) ?? [])
        await wakeTimes?.set(scope, null);
    },
    found: 'wake times that were set are there after a crash',
  },
  {
    name: 'a look that misses whatever was claimed once',
    spoil: ({ claim }, { wakeTimes }) => {
      if (!wakeTimes) throw new Error('Expected wake times');
      return {
        claim: async (scope) => {
          await claim?.(scope);
          onceClaimed.set(wakeTimes, scope);
        },
        wakeTimes: {
          ...wakeTimes,
          earliest: async (query) =>
            (await wakeTimes.earliest(query)).filter(
              ({ scope }) => query.exceptClaimed !== true || scope !== onceClaimed.get(wakeTimes),
            ),
        },
      };
    },
    found: 'whoever looks for those that nobody sees to finds all but those that a process writes',
  },
  {
    name: 'a desk that any process may write',
    spoil: (_, store) => ({ desk: store.desk }),
    found: 'the rows of a scope are seen by every process, and set by its writer alone',
  },
  {
    name: 'a desk whose pages leave out rows of the same time',
    spoil: ({ desk = memoryDesk() }) => ({
      desk: {
        ...desk,
        find: async ({ after, limit, ...query }) =>
          (await desk.find({ ...query, limit: Infinity }))
            .filter(({ since }) => after === undefined || since > after.since)
            .slice(0, limit),
      },
    }),
    found: 'more rows than fit into one page of anything',
  },
  {
    name: 'a desk whose pages end where the row of the last page was removed',
    spoil: ({ desk = memoryDesk() }) => ({
      desk: {
        ...desk,
        find: async ({ after, limit, ...query }) => {
          const all = await desk.find({ ...query, limit: Infinity });
          const from = all.findIndex(({ scope, id }) => scope === after?.scope && id === after.id);
          return after && from === -1 ? [] : all.slice(from + 1, from + 1 + limit);
        },
      },
    }),
    found: 'rows that are added and removed between two pages hide no other row and repeat none',
  },
  {
    name: 'a desk that compares identities without their case',
    spoil: ({ desk = memoryDesk() }) => ({
      desk: {
        find: ({ answerableBy, ...query }) =>
          desk.find({
            ...query,
            ...(answerableBy && {
              answerableBy: answerableBy.flatMap((name) => [name, name.toLowerCase()]),
            }),
          }),
        set: desk.set,
      },
    }),
    found: 'a row is found by each identity that may answer it, and by no similar one',
  },
  {
    name: 'a desk that adds rows to those of before',
    spoil: ({ desk = memoryDesk() }) => {
      const rows = new Map<string, DeskRow>();
      return {
        desk: {
          ...desk,
          set: async (scope, given) => {
            for (const row of given) rows.set(`${scope} ${row.id}`, row);
            const all = [...rows].filter(([name]) => name.startsWith(`${scope} `));
            await desk.set(
              scope,
              all.map(([, row]) => row),
            );
          },
        },
      };
    },
    found: 'the latest rows of a scope replace its earlier ones',
  },
  {
    name: 'a desk that each process keeps for itself',
    spoil: () => ({ desk: memoryDesk() }),
    found: 'rows that were set are there after a crash',
  },
  {
    name: 'a desk that keeps the rows of a forgotten scope',
    spoil: ({ forget }, store) => ({
      forget: async (scope) => {
        const rows = await store.desk?.find({ kinds: ['question'], limit: 9 });
        await forget?.(scope);
        const kept = rows?.filter((row) => row.scope === scope) ?? [];
        await store.desk?.set(
          scope,
          kept.map((row) => ({ ...row, kind: 'question', answerableBy: null })),
        );
      },
    }),
    found: 'a scope that is forgotten takes its rows along',
  },
  {
    name: 'wake times that each process keeps for itself',
    spoil: () => ({ wakeTimes: memoryWakeTimes() }),
    found: 'processes see each other’s wake times, whoever writes the scope',
  },
];

describe('a fault is found:', () => {
  test.each(faults)('$name', async ({ found, ...spoiled }) => {
    const failed: string[] = [];
    for (const { name, run } of journalConformance(sharedStore(spoiled)))
      await run().catch(() => failed.push(name));
    expect(failed).toContain(found);
  });
});

test.each([
  ['a journal that has more than it offers', { offers: ['scopes'] as const }],
  ['a journal that has less than it offers', { spoil: () => ({ scopes: undefined }) }],
])('reports %s', async (_what, change) => {
  const setup = sharedStore({ name: 'it', ...change });
  const cases = journalConformance({ ...setup, ...('offers' in change ? change : {}) });
  await expect(cases[0]?.run()).rejects.toThrow(/offer/);
});

test('skips a case that needs a missing feature, and reports which feature', () => {
  const cases = journalConformance({ ...sharedStore({ name: 'it' }), offers: ['scopes'] });
  const skipped = cases.filter((one) => one.skipped !== null);
  expect(skipped.length).toBeGreaterThan(10);
  expect(skipped.map((one) => one.skipped)).toContain('it does not offer reopen');
});
