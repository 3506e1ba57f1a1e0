// SNAPSHOT-FORMS-1, SNAPSHOT-FORMS-2: snapshots from other versions of Offstage. The journal in test/corpus comes from
// a real earlier version. It stays readable when the form of snapshots changes.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  isUnreadable,
  readSnapshot,
  type SnapshotForms,
  type WrittenSnapshot,
} from '../../../src/actors/runtime/upcasters.ts';
import { nothingFollows, replayHost } from '../../../src/actors/replay/entry-by-entry.ts';
import { SessionRecords } from '../../../src/actors/session/state/session-records.ts';
import { SessionUnit } from '../../../src/actors/session/unit/session-unit.ts';
import { replaySession } from '../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { orderMonitor } from '../../support/order-monitor.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import {
  SNAPSHOT_FORMS,
  snapshotIn,
} from '../../../src/actors/session/lifecycle/session-journal.ts';

const written = JSON.parse(
  readFileSync(new URL('../../corpus/session-snapshot-1.json', import.meta.url), 'utf8'),
) as readonly JournalEntry[];

const of = (scope: string): readonly JournalEntry[] =>
  written.filter((entry) => entry.scope === scope);

const isSnapshot = ({ event }: JournalEntry): boolean => event.type === 'session.snapshot';

/** Returns the entries from the last snapshot on, as after trimming. */
const trimmed = (entries: readonly JournalEntry[]): readonly JournalEntry[] =>
  entries.slice(entries.findLastIndex(isSnapshot));

/** Returns the entries with snapshots in these versions. */
function ofVersions(
  entries: readonly JournalEntry[],
  versions: Readonly<Record<string, number>>,
): readonly JournalEntry[] {
  return entries.map((entry) => {
    if (!isSnapshot(entry)) return entry;
    const event = entry.event as WrittenSnapshot;
    return { ...entry, event: { ...event, versions: { ...event.versions, ...versions } } };
  });
}

const NEWER = { form: 7, session: 9 };

/** Starts a process that finds these entries. `trim`: the process trims the journal after it has made a snapshot. */
async function found(entries: readonly JournalEntry[], { trim = false } = {}) {
  const simulated = simulatedEnvironment({ startAt: (entries.at(-1)?.at ?? 0) + 1000 });
  // New ids must differ from those in the journal.
  const ids = { next: (prefix: string) => simulated.ids.next(`${prefix}_later`) };
  const environment = { ...simulated, ids };
  const claims = new Set<string>();
  const memory = memoryJournal({ keep: Infinity });
  for (const entry of entries) memory.append(entry);
  const [first] = entries;
  if (first) memory.trim(first);
  const journal = {
    ...memory,
    claim: (scope: string) => void claims.add(scope),
    release: (scope: string) => void claims.delete(scope),
  };
  const runtime = createRuntime({ environment, journal, snapshots: { trim } });
  const monitor = orderMonitor();
  const sessionId = first?.scope ?? '';
  const systems: string[] = [];
  const talk = textTalk({
    onModelCall: (who, { system }) => void (who === 'paint' && systems.push(system)),
    sessionId,
    runtime,
    environment,
    subagents: {
      report: { script: turns(say('Revenue rose by 4 %.')) },
      paint: {
        script: turns(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
          say(`Painted: ${JSON.stringify(results.at(-1))}`),
        ),
        config: { interactive: true, inputTimeout: 600_000 },
      },
    },
    ...(sessionId === 'shop' && { services: [monitor.service] }),
  });
  return { ...talk, journal, claims, monitor, sessionId, systems };
}

const ways = [
  ['chat', 'all of it'],
  ['chat', 'what is left when it was trimmed'],
  ['shop', 'all of it'],
  ['shop', 'what is left when it was trimmed'],
] as const;

