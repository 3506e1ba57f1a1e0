// A finished session is replayed without its app.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { replaySession, type ReplayStep, type ReplayView } from '../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { createRuntime, defineTool, type SessionState } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import {
  eventsOf,
  scriptedModel,
  simulateOnce,
  simulatedEnvironment,
} from '../../../src/testing/index.ts';
import { textLife, turns, world } from '../../support/crashes.ts';
import { writtenJournal } from '../../support/refolded-records.ts';
import { sessionEntries } from '../../support/session-entries.ts';
import { siblingTalk } from '../../support/siblings.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { inMidQuestion, replayed, rideStory, wholeRide } from './support.ts';

/** Returns the fields that a live session and a replay share. */
function common({ connection, floor, agent, ...rest }: SessionState | ReplayView) {
  return {
    connection,
    floor,
    agent,
    questions: rest.questions.filter(({ state }) => state !== 'answered'),
    subagents: rest.subagents.map(({ id, name, parentId, state, step, outcome }) => ({
      id,
      name,
      parentId,
      state,
      step,
      outcome,
    })),
    said: rest.transcript
      .filter(({ role }) => role === 'user' || role === 'assistant')
      .map(({ id, role, text, at }) => ({ id, role, text, at })),
  };
}

const refused = (entries: Iterable<JournalEntry>): readonly JournalEntry[] =>
  [...replaySession(entries)].filter(({ isAccepted }) => !isAccepted).map(({ entry }) => entry);

const told = ({ changes }: ReplayStep): object => changes;

