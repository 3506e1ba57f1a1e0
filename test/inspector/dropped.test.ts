// A session whose journal has dropped its first entries. The inspector shows, replays, forks and saves the rest.

import { expect, test } from 'vitest';
import { JournalError, type JournalEntry } from '../../src/entries/journal.ts';
import { checkRecording, parseRecording, replaySession } from '../../src/entries/replay.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { createRuntime, memoryJournal, type Journal } from '../../src/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { mounted, type Mounted } from './support.ts';

/** A conversation of more than `words` entries that starts with a booking. */
async function long(journal: Journal, afterEntries: number, words = 60) {
  const runtime = createRuntime({ journal, snapshots: { afterEntries } });
  const session = rideSession({ sessionId: 'ses_1', runtime });
  await session.start();
  const leave = session.attach();
  await session.sendText('use book_ride');
  await session.idle();
  for (let said = 1; said <= words; said += 1) {
    await session.sendText(`word ${said}`);
    await session.idle();
  }
  const close = async () => {
    leave();
    await session.close();
  };
  return { session, close };
}

/** Time stands still, so each request reads the journal. */
const environment = { ...nodeEnvironment(), clock: { now: () => 1_000 } };

interface Told {
  readonly count: number;
  readonly epoch: string;
  readonly isDropped: boolean;
  readonly stateFrom: number | null;
  readonly failure: string | null;
  readonly entries: readonly {
    readonly unit: string;
    readonly seq: number;
    readonly type: string;
    readonly changes: Readonly<Record<string, string | null>>;
    readonly spawned?: Readonly<Record<string, { readonly name: string }>>;
  }[];
}

const told = async ({ ask }: Mounted): Promise<Told> =>
  (await (await ask('entries?session=ses_1')).json()) as Told;
const at = async ({ ask }: Mounted, entry: number, id = 'session') =>
  (await (await ask(`at?session=ses_1&entry=${entry}&id=${encodeURIComponent(id)}`)).json()) as {
    readonly value: unknown;
    readonly event: unknown;
    readonly wait: { readonly sentence: string } | null;
  };
const fork = async ({ ask }: Mounted, entry: number, to: string) =>
  (await (
    await ask('fork', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ session: 'ses_1', entry, to }),
    })
  ).json()) as { readonly ok: boolean; readonly code?: string };

/** All facts that follow these entries. */
function factsOf(entries: Iterable<JournalEntry>): Map<string, string> {
  const facts = new Map<string, string>();
  for (const { changes } of replaySession(entries))
    for (const [name, value] of Object.entries(changes))
      if (value === null) facts.delete(name);
      else facts.set(name, value);
  return facts;
}

test('INSPECTED-5: reports how many entries an in-memory journal has dropped, and shows the rest', async () => {
  const whole = memoryJournal({ keep: Infinity });
  const kept = memoryJournal({ keep: 120 });
  const both: Journal = {
    append(entry) {
      whole.append(entry);
      kept.append(entry);
    },
    read: (query) => whole.read(query),
  };
  const { session, close } = await long(both, 70);
  const page = await mounted({
    journal: kept,
    redact: false,
    forks: true,
    act: () => session,
    environment,
  });
  const shown = await told(page);
  expect(shown).toMatchObject({ isDropped: true, stateFrom: 1, failure: null });
  expect(shown.count).toBeLessThan(whole.read().length / 2);
  expect(shown.entries[0]?.type).toBe('session.snapshot');
  expect(Object.values(shown.entries[0]?.changes ?? {})).toContain('use book_ride');
  // The subagent, its name and the earlier messages come from the snapshot.
  const [subagent] = session.subagents.list();
  expect(shown.entries[0]?.spawned).toEqual({
    [subagent?.id ?? '']: { name: 'book_ride', parentId: null },
  });
  const all = factsOf(whole.read());
  const rest = factsOf(kept.read({ scope: 'ses_1' }));
  const lasting = (facts: Map<string, string>) =>
    [...facts].filter(([name]) => /^(?:subagent|user|assistant|owner|question) /.test(`${name} `));
  expect(lasting(rest)).toEqual(expect.arrayContaining(lasting(all)));
  const question = `question ${subagent?.id}.q1`;
  const atEnd = await at(page, shown.count, question);
  expect(atEnd.wait?.sentence).toBeTruthy();
  expect(await at(page, 3, question)).toMatchObject({ wait: atEnd.wait });

  // The journal drops more entries while the page is open. The page still shows these entries with their numbers.
  const last = shown.entries[shown.count - 1];
  for (let said = 1; said <= 60; said += 1) {
    await session.sendText(`later ${said}`);
    await session.idle();
    if (said % 5 === 0) await told(page);
  }
  expect(kept.read({ scope: 'ses_1' })[0]).not.toMatchObject({ seq: shown.entries[0]?.seq });
  const grown = await told(page);
  expect(grown.epoch).toBe(shown.epoch);
  expect(grown.entries[shown.count - 1]).toEqual(last);

  // A fork and a test that start at an entry that the journal has dropped.
  expect(await fork(page, shown.count, 'ses_2')).toMatchObject({ ok: true });
  const copied = kept.read({ scope: 'ses_2' });
  expect(copied).toHaveLength(shown.count);
  expect(copied.at(-1)).toMatchObject({ seq: last?.seq });
  const saved = (await (await page.ask(`test?session=ses_1&entry=${shown.count}`)).json()) as {
    readonly text: string;
  };
  const lines = /const lines = (\[[\s\S]*?\n\]);/.exec(saved.text)?.[1]?.replace(/,\n\]$/, '\n]');
  const recording = parseRecording((JSON.parse(lines ?? '[]') as string[]).join('\n'));
  expect(recording.steps).toHaveLength(shown.count);
  expect(checkRecording(recording)).toBeNull();
  await close();

  // The fork resumes from the snapshot, in which the question is still open.
  const again = rideSession({ sessionId: 'ses_2', runtime: createRuntime({ journal: kept }) });
  await again.start();
  expect(again.store.getSnapshot().context.questions).toMatchObject([
    { requestId: `${subagent?.id}.q1` },
  ]);
  expect(page.errors).toEqual([]);
  await again.close();
});