describe('a snapshot that an earlier version wrote', () => {
  test.each(ways)('continues %s: %s', async (scope, what) => {
    const all = of(scope);
    const { start, type, state, said, errors, monitor, environment } = await found(
      what === 'all of it' ? all : trimmed(all),
    );
    await start();
    const question = state().questions.find(({ state: one }) => one === 'open');
    expect(question?.question).toBe('Which colour?');
    const texts = state().transcript.map(({ text }) => text);
    expect(texts).toContain(scope === 'chat' ? 'hello' : 'good morning');
    expect(texts.join()).toContain(
      scope === 'chat' ? 'Revenue rose by 4 %.' : 'Order 7 was shipped.',
    );
    await type('blue');
    await environment.advance(5000);
    expect(said().at(-1)).toMatch(/Told: .*Painted: .*blue/s);
    if (scope === 'shop') {
      await monitor.happens({ order: 8, say: 'Order 8 was shipped.' });
      await type('thanks');
      expect(said().join()).toContain('Order 8 was shipped.');
      expect(said().join()).not.toContain('Order 7');
    }
    expect(errors).toEqual([]);
  });

  test('SUBPROMPT-3: gives a subagent the known conversation as a quotation', async () => {
    const { start, type, systems, environment } = await found(of('chat'));
    await start();
    await type('blue');
    await environment.advance(5000);
    expect(systems[0]).toMatch(
      /\n\n\[note\] The conversation so far.*\n\[data\] \{"recentConversation":\[\{"user":"hello"\}.*\}\s*$/,
    );
  });

  test.each(['chat', 'shop'])('SNAPSHOT-FORMS-1: restores every value of %s unchanged', (scope) => {
    const [entry] = trimmed(of(scope));
    const snapshot = entry && snapshotIn(entry);
    if (!snapshot) throw new Error('Expected a snapshot that can be read');
    const records = new SessionRecords('nobody');
    const ports = { ...nothingFollows, draft: records.draft, fold: () => [] };
    const unit = new SessionUnit(replayHost(entry.at), { id: scope, ...snapshot.inputs }, ports);
    unit.restore(snapshot.unit, snapshot.inputs, entry.seq);
    records.restore(snapshot.books);
    // Earlier versions marked the members that had an actor; now all of them are records.
    const unmarked = JSON.parse(
      JSON.stringify(snapshot.unit, (key, value: unknown) =>
        key === 'isAwake' ? undefined : value,
      ),
    ) as object;
    // Earlier versions copied the deliveries that follow from a question or a call.
    const { questions, calls, deliveries } = snapshot.books;
    const copied = new Set([
      ...questions.map(({ requestId }) => requestId),
      ...calls.map(({ callId }) => callId),
    ]);
    const own = deliveries.filter(({ deliveryId }) => !copied.has(deliveryId));
    for (const { deliveryId } of deliveries) expect(records.delivery(deliveryId)).toBeDefined();
    // The snapshot may contain members that are new in this version.
    expect(
      JSON.parse(JSON.stringify({ unit: unit.toSnapshot(), records: records.toSnapshot() })),
    ).toMatchObject({
      unit: unmarked,
      records: { ...snapshot.books, deliveries: own },
    });
  });
});

describe('SNAPSHOT-FORMS-1: a snapshot of an older form', () => {
  const [chat] = trimmed(of('chat')) as [JournalEntry];
  /** Form 2 calls the records a ledger, and form 3 has another machine for the session. */
  const forms: SnapshotForms = {
    type: 'session.snapshot',
    versions: { form: 3, session: 3, subagent: 3, service: 1 },
    upcasters: {
      1: ({ records, ...rest }: WrittenSnapshot & { readonly records?: unknown }) =>
        ({ ...rest, ledger: records }) as WrittenSnapshot,
      2: (snapshot) => ({ ...snapshot, versions: { ...snapshot.versions, session: 3 } }),
    },
  };

  test('passes through the intermediate forms in order', () => {
    const { records, ...rest } = chat.event as unknown as Record<string, unknown>;
    expect(readSnapshot(chat, forms)).toEqual({
      ...rest,
      ledger: records,
      versions: forms.versions,
    });
    expect(snapshotIn(chat, forms)).toMatchObject({ ledger: records });
  });

  test.each([
    ['a step is missing', { ...forms, upcasters: { 1: forms.upcasters[1] } }],
    [
      'a machine has changed that no step tells of',
      {
        ...forms,
        upcasters: { ...forms.upcasters, 2: forms.upcasters[2] },
        versions: { ...forms.versions, subagent: 4 },
      },
    ],
    [
      'it has something that this version does not know',
      { ...forms, versions: { form: 3, session: 3, subagent: 3 } },
    ],
  ] as const)('cannot be read if %s', (_, other) => {
    expect(isUnreadable(chat, other as SnapshotForms)).toBe(true);
    expect(readSnapshot(chat, other as SnapshotForms)).toBeNull();
  });

  test('cannot be read by the previous version, although other entries can', () => {
    const [newer] = ofVersions([chat], NEWER) as [JournalEntry];
    expect(isUnreadable(newer, SNAPSHOT_FORMS)).toBe(true);
    const [opened] = of('chat') as [JournalEntry];
    expect([readSnapshot(opened, forms), isUnreadable(opened, forms)]).toEqual([null, false]);
  });
});

describe('SNAPSHOT-FORMS-2: a snapshot that cannot be read', () => {
  test('counts as missing if the earlier entries exist, and prevents their trimming', async () => {
    const entries = ofVersions(of('chat'), NEWER);
    const { start, type, state, said, session, journal } = await found(entries, { trim: true });
    await start();
    expect(state().questions.find(({ state: one }) => one === 'open')?.question).toBe(
      'Which colour?',
    );
    await type('blue');
    expect(said().at(-1)).toMatch(/Told: .*Painted: .*blue/s);
    expect(await session.hibernate()).toBe(true);
    const kept = journal.read();
    expect(kept.slice(0, entries.length)).toEqual(entries);
    expect(kept.filter(isSnapshot)).toHaveLength(2);

    // The session reads the snapshot of this version. The other one stays for a version that can read it.
    const next = await found(kept, { trim: true });
    await next.start();
    await next.type('hello again');
    expect(await next.session.hibernate()).toBe(true);
    expect(next.journal.read().slice(0, kept.length)).toEqual(kept);
  });

  test('does not prevent trimming before a readable snapshot', async () => {
    const { start, type, session, journal } = await found(of('chat'), { trim: true });
    await start();
    await type('blue');
    expect(await session.hibernate()).toBe(true);
    expect(journal.read().filter(isSnapshot)).toHaveLength(1);
    expect(journal.read()[0]?.event.type).toBe('session.snapshot');
  });

  test.each([
    [
      'newer',
      NEWER,
      'form 7 (session 9, subagent 3, service 1)',
      /newer version .*update this process/,
    ],
    [
      'older',
      { form: 0 },
      'form 0 (session 2, subagent 3, service 1)',
      /older version .*until it is closed/,
    ],
  ])(
    'fails in a %s version if nothing else is left, and no process claims the session',
    async (_, versions, said, advice) => {
      const entries = trimmed(ofVersions(of('chat'), versions));
      const { start, session, journal, claims } = await found(entries);
      const refused = start();
      await expect(refused).rejects.toMatchObject({ code: 'JOURNAL_VERSION', retryable: false });
      await expect(refused).rejects.toThrow(said);
      await expect(refused).rejects.toThrow(
        `reads form 1 (session 2, subagent 3, service 1), and the entries before it were trimmed away`,
      );
      await expect(refused).rejects.toThrow(advice);
      // Another process can resume the session.
      expect(claims.size).toBe(0);
      await session.close();
      expect(journal.read()).toEqual(entries);
      expect(() => [...replaySession(entries)]).toThrow(
        expect.objectContaining({ code: 'JOURNAL_VERSION' }),
      );
    },
  );

  test('prevents the start if an interrupted trim left only some of the earlier entries', async () => {
    const all = ofVersions(of('chat'), NEWER);
    const spawned = all.findIndex(({ unit, seq }) => unit === 'sub_2' && seq === 1);
    expect(spawned).toBeGreaterThan(0);
    const { start } = await found(all.slice(spawned));
    await expect(start()).rejects.toMatchObject({ code: 'JOURNAL_VERSION' });
  });
});

describe('a trimmed journal whose only snapshot cannot be read', () => {
  const [snapshot] = trimmed(of('chat'));
  if (!snapshot) throw new Error('Expected a snapshot');
  const { scope, unit, seq } = snapshot;
  const broken: JournalEntry = { ...snapshot, event: { ...snapshot.event, unit: 42 } as never };
  const quarantine: JournalEntry = {
    ...snapshot,
    seq: seq + 1,
    event: {
      type: 'entry.set_aside',
      seq,
      event: 'session.snapshot',
      reason: 'it was bad',
    } as never,
  };

  test.each([
    ['it is broken', [broken], 'number'],
    ['an earlier process quarantined it', [snapshot, quarantine], 'it was bad'],
  ] as const)(
    '%s: fails with JOURNAL_CUT, names the snapshot and the remedy, and writes nothing',
    async (_, entries, why) => {
      const { start, journal, claims, sessionId } = await found(entries);
      const error: unknown = await start().then(
        () => null,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({
        name: 'JournalError',
        code: 'JOURNAL_CUT',
        retryable: false,
        cause: { code: 'UNFOLDABLE_ENTRY', entry: { scope, unit, seq, event: 'session.snapshot' } },
      });
      const { message } = error as Error;
      expect(message).toContain(`first entry of ${unit} in ${scope} is entry ${seq}`);
      expect(message).toContain(why);
      expect(message).toContain('Restore the journal from a copy, or delete the scope');
      expect(journal.read({ scope: sessionId })).toEqual(entries);
      expect([...claims]).toEqual([]);
    },
  );
});
