// COMMIT-UNIT-9, COMMIT-UNIT-10, QUARANTINE-1 to QUARANTINE-3: an entry that cannot be applied never ends a session
// permanently. An earlier version wrote the journal in test/corpus. At that time, no process could resume it.

import { readFileSync } from 'node:fs';
import {
  exportRecording,
  checkRecording,
  parseRecording,
  replaySession,
} from '../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { describe, expect, test } from 'vitest';
import {
  createRuntime,
  memoryJournal,
  type RuntimeOptions,
  type SessionEvent,
} from '../../../src/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

const corpus = new URL('../../corpus/unfoldable-answer.json', import.meta.url);
const written = JSON.parse(readFileSync(corpus, 'utf8')) as readonly JournalEntry[];
const BAD = { scope: 'ses', unit: 'ses', seq: 17, event: 'answer.given' };

/** A journal with these entries. */
function journalOf(entries: readonly JournalEntry[]) {
  const journal = memoryJournal({ keep: Infinity });
  for (const entry of entries) journal.append(structuredClone(entry));
  return journal;
}

type Kept = ReturnType<typeof journalOf>;

let processes = 0;

/** A process that resumes the journal's session. */
function life(journal: Kept, options: Partial<RuntimeOptions> = {}) {
  processes += 1;
  const process = processes;
  const simulated = simulatedEnvironment({ startAt: (written.at(-1)?.at ?? 0) + 60_000 });
  const ids = { next: (prefix: string) => simulated.ids.next(`${prefix}_${process}_`) };
  const environment = { ...simulated, ids };
  const runtime = createRuntime({ environment, journal, ...options });
  return textTalk({
    sessionId: 'ses',
    runtime,
    environment,
    subagents: {
      ride: {
        script: turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
          say(`Booked: ${JSON.stringify(results)}`),
        ),
        config: { interactive: true },
      },
    },
  });
}

const quarantines = (entries: readonly JournalEntry[]) =>
  entries.filter(({ event }) => event.type === 'entry.set_aside');

const reported = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === 'error.reported' ? [event] : []));

describe('a journal from an earlier version with an answer that is not text', () => {
  test('opens with the entry quarantined and reported', async () => {
    const journal = journalOf(written);
    const talk = life(journal);
    await talk.start();
    expect(reported(talk.events)).toMatchObject([{ code: 'UNFOLDABLE_ENTRY', entry: BAD }]);
    expect(reported(talk.events)[0]?.message).toMatch(
      /entry 17 of ses in ses \(`answer\.given`\)/i,
    );
    expect(talk.events.find(({ type }) => type === 'session.recovered')).toMatchObject({
      setAside: [BAD],
    });
    expect(quarantines(journal.read())).toMatchObject([
      { unit: 'ses', seq: 19, actor: 'unit', event: { seq: 17, event: 'answer.given' } },
    ]);
    await talk.type('use ride');
    await talk.environment.advance(5000);
    const question = talk.state().questions.find(({ state }) => state === 'open');
    expect(question?.question).toBe('Which class?');
    await talk.session.answer(question?.requestId ?? '', { text: 'economy' });
    await talk.environment.advance(5000);
    expect(talk.said().join('\n')).toContain('economy');
    await talk.close();
  });

  test('opens in later processes without another report', async () => {
    const journal = journalOf(written);
    const first = life(journal);
    await first.start();
    const suspended = first.session.suspend();
    await first.environment.advance(1000);
    await suspended;
    const second = life(journal);
    await second.start();
    expect(reported(second.events)).toEqual([]);
    expect(quarantines(journal.read())).toHaveLength(1);
    await second.close();
    const third = life(journal);
    await third.start();
    expect(third.state().transcript).toEqual([]);
    await third.close();
  });

  test('delivers each result once and withdraws its question (P1)', async () => {
    const talk = life(journalOf(written));
    await talk.start();
    await talk.environment.advance(5000);
    expect(talk.state().subagents).toMatchObject([{ id: 'sub_1', outcome: { status: 'lost' } }]);
    expect(talk.state().questions.map(({ state }) => state)).toEqual(['withdrawn']);
    const told = talk.said().filter((text) => text.includes('KILLED') || text.includes('Killed'));
    expect(told.length).toBeLessThanOrEqual(1);
    await talk.close();
  });

  test('opens from a SQLite file', () => {
    const path = new URL('unfoldable-answer.journal', corpus).pathname;
    const journal = sqliteJournal({ path, environment: nodeEnvironment(), readOnly: true });
    expect(journal.read({ scope: 'ses' })).toEqual(written);
    journal.close();
  });

  test('ends as lost with `onUnfoldable: "lose"`, so that its id can start a new session', async () => {
    const journal = journalOf(written);
    await expect(life(journal, { onUnfoldable: 'lose' }).session.start()).rejects.toMatchObject({
      code: 'SESSION_LOST',
      message: expect.stringMatching(/Entry 17 of ses in ses/) as string,
    });
    expect(journal.read().at(-1)).toMatchObject({
      seq: 19,
      event: { type: 'session.lost', seq: 17, event: 'answer.given' },
    });
    const next = life(journal, { onUnfoldable: 'lose' });
    await next.start();
    expect(next.state()).toMatchObject({ connection: 'active', transcript: [], subagents: [] });
    await next.close();
  });

  test('shows the quarantined entry and its reason in a replay and in a recording', async () => {
    const journal = journalOf(written);
    const steps = [...replaySession(journal.read({ scope: 'ses' }))];
    expect(steps.filter(({ setAside }) => setAside !== null).map(({ number }) => number)).toEqual([
      steps.findIndex(({ entry }) => entry.event.type === 'answer.given') + 1,
    ]);
    const talk = life(journal);
    await talk.start();
    await talk.close();
    const recording = parseRecording(await exportRecording(journal, 'ses'));
    expect(checkRecording(recording)).toBeNull();
  });
});