describe('a replay', () => {
  test('equals the state of the session at every moment', async () => {
    const { of, talk, question } = await inMidQuestion();
    const { view } = replayed(of.entries);
    expect(common(view)).toEqual(common(talk.state()));
    expect(view).toMatchObject({
      client: 'attached',
      owner: question.requestId,
      outbox: { current: null, pending: [], reserved: 1 },
      calls: [{ callId: 'call_1', name: 'ride', state: 'delegated' }],
    });
    expect(view.subagents.map(({ name, state }) => [name, state])).toEqual([
      ['ride', 'waiting_for_input'],
      ['helper', 'completed'],
    ]);
  });

  test('ends in the same state as the session', async () => {
    const { of, talk } = await wholeRide();
    await talk.close();
    const { view } = replayed(of.entries);
    expect(common(view)).toEqual(common(talk.state()));
    expect(view).toMatchObject({ connection: 'closed', owner: null, calls: [], questions: [] });
    expect(refused(of.entries)).toEqual([]);
  });

  test('reports what each entry changed', async () => {
    const { of, question, after } = await wholeRide();
    const steps = [...replaySession(of.entries)];
    expect(steps.map(({ number }) => number)).toEqual(of.entries.map((_, index) => index + 1));
    const of_ = (type: string) => steps.filter(({ entry }) => entry.event.type === type);
    expect(of_('session.start').map(told)).toEqual([{ connection: 'connecting' }]);
    expect(told(steps[after] as ReplayStep)).toEqual({
      [`question ${question.requestId}`]: 'answered: comfort',
      owner: 'lead agent',
    });
    expect(of_('delivery.heard').map(told)).toEqual([
      { [`question ${question.requestId}`]: 'open', [`delivery ${question.requestId}`]: null },
      { 'call call_1': 'ride delivered', 'delivery call_1': null },
    ]);
  });

  test('REPLAY-SESSION-1: yields the same changes whether or not its views are read', async () => {
    const { of } = await wholeRide();
    const looked = [...replaySession(of.entries)].map(({ changes }) => changes);
    const watched: object[] = [];
    for (const step of replaySession(of.entries)) {
      expect(step.view).toEqual(step.view);
      watched.push(step.changes);
    }
    expect(watched).toEqual(looked);
  });

  test('continues after a crash', async () => {
    const { of, talk, question } = await inMidQuestion();
    talk.kill();
    const next = textLife(of, rideStory());
    await next.start();
    await of.environment.settle();
    await of.environment.advance(1000);
    expect(replayed(of.entries).view).toMatchObject({
      connection: 'active',
      owner: question.requestId,
      questions: [{ state: 'open' }],
    });
    await next.session.answer(question.requestId, { text: 'comfort' });
    await of.environment.settle();
    await of.environment.advance(5000);
    expect(common(replayed(of.entries).view)).toEqual(common(next.state()));
    expect(refused(of.entries)).toEqual([]);
  });

  test('starts over when a new session starts under the same id', async () => {
    const { of, talk } = await wholeRide();
    await talk.close();
    const next = textLife(of, rideStory());
    await next.start();
    await next.session.sendText('hello');
    await of.environment.settle();
    const { view } = replayed(of.entries);
    expect(common(view)).toEqual(common(next.state()));
    expect(view.subagents).toEqual([]);
    expect(refused(of.entries)).toEqual([]);
  });

  test('shows the subagents of a program that has no session', async () => {
    const journal = writtenJournal();
    const environment = simulatedEnvironment();
    const finder = { name: 'finder', instructions: '', tools: { find: simpleTool(() => 'it') } };
    const model = scriptedModel([calls(['find']), say('Found.')]);
    runSubagent(finder, 'Find it', { runtime: createRuntime({ environment, journal }), model });
    await environment.settle();
    const { view } = replayed(journal.entries);
    expect(view).toMatchObject({
      agent: null,
      transcript: [],
      subagents: [{ name: 'finder', state: 'completed', settledCalls: 1 }],
    });
  });

  test.each(['text', 'voice'] as const)(
    'accepts every event that a simulated %s session accepted, even after crashes',
    async (session) => {
      let entries = 0;
      let subagents = 0;
      for (let seed = 1; seed <= 8; seed += 1) {
        const { record } = await simulateOnce(seed, { session });
        const kept = sessionEntries(record);
        entries += kept.length;
        const written = JSON.parse(JSON.stringify(kept)) as JournalEntry[];
        expect(refused(written)).toEqual([]);
        const { view } = replayed(written);
        expect(view).toMatchObject({ connection: 'closed', questions: [], calls: [] });
        const shown = eventsOf(record.log, 'subagent.changed').map(({ event }) => event.subagent);
        subagents += view.subagents.length;
        for (const { id, state, step, outcome } of view.subagents)
          expect(shown.findLast((one) => one.id === id)).toMatchObject({
            state,
            step,
            outcome: { status: outcome?.status, text: outcome?.text },
          });
      }
      expect(entries).toBeGreaterThan(200);
      expect(subagents).toBeGreaterThan(5);
    },
  );
});

describe("REPLAYED-SESSION-1: the app's values in the entries", () => {
  test("include a tool's time limit", async () => {
    const of = world();
    const slow = defineTool({
      name: 'slow',
      description: 'Takes its time',
      parameters: z.object({}),
      timeout: 1234,
      execute: () => new Promise(() => {}),
    });
    const talk = textLife(of, { tools: [slow] });
    await talk.start();
    await talk.session.sendText('use slow');
    await of.environment.settle();
    await of.environment.advance(1300);
    const timedOut = [...replaySession(of.entries)].filter(
      ({ entry }) => entry.event.type === 'deadline.execution',
    );
    expect(timedOut.map(({ isAccepted, changes }) => [isAccepted, changes])).toEqual([
      [true, { 'call call_1': 'slow answered' }],
    ]);
  });

  test('include the choice of results that are delivered together', async () => {
    const journal = writtenJournal();
    const {
      start,
      type,
      finish,
      told: toldTogether,
    } = siblingTalk(['flight', 'hotel'], { journal });
    await start();
    await type('use flight and hotel');
    await finish('flight', 'hotel');
    expect(toldTogether()).toHaveLength(1);
    const offered = [...replaySession(journal.entries)].flatMap(({ changes }) =>
      Object.entries(changes).filter(([, value]) => value?.startsWith('result offered') === true),
    );
    expect(offered.map(([name]) => name)).toEqual(['delivery batch_call_1']);
  });

  test('include the language in which a spoken yes is read', async () => {
    const of = world();
    const did: string[] = [];
    const pay = simpleTool(() => did.push('paid'), { needsApproval: true });
    const talk = textLife(of, {
      agent: { language: 'de' },
      subagents: {
        payer: { script: turns(calls(['pay']), say('Paid.')), config: { tools: { pay } } },
      },
    });
    await talk.start();
    await talk.session.sendText('use payer');
    await of.environment.settle();
    await of.environment.advance(1000);
    await talk.session.sendText('ja, mach das');
    await of.environment.settle();
    expect(did).toEqual(['paid']);
    const answered = [...replaySession(of.entries)].flatMap(({ changes }) =>
      Object.entries(changes).filter(([name]) => name.startsWith('question')),
    );
    expect(answered.at(-1)?.[1]).toMatch(/^answered/);
  });
});

