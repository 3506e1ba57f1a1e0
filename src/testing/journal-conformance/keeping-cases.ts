// A journal keeps the entries that are appended to it: in order, once each, and unchanged.

import type { JournalEntry } from '../../actors/ports/journal.ts';
import {
  appendAll,
  appendAtOnce,
  claimAll,
  entry,
  expectKept,
  expectSameInEachScope,
  expectRefused,
  withEvent,
  scenesOf,
  type JournalScene,
} from './case.ts';

/** The entries of a session that assigns work to two subagents, in the order in which the events happened. */
const conversation: readonly JournalEntry[] = [
  entry(1, { unit: 'ses' }),
  entry(1, { unit: 'sub_b' }),
  entry(2, { unit: 'ses' }),
  entry(1, { unit: 'sub_a' }),
  entry(2, { unit: 'sub_b' }),
  entry(3, { unit: 'ses' }),
  entry(3, { unit: 'sub_b' }),
  entry(2, { unit: 'sub_a' }),
];

/** JSON values that other stores have corrupted. */
const values: Readonly<Record<string, string>> = {
  'letters of many alphabets': JSON.stringify('äöü ß 日本語 עברית 🚕👩‍👩‍👧 \u{10FFFF} é'),
  'what ends a line, and what is nothing': JSON.stringify(
    'a\u0000b\n\r\t\u2028\u2029\u007f\\"\'%_',
  ),
  'half a character': String.raw`"\ud83d and \ude95"`,
  'numbers at the limits':
    '[9007199254740991,-9007199254740991,1e308,5e-324,0.1,0.30000000000000004,123456789012345680000]',
  'nothing, in all forms': '[null,"",[],{},0,false,[null],{"a":null}]',
  'names of properties that mean something': String.raw`{"__proto__":{"polluted":true},"constructor":1,"toString":null,"":2,"a.b":3,"$c":4,"länge":5}`,
  'things within things': `${'[{"in":'.repeat(60)}"the end"${'}]'.repeat(60)}`,
  'a long text': JSON.stringify('lorem ipsum '.repeat(100_000)),
  'texts that look like something else': String.raw`["null","{}","1","\\x41","'; drop table entries; --","2024-01-01T00:00:00Z"]`,
};