const alive = written.filter(({ unit, seq }) => unit !== 'ses' || seq < 17);

test.each([
  [14, 'outbox'],
  [14, 'question:sub_1:1'],
  [14, 'batch:none'],
  [14, 'delivery:sub_1:1'],
  [14, 'member:call_1'],
  [14, 'place:sub_1:1'],
  [14, 'user'],
  [16, 'session'],
  [16, 'interaction'],
  [16, 'call:call_1'],
  [16, 'client:none'],
])(
  'quarantines entry %i, because its address `%s` does not accept events of its type',
  async (at, to) => {
    const entries = alive.map((entry) =>
      entry.unit === 'ses' && entry.seq === at ? { ...entry, actor: to } : entry,
    );
    const talk = life(journalOf(entries));
    await talk.start();
    expect(reported(talk.events)).toMatchObject([
      { code: 'UNFOLDABLE_ENTRY', entry: { unit: 'ses', seq: at } },
    ]);
    expect(talk.events.some(({ type }) => type === 'session.recovered')).toBe(true);
  },
);

test('does not quarantine any entry of the unmodified journal', async () => {
  const talk = life(journalOf(alive));
  await talk.start();
  expect(reported(talk.events)).toEqual([]);
});

test('QUARANTINE-2: leaves an entry quarantined even in a version that could read it', async () => {
  const entries = written.map((entry) =>
    entry.event.type === 'answer.given'
      ? { ...entry, event: { ...entry.event, text: 'economy' } }
      : entry,
  );
  const last = entries.findLast(({ unit }) => unit === 'ses') as JournalEntry;
  const quarantine: JournalEntry = {
    ...last,
    seq: last.seq + 1,
    actor: 'unit',
    event: { type: 'entry.set_aside', seq: 17, event: 'answer.given', reason: 'x' } as never,
  };
  const steps = [...replaySession([...entries, quarantine])];
  expect(steps.find(({ entry }) => entry.seq === 17)).toMatchObject({
    setAside: 'x',
    isAccepted: false,
  });
  expect(steps.at(-1)?.view.questions[0]).toMatchObject({ state: 'open', answer: null });
});

test('QUARANTINE-3: fails for gaps or entries of another version, whatever `onUnfoldable` is', async () => {
  const newer = written.map((entry) => ({ ...entry, definitionVersion: 99 }));
  await expect(life(journalOf(newer)).session.start()).rejects.toMatchObject({
    code: 'JOURNAL_VERSION',
  });
  const gap = written.filter(({ unit, seq }) => unit !== 'ses' || seq !== 9);
  await expect(life(journalOf(gap)).session.start()).rejects.toMatchObject({
    code: 'JOURNAL_GAP',
  });
});
