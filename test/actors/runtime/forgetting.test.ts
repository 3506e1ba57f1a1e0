// FORGETTING-1, FORGETTING-2: after forgetting, no store contains a planted word in its raw bytes.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileMemory } from '../../../src/adapters/memory-file/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { applyRetention, forgetSession } from '../../../src/entries/journal.ts';
import { CapacityError, createRuntime, memoryJournal, type Journal } from '../../../src/index.ts';
import { workingMemory } from '../../../src/entries/memory.ts';
import { JobError } from '../../../src/entries/jobs.ts';
import { simulatedEnvironment, simulatedJobs } from '../../../src/testing/index.ts';
import { entry } from '../../../src/testing/journal-conformance/case.ts';
import { textTalk } from '../../support/text-talk.ts';

const WORD = 'Xylophonmusik';
const DAY_MS = 24 * 3_600_000;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-forget-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Returns the files whose raw bytes contain the word. */
const filesWith = (folder: string): string[] =>
  readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(WORD));

test.each([{ trim: true }, { trim: false }])(
  "removes a user's message from every file when the session is deleted, with %j",
  async ({ trim }) => {
    const folder = newFolder();
    const environment = simulatedEnvironment();
    const journal = sqliteJournal({ path: join(folder, 'chats.journal'), environment });
    const facts = fileMemory({ path: join(folder, 'facts.jsonl') });
    const notes = workingMemory();
    const snapshots = { trim, afterEntries: 5 };
    const runtime = createRuntime({ environment, journal, snapshots });
    for (const [sessionId, said] of [
      ['gone', WORD],
      ['kept', 'hello'],
    ] as const) {
      const { session } = textTalk({ sessionId, runtime });
      await session.start();
      for (let turn = 0; turn < 10; turn += 1)
        await Promise.all([session.sendText(`${said} ${turn}`), environment.advance(1000)]);
      await Promise.all([session.suspend(), environment.advance(1000)]);
      await facts.remember({ id: said, scope: 'ann', text: said, at: 1, source: sessionId });
      const owner = { sessionId, path: [] };
      await notes.save(owner, { key: 'note', value: said });
    }
    expect(filesWith(folder)).toEqual(expect.arrayContaining(['chats.journal-wal', 'facts.jsonl']));
    const also: string[] = [];
    await forgetSession('gone', {
      journal,
      workingMemory: notes,
      memory: { store: facts, scope: 'ann' },
      also: (sessionId) => void also.push(sessionId),
    });
    expect(filesWith(folder)).toEqual([]);
    expect(also).toEqual(['gone']);
    expect(journal.read({ scope: 'gone' })).toEqual([]);
    expect(journal.read({ scope: 'kept' }).length).toBeGreaterThan(0);
    expect(await facts.facts({ scope: 'ann', limit: 9 })).toMatchObject([{ text: 'hello' }]);
    const noteOf = async (sessionId: string) =>
      (await notes.get({ sessionId, path: [] }, 'note')).ok;
    expect([await noteOf('gone'), await noteOf('kept')]).toEqual([false, true]);
    journal.close();
    expect(filesWith(folder)).toEqual([]);
  },
);

test('FORGETTING-1: deletes the remaining entries in the next call after a failure', async () => {
  const journal = memoryJournal();
  journal.append(entry(1));
  const stores = { journal, also: () => Promise.reject(new Error('the disk is away')) };
  await expect(forgetSession('scope', stores)).rejects.toThrow('the disk is away');
  expect(journal.read()).toEqual([entry(1)]);
  await forgetSession('scope', { journal });
  expect(journal.read()).toEqual([]);
});

function journalOf(ages: Readonly<Record<string, number>>, now: number): Journal {
  const journal = memoryJournal();
  for (const [scope, days] of Object.entries(ages))
    journal.append({ ...entry(1, { scope }), at: now - days * DAY_MS });
  return journal;
}

test.each([
  [{ maxAgeMs: 30 * DAY_MS }, ['old', 'older']],
  [{ maxSessions: 1 }, ['month', 'old', 'older']],
  [{ maxSessions: 3, maxAgeMs: 35 * DAY_MS }, ['old', 'older']],
  [{ maxAgeMs: 30 * DAY_MS, keep: ({ scope }: { scope: string }) => scope === 'old' }, ['older']],
  [{}, []],
])('a policy deletes the sessions that it does not keep: %j', async (policy, expected) => {
  const { clock } = simulatedEnvironment();
  const journal = journalOf({ old: 40, new: 1, older: 50, month: 29 }, clock.now());
  expect((await applyRetention({ journal, clock }, policy)).toSorted()).toEqual(expected);
  const left = await journal.scopes?.();
  expect(left?.map(({ scope }) => scope)).toHaveLength(4 - expected.length);
});