export const keepingScenes: readonly JournalScene[] = [
  ...scenesOf([], {
    async 'a journal without entries is read as empty'({ journal }) {
      await expectKept(journal, []);
      await expectKept(journal, [], { scope: 'scope' });
      await expectKept(journal, [], { scope: 'scope', unit: 'unit' });
    },
    async 'what was appended is there when the append returns'({ journal }) {
      for (let seq = 1; seq <= 5; seq += 1) {
        await appendAll(journal, [entry(seq)]);
        const soFar = Array.from({ length: seq }, (_, index) => entry(index + 1));
        await expectKept(journal, soFar, { scope: 'scope' });
      }
    },
    async 'entries of a scope keep their order, across its units'({ journal }) {
      await appendAll(journal, conversation);
      await expectKept(journal, conversation, { scope: 'scope' });
      await expectKept(journal, conversation);
    },
    async 'also when none of the appends waits for the one before'({ journal }) {
      const entries = Array.from({ length: 300 }, (_, index) =>
        entry(1, { scope: `scope ${index % 3}`, unit: `unit ${(index * 7919) % 300}` }),
      );
      await appendAtOnce(journal, entries);
      expectSameInEachScope(await journal.read(), entries, 'read()');
      for (const scope of new Set(entries.map((one) => one.scope)))
        await expectKept(
          journal,
          entries.filter((one) => one.scope === scope),
          { scope },
        );
    },
    async 'more entries than fit into one page of anything'({ journal }) {
      const units = Array.from({ length: 50 }, (_, number) => `unit ${number}`);
      const entries: JournalEntry[] = [];
      for (let seq = 1; seq <= 110; seq += 1)
        for (const unit of units) entries.push(entry(seq, { unit }));
      await claimAll(journal, entries);
      await Promise.all(
        units.map(async (unit) => {
          for (const one of entries) if (one.unit === unit) await journal.append(one);
        }),
      );
      await expectKept(journal, entries, { scope: 'scope' });
    },
    async 'a query finds what it asks for, and nothing else'({ journal }) {
      const other = conversation.map((one) => ({ ...one, scope: 'other' }));
      const both = conversation.flatMap((one, at) => [one, other[at] ?? one]);
      await appendAll(journal, both);
      const unit = 'sub_b';
      const ofUnit = (entries: readonly JournalEntry[]) =>
        entries.filter((one) => one.unit === unit);
      expectSameInEachScope(await journal.read(), both, 'read()');
      expectSameInEachScope(await journal.read({ unit }), ofUnit(both), 'read({ unit })');
      await expectKept(journal, other, { scope: 'other' });
      await expectKept(journal, ofUnit(other), { scope: 'other', unit });
      await expectKept(journal, [], { scope: 'scope', unit: 'nobody' });
      await expectKept(journal, [], { scope: 'ses' });
      await expectKept(journal, [], { scope: '' });
    },
    async 'the same entry again is kept once, and is no error'({ journal }) {
      await appendAll(journal, [
        entry(1),
        entry(1),
        entry(1, { unit: 'other' }),
        entry(2),
        entry(2),
      ]);
      const copy = JSON.parse(JSON.stringify(entry(2))) as JournalEntry;
      await journal.append(copy);
      await expectKept(journal, [entry(1), entry(1, { unit: 'other' }), entry(2)]);
    },
    async 'another entry with the same number is refused for good, and harms no other'({
      journal,
    }) {
      await appendAll(journal, [entry(1), entry(2)]);
      const other = entry(2, { text: 'something else' });
      const beside = entry(1, { unit: 'beside' });
      await Promise.all([
        expectRefused('another entry 2', () => journal.append(other), {
          code: 'JOURNAL_CONFLICT',
          isForGood: true,
        }),
        journal.append(beside),
      ]);
      await appendAll(journal, [entry(3)]);
      await expectKept(journal, [entry(1), entry(2), beside, entry(3)]);
    },
    async 'an entry that cannot be kept is refused for good, and harms no other'({ journal }) {
      await appendAll(journal, [entry(1)]);
      const good = [entry(2), entry(1, { unit: 'beside' }), entry(3)];
      const bad = (change: Partial<Record<keyof JournalEntry, unknown>>): JournalEntry =>
        ({ ...entry(1, { unit: 'bad' }), ...change }) as JournalEntry;
      const refused = Object.entries({
        'a number that is none': bad({ seq: 1.5 }),
        'a number below 1': bad({ seq: 0 }),
        'a number beyond all limits': bad({ seq: 2 ** 40 }),
        'no time': bad({ at: Number.NaN }),
        'an endless time': bad({ at: Infinity }),
        'an actor with the character 0': bad({ actor: 'call:a\0b' }),
        'a unit with half a character': bad({ unit: 'sub_\uD800' }),
        'a unit whose name is too long': bad({ unit: 'x'.repeat(100_000) }),
        'no event': bad({ event: null }),
      });
      const under: Promise<void>[] = [];
      for (const [index, [what, one]] of refused.entries()) {
        under.push(
          expectRefused(what, () => journal.append(one), {
            code: 'INVALID_ENTRY',
            isForGood: true,
          }),
        );
        const next = good[index];
        if (next) under.push((async () => journal.append(next))());
      }
      await Promise.all(under);
      await expectKept(journal, [entry(1), ...good], { scope: 'scope' });
    },
    async 'the same unit in two scopes is two units'({ journal }) {
      const one = entry(1, { scope: 'one', text: 'this' });
      const two = entry(1, { scope: 'two', text: 'that' });
      await appendAll(journal, [one, two]);
      await expectKept(journal, [one], { scope: 'one' });
      await expectKept(journal, [two], { scope: 'two' });
    },
    async 'names are kept as they are, however they look'({ journal }) {
      const names = [
        'a/b',
        'A/b',
        'a/b ',
        '%',
        '_',
        "o'hara",
        '"',
        'ünï 🚕',
        'x'.repeat(500),
        '\\',
        '__proto__',
      ];
      const entries = names.flatMap((name) => [
        withEvent({ type: 'said' }, { scope: name, unit: name, actor: name }),
      ]);
      await appendAll(journal, entries);
      for (const one of entries) {
        await expectKept(journal, [one], { scope: one.scope });
        await expectKept(journal, [one], { scope: one.scope, unit: one.unit });
      }
    },
  }),
  ...scenesOf(
    [],
    Object.fromEntries(
      Object.entries(values).map(([what, json]) => [
        `events are kept as they are: ${what}`,
        async ({ journal }) => {
          // A spread or an object literal would change the meaning of `__proto__`.
          const event = JSON.parse(`{"type":"said","value":${json}}`) as {
            type: string;
            value: unknown;
          };
          await appendAll(journal, [withEvent(event), entry(2)]);
          await expectKept(journal, [withEvent(event), entry(2)], { scope: 'scope' });
        },
      ]),
    ),
  ),
];