test('INSPECTED-5: shows entries before the first snapshot, and the state from the snapshot on', async () => {
  const whole = memoryJournal({ keep: Infinity });
  const { close } = await long(whole, 150, 50);
  await close();
  const entries = whole.read();
  const snapshot = entries.findIndex(({ event }) => event.type === 'session.snapshot');
  expect(snapshot).toBeGreaterThan(100);
  let end = snapshot;
  const kept = () => entries.slice(40, end);
  const page = await mounted({
    redact: false,
    forks: true,
    environment,
    journal: {
      append() {},
      read({ scope } = {}) {
        if (scope !== undefined) throw new JournalError('JOURNAL_CUT', 'x', { retryable: false });
        return kept();
      },
      readAfter: ({ unit, seq }) => {
        const now = kept();
        return now.slice(now.findIndex((each) => each.unit === unit && each.seq === seq) + 1);
      },
    },
  });
  const cut = await told(page);
  expect(cut).toMatchObject({
    isDropped: true,
    stateFrom: null,
    count: snapshot - 40,
    failure: null,
  });
  expect(cut.entries.every(({ changes }) => Object.keys(changes).length === 0)).toBe(true);
  expect(await at(page, 5)).toMatchObject({ value: null, event: entries[44]?.event });
  expect(await fork(page, 5, 'ses_2')).toMatchObject({ ok: false, code: 'JOURNAL_CUT' });
  expect((await page.ask('test?session=ses_1&entry=5')).status).toBe(404);

  end = entries.length;
  await expect.poll(async () => (await told(page)).count).toBe(end - 40);
  const known = await told(page);
  const from = snapshot - 40 + 1;
  expect(known).toMatchObject({ stateFrom: from, epoch: cut.epoch, failure: null });
  expect((await at(page, from - 1)).value).toBeNull();
  const values: unknown[] = [];
  for (const { machines } of replaySession(entries)) values.push(machines?.session?.value);
  for (const n of [from, from + 1, known.count - 1, known.count, from + 2]) {
    const { event, value } = await at(page, n);
    expect([(event as { readonly type: string }).type, value]).toEqual([
      entries[n + 39]?.event.type,
      values[n + 39],
    ]);
  }
  expect(page.errors).toEqual([]);
});

test('MEMORY-JOURNAL-3: continues a session from its snapshot once the journal exceeds its limit', async () => {
  const journal = memoryJournal({ keep: 100 });
  const { session } = await long(journal, 60);
  const { transcript, questions } = session.store.getSnapshot().context;
  expect(transcript.length).toBeGreaterThan(60);
  await session.suspend();
  const again = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await again.start();
  expect(again.store.getSnapshot().context).toMatchObject({ transcript, questions });
  await again.close();
});