test("determines a session's age by the wall clock, not by the actors' clock", async () => {
  const { clock } = simulatedEnvironment();
  const journal = journalOf({ today: 0, old: 40 }, clock.now());
  const glitched = { now: () => clock.now() + 40 * DAY_MS, wall: () => clock.now() };
  const stores = { journal, clock: glitched };
  expect(await applyRetention(stores, { maxAgeMs: 30 * DAY_MS })).toEqual(['old']);
});

test('FORGETTING-2: skips a session that another process holds', async () => {
  const { clock } = simulatedEnvironment();
  const store = journalOf({ busy: 40, old: 40 }, clock.now());
  const journal: Journal = {
    ...store,
    claim(scope) {
      if (scope === 'busy') throw new CapacityError('SCOPE_IN_USE', scope);
    },
  };
  expect(await applyRetention({ journal, clock }, { maxAgeMs: DAY_MS })).toEqual(['old']);
  await expect(forgetSession('busy', { journal })).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
});

test('FORGETTING-2: releases the claim, even if something cannot be deleted', async () => {
  const claims: string[] = [];
  const journal: Journal = {
    ...memoryJournal(),
    claim: (scope) => void claims.push(`claim ${scope}`),
    release: (scope) => void claims.push(`release ${scope}`),
  };
  await forgetSession('a', { journal });
  const full = new Error('the disk is away');
  await expect(forgetSession('b', { journal, also: () => Promise.reject(full) })).rejects.toBe(
    full,
  );
  expect(claims).toEqual(['claim a', 'release a', 'claim b', 'release b']);
});

test('refuses invalid arguments', async () => {
  const { clock } = simulatedEnvironment();
  const journal = memoryJournal();
  const refused = { code: 'INVALID_ARGUMENT' };
  await expect(forgetSession('', { journal })).rejects.toMatchObject(refused);
  await expect(forgetSession('a', { journal: {} } as never)).rejects.toMatchObject(refused);
  await expect(forgetSession('a', { journal, files: 1 } as never)).rejects.toMatchObject(refused);
  await expect(applyRetention({ journal, clock }, { maxAgeMs: -1 })).rejects.toMatchObject(refused);
  const blind = { append: () => {}, read: () => [], forget: () => {} };
  await expect(applyRetention({ journal: blind, clock }, {})).rejects.toMatchObject(refused);
});

test("FORGETTING-1: deletes a session's jobs before its journal, and keeps both if the engine fails", async () => {
  const journal = memoryJournal();
  const engine = simulatedJobs({ handler: { do: ({ body }) => Promise.resolve({ done: body }) } });
  const { signal } = new AbortController();
  for (const key of ['gone/sub:1', 'gone/sub:2', 'gone2/sub:1'])
    await engine.run({ key, name: 'a step', once: true, body: WORD }, { signal });
  journal.append(entry(1, { scope: 'gone' }));
  const away = new JobError('JOBS_UNREACHABLE', 'away', { retryable: true });
  const failing = { ...engine, forget: () => Promise.reject(away) };
  await expect(forgetSession('gone', { journal, jobs: failing })).rejects.toBe(away);
  expect(journal.read({ scope: 'gone' })).toHaveLength(1);
  await forgetSession('gone', { journal, jobs: engine });
  expect(journal.read({ scope: 'gone' })).toEqual([]);
  for (const key of ['gone/sub:1', 'gone2/sub:1'])
    await engine.run({ key, name: 'a step', once: true, body: 'again' }, { signal });
  expect(engine.begun.filter(({ body }) => body === 'again').map(({ key }) => key)).toEqual([
    'gone/sub:1',
  ]);
});

test('refuses to forget a session if the engine cannot delete its jobs', async () => {
  const { forget, ...engine } = simulatedJobs({
    handler: { do: () => Promise.resolve({ done: '' }) },
  });
  expect(forget).toBeTypeOf('function');
  const journal = memoryJournal();
  await expect(forgetSession('gone', { journal, jobs: engine })).rejects.toThrow(/forget\(\)/);
});
