// A whole session on a slow journal and on a failing one: nothing is visible before its commit (no event, hook,
// snapshot, model call or promise), and no entry is lost or reordered.

import { describe, expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import type { AnyActorRef } from 'xstate';
import type { Journal } from '../../../src/index.ts';
import { failingJournal, gatedJournal } from '../../support/journals.ts';
import { calls, say, simpleTool, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';

const asking = {
  script: steps(calls(['look'], ['ask_user', { question: 'Red or blue?' }]), ({ results }) =>
    say(`You want ${JSON.stringify(results[1])}`),
  ),
  config: { interactive: true, tools: { look: simpleTool(() => 'looked') } },
};

/** A conversation and all of its outside effects, in order. */
function noticed(journal: Journal) {
  const log: string[] = [];
  const hook = (name: string) => (event: object) => {
    const { error, ...rest } = event as { error?: unknown };
    void error;
    log.push(`hook ${name} ${Object.keys(rest).join()}`);
  };
  const talk = textTalk({
    journal,
    subagents: { ride: asking },
    onModelCall: (who) => log.push(`model ${who}`),
    hooks: {
      onSessionStart: hook('onSessionStart'),
      onSessionEnd: hook('onSessionEnd'),
      onToolCall: hook('onToolCall'),
      onToolResult: hook('onToolResult'),
      onSubagentStart: hook('onSubagentStart'),
      onSubagentStep: hook('onSubagentStep'),
      onSubagentEnd: hook('onSubagentEnd'),
      onQuestion: hook('onQuestion'),
      onDelivered: hook('onDelivered'),
      onError: () => {},
    },
    inspect: (event) => {
      if (event.type !== '@xstate.snapshot') return;
      const actor = event.actorRef as AnyActorRef;
      // Members of a population that have been woken are not new, and activities have no state.
      if (event.event.type === 'xstate.init' || !/^ses|^sub/.test(actor.id)) return;
      log.push(
        `snapshot ${actor.id} ${JSON.stringify((event.snapshot as { value?: unknown }).value)}`,
      );
    },
  });
  talk.session.events.subscribe((event) => {
    if (event.type !== 'error.reported') log.push(`event ${event.type}`);
  });
  return { ...talk, log };
}

/** Starts, delegates, answers, gets the result, closes. */
async function wholeStory(talk: ReturnType<typeof noticed>, let_: () => Promise<void>) {
  const started = talk.start();
  await let_();
  await started;
  void talk.session.sendText('use ride');
  await let_();
  void talk.session.sendText('blue');
  await let_();
  const closed = talk.session.close();
  await let_();
  await closed;
}

const kinds = (entries: readonly JournalEntry[]): string[] =>
  entries.map(({ unit, seq, actor, event }) => `${unit} ${seq} ${actor} ${event.type}`);

/**
 * Returns the events of each unit without the usage reports, whose place among the effects of a response varies.
 */
function perUnit(all: readonly JournalEntry[]): Record<string, string[]> {
  const entries = all.filter(({ event }) => event.type !== 'usage.reported');
  const units: Record<string, string[]> = {};
  for (const [index, line] of kinds(entries).entries())
    (units[entries[index]?.unit ?? ''] ??= []).push(line.replace(/ \d+ /, ' '));
  return units;
}

async function cleanRun() {
  const journal = failingJournal('throws');
  const talk = noticed(journal);
  await wholeStory(talk, () => talk.environment.settle());
  return { log: talk.log, kept: journal.kept };
}

describe('a slow journal', () => {
  test('COMMIT-UNIT-2: shows nothing until the entry that caused it has been written', async () => {
    const journal = gatedJournal();
    journal.shut();
    const talk = noticed(journal);
    const { log, environment } = talk;
    let kept = 0;
    const checked = async (): Promise<void> => {
      for (;;) {
        await environment.settle();
        const before = log.length;
        // Neither time alone nor an observer changes anything.
        await environment.advance(10);
        talk.state();
        expect(log.length).toBe(before);
        if (journal.waiting.length === 0) return;
        // Each unit runs one append at a time.
        const units = journal.waiting.map(({ unit }) => unit);
        expect(new Set(units).size).toBe(units.length);
        journal.keepOne();
        kept += 1;
      }
    };
    await wholeStory(talk, checked);
    expect(kept).toBe(journal.kept.length);
    const clean = await cleanRun();
    // The same entries lead to the same story.
    expect(perUnit(journal.kept)).toEqual(perUnit(clean.kept));
    expect(log.toSorted()).toEqual(clean.log.toSorted());
  });

  test('COMMIT-UNIT-2: delays input, model answers, questions and answers until their entries are written', async () => {
    const journal = gatedJournal();
    const talk = noticed(journal);
    const { session, environment, log, question } = talk;
    await talk.start();
    journal.shut();

    const since = (mark: number) => log.slice(mark);
    const waiting = () => journal.waiting.map(({ event }) => event.type);
    const keepUntil = async (type: string): Promise<number> => {
      for (let tries = 0; tries < 100 && !waiting().includes(type); tries += 1) {
        journal.keepOne();
        await environment.settle();
      }
      expect(waiting()).toContain(type);
      // The consequences of other entries have happened; this entry is still to come.
      while (waiting().length > 1) {
        const [first] = waiting();
        if (first === type) break;
        journal.keepOne();
        await environment.settle();
      }
      return log.length;
    };

    let said = false;
    void session.sendText('use ride').then(() => (said = true));
    let mark = await keepUntil('user.said');
    expect([said, since(0).filter((line) => line === 'model lead')]).toEqual([false, []]);
    journal.keepOne();
    await environment.settle();
    expect(said).toBe(true);
    expect(since(mark)).toContain('model lead');

    mark = await keepUntil('model.responded');
    expect(log.filter((line) => line.includes('onSubagentStep'))).toEqual([]);
    journal.keepOne();
    await environment.settle();
    expect(since(mark).filter((line) => line.includes('onSubagentStep'))).toHaveLength(1);

    mark = await keepUntil('question.asked');
    expect(log.filter((line) => line.includes('onQuestion'))).toEqual([]);
    journal.keepOne();
    await environment.settle();
    expect(since(mark).filter((line) => line.includes('onQuestion'))).toHaveLength(1);

    journal.open();
    await environment.settle();
    journal.shut();
    let receipt: unknown;
    void session
      .answer(question()?.requestId ?? '', { text: 'blue' })
      .then((given) => (receipt = given));
    mark = await keepUntil('answer.given');
    const models = log.filter((line) => line === 'model ride').length;
    await environment.advance(1000);
    expect(receipt).toBeUndefined();
    journal.keepOne();
    await environment.settle();
    expect(receipt).toEqual({ accepted: true });
    // The subagent has its own entry for it, and does not continue before that is written.
    await keepUntil('question.answered');
    expect(log.filter((line) => line === 'model ride')).toHaveLength(models);
    journal.open();
    await environment.settle();
    expect(log.filter((line) => line === 'model ride')).toHaveLength(models + 1);
  });
});

describe.each(['throws', 'rejects'] as const)('a journal that fails at first (%s)', (how) => {
  test('COMMIT-UNIT-3: still produces the same events, and none of them too early', async () => {
    const inner = failingJournal(how);
    // Every entry fails in the same way. A subagent does not wait for the session's entry, and must not overtake it.
    const tries = new Map<string, number>();
    const talk = noticed({
      ...inner,
      append(entry) {
        const key = `${entry.unit} ${entry.seq}`;
        const tried = tries.get(key) ?? 0;
        tries.set(key, tried + 1);
        if (tried < 2) inner.failNext(1);
        return inner.append(entry);
      },
    });
    // Long enough for every attempt, and too short for any deadline.
    await wholeStory(talk, () => talk.environment.advance(20_000));
    const clean = await cleanRun();
    expect(inner.failed.length).toBeGreaterThan(10);
    expect(perUnit(inner.kept)).toEqual(perUnit(clean.kept));
    expect(talk.log.toSorted()).toEqual(clean.log.toSorted());
    expect(talk.environment.pendingTimers).toBe(0);
  });

  test('COMMIT-UNIT-3: delays all other appends while one keeps failing, but loses none of them', async () => {
    const journal = failingJournal(how);
    const talk = noticed(journal);
    await talk.start();
    journal.failNext(20);
    void talk.session.sendText('use ride');
    await talk.environment.settle();
    const before = talk.log.length;
    await talk.environment.advance(60_000);
    expect(talk.log.length).toBe(before);
    await talk.environment.advance(600_000);
    expect(talk.log.filter((line) => line.startsWith('model'))).not.toEqual([]);
    expect(talk.said()[0]).toContain('still_in_progress');
  });
});