test('USER-WORDS-3: does not count an expired approval as pending after a crash', async () => {
  const of = world();
  const did: string[] = [];
  const payer = (name: string) => ({
    script: turns(calls([`pay_${name}`]), say(`${name} paid.`)),
    config: {
      tools: { [`pay_${name}`]: simpleTool(() => did.push(name), { needsApproval: true }) },
    },
  });
  const story = { subagents: { one: payer('one'), two: payer('two') } };
  const talk = textLife(of, story);
  await talk.start();
  for (const name of ['one', 'two']) {
    await talk.session.sendText(`use ${name}`);
    await of.environment.settle();
    await of.environment.advance(1000);
    await talk.session.sendText('yes');
    await of.environment.settle();
    await of.environment.advance(1000);
  }
  expect(did).toEqual(['one', 'two']);
  talk.kill();
  const next = textLife(of, story);
  await next.start();
  await of.environment.settle();
  await of.environment.advance(5000);
  expect(next.state().questions.filter(({ state }) => state !== 'answered')).toEqual([]);
  expect(did).toEqual(['one', 'two']);
});

describe('an unsuitable journal', () => {
  const failing = (entries: readonly JournalEntry[]) => () => replayed(entries);

  test('fails if its first entries are missing', async () => {
    const { of } = await inMidQuestion();
    expect(failing(of.entries.slice(1))).toThrow(/first entry of ses in ses is entry 2/);
    const spawned = of.entries.findIndex(({ unit }) => unit === 'sub_1');
    expect(failing(of.entries.toSpliced(spawned, 1))).toThrow(
      expect.objectContaining({ code: 'JOURNAL_CUT' }),
    );
  });

  test('fails if it has a gap', async () => {
    const { of } = await inMidQuestion();
    expect(failing(of.entries.toSpliced(3, 1))).toThrow(
      expect.objectContaining({ code: 'JOURNAL_GAP' }),
    );
  });

  test('fails if it has a different version', async () => {
    const { of } = await inMidQuestion();
    const newer = of.entries.map((entry) => ({ ...entry, definitionVersion: 99 }));
    expect(failing(newer)).toThrow(expect.objectContaining({ code: 'JOURNAL_VERSION' }));
  });

  test('fails if it contains entries of several sessions', async () => {
    const { of } = await inMidQuestion();
    const [first] = of.entries as [JournalEntry];
    expect(failing([first, { ...first, scope: 'other' }])).toThrow(
      'Expected the entries of one scope, got ses and other',
    );
  });

  test('marks an entry as quarantined if it cannot be folded', async () => {
    const { of } = await inMidQuestion();
    const at = of.entries.findIndex(({ event }) => event.type === 'model.responded');
    const broken = of.entries.map((entry, index) =>
      index === at ? { ...entry, event: { type: 'model.responded' } } : entry,
    );
    const quarantined = [...replaySession(broken)].find(({ setAside }) => setAside !== null);
    expect(quarantined).toMatchObject({
      number: at + 1,
      isAccepted: false,
      setAside: expect.stringContaining('`step`: expected a number') as string,
      changes: {},
    });
  });
});
