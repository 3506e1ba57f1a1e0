// Each wrapper of a journal passes on all members that a journal may have.

import { describe, expect, test } from 'vitest';
import { redactingJournal } from '../../../src/actors/runtime/redacting-journal.ts';
import type { Journal } from '../../../src/actors/ports/journal.ts';
import { encryptedJournal } from '../../../src/adapters/encrypted-journal/index.ts';
import { keptEntries } from '../../../src/adapters/mcp/kept-entries.ts';
import { meteredJournal, tracedJournal } from '../../../src/adapters/otel/index.ts';

const work = { scope: 's', unit: 'session' };
const at = { scope: 's', unit: 'session', seq: 1 };

/** A call to each member, which the wrapped journal records. A new member does not compile until it is listed here. */
const calls = {
  append: (journal) =>
    journal.append({ definitionVersion: 1, at: 0, actor: 'session', event: { type: 'x' }, ...at }),
  read: (journal) => journal.read({ scope: 's' }),
  readAfter: (journal) => journal.readAfter?.(at),
  claim: (journal) => journal.claim?.('s'),
  trim: (journal) => journal.trim?.(at),
  release: (journal) => journal.release?.('s'),
  scopes: (journal) => journal.scopes?.(),
  forget: (journal) => journal.forget?.('s'),
  wakeTimes: (journal) => journal.wakeTimes?.set('s', null),
  desk: (journal) => journal.desk?.set('s', []),
  clockOffsetMs: (journal) => journal.clockOffsetMs?.(),
  tracesModelCalls: (journal) => journal.tracesModelCalls?.(),
  traceContextOf: (journal) => journal.traceContextOf?.(work),
  inSpanOf: (journal) => journal.inSpanOf?.(work, () => 1),
} satisfies Record<keyof Journal, (journal: Journal) => unknown>;

const members = Object.keys(calls) as (keyof Journal)[];

/** A journal that has every member and records each call. */
function noting(): { readonly journal: Journal; readonly called: string[] } {
  const called: string[] = [];
  const note =
    <T>(name: keyof Journal, result: T) =>
    (): T => {
      called.push(name);
      return result;
    };
  const journal: Required<Journal> = {
    append: note('append', undefined),
    read: note('read', []),
    readAfter: note('readAfter', null),
    claim: note('claim', undefined),
    trim: note('trim', undefined),
    release: note('release', undefined),
    scopes: note('scopes', []),
    forget: note('forget', undefined),
    wakeTimes: { set: note('wakeTimes', undefined), earliest: () => [] },
    desk: { set: note('desk', undefined), find: () => [] },
    clockOffsetMs: note('clockOffsetMs', 0),
    tracesModelCalls: note('tracesModelCalls', false),
    traceContextOf: note('traceContextOf', null),
    inSpanOf: (_work, call) => {
      called.push('inSpanOf');
      return call();
    },
  };
  return { journal, called };
}

/** The members that `tracedJournal` implements itself, because it writes the spans. */
const traces = ['tracesModelCalls', 'traceContextOf', 'inSpanOf'];
/** The wrapper folds the entries that it has seen until their scope is released. */
const folds = ['release'];

describe.each([
  ['redactingJournal', (journal: Journal) => redactingJournal(journal), [], []],
  [
    'encryptedJournal',
    (journal: Journal) =>
      encryptedJournal(journal, { key: Buffer.alloc(32, 1).toString('base64') }),
    [],
    [],
  ],
  ['tracedJournal', (journal: Journal) => tracedJournal(journal), traces, folds],
  ['meteredJournal', (journal: Journal) => meteredJournal(journal), [], folds],
  ['the journal of an MCP server', (journal: Journal) => keptEntries(journal).journal, [], []],
] as const)('%s', (_name, around, own, has) => {
  test.each(members.filter((name) => !(own as readonly string[]).includes(name)))(
    'forwards %s to the wrapped journal',
    async (name) => {
      const { journal, called } = noting();
      await calls[name](around(journal));
      expect(called).toContain(name);
    },
  );

  test('omits optional members that the wrapped journal lacks', () => {
    const { append, read } = noting().journal;
    const wrapped = around({ append, read });
    const optional = members.filter((name) => !['append', 'read', ...own, ...has].includes(name));
    expect(optional.filter((name) => wrapped[name] !== undefined)).toEqual([]);
  });
});
