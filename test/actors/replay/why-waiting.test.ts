// `whyWaiting` for the states in a journal: each part of each state has a cause, even if its work is done elsewhere, is
// for a program, or currently runs in no process.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { jobWorker, localJobs } from '../../../src/entries/jobs.ts';
import { replaySession, type ReplayView } from '../../../src/entries/replay.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import {
  createRuntime,
  memoryJournal,
  TextSession,
  createSubAgentTool,
} from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { whyWaiting, type Wait } from '../../../src/entries/machines.ts';
import {
  actsPrompt,
  scriptedModel,
  scriptedRelay,
  simulateOnce,
  simulatedEnvironment,
} from '../../../src/testing/index.ts';
import { textLife, world } from '../../support/crashes.ts';
import { orderMonitor } from '../../support/order-monitor.ts';
import { calls } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';
import { sessionEntries } from '../../support/session-entries.ts';
import { inMidQuestion, wholeRide } from './support.ts';
import { apiError } from '../../support/api-error.ts';

const OVER = new Set(['answered', 'expired', 'withdrawn', 'superseded']);

/** Returns the parts of a view that have not ended. */
function subjectsIn({ connection, questions, outbox, calls, subagents }: ReplayView) {
  const live = subagents
    .filter(({ outcome }) => outcome === null)
    .map(({ id }) => `subagent ${id}`);
  if (connection === 'closed') return [];
  const { current, pending } = outbox;
  return [
    ...questions
      .filter(({ state }) => !OVER.has(state))
      .map(({ requestId }) => `question ${requestId}`),
    ...[...(current ? [current] : []), ...pending].map(
      ({ deliveryId }) => `delivery ${deliveryId}`,
    ),
    ...calls
      .filter(({ state }) => !['answered', 'delivered', 'cancelled'].includes(state))
      .map(({ callId }) => `call ${callId}`),
    ...live,
  ];
}

/** Checks each state and returns the sentences. */
function sentencesIn(entries: readonly JournalEntry[]): readonly (readonly Wait[])[] {
  const all: (readonly Wait[])[] = [];
  for (const { machines, view, number } of replaySession(entries)) {
    const waits = machines ? whyWaiting(machines) : [];
    const named = waits.map(({ of, id }) => `${of} ${id}`);
    const session = machines?.session && view.connection !== 'closed' ? ['session '] : [];
    expect(named, `entry ${number}`).toEqual(
      expect.arrayContaining([...session, ...subjectsIn(view)]),
    );
    expect(new Set(named).size, `entry ${number}`).toBe(named.length);
    for (const wait of waits) expect(wait.sentence).not.toMatch(/undefined|null|NaN|^$/);
    all.push(waits);
  }
  return all;
}

test.each([
  ['text', 6],
  ['voice', 4],
] as const)(
  'WHY-WAITING-1, by %s: explains each wait in conversations with all kinds of faults',
  {
    timeout: 120_000,
  },
  async (session, seeds) => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { record } = await simulateOnce(seed, {
        session,
        snapshots: { afterEntries: 12, trim: false },
      });
      sentencesIn(sessionEntries(record));
    }
  },
);

test("explains a chain from a call to its subagent, that subagent's child, and the child's turn", async () => {
  const { of } = await wholeRide();
  const waits = sentencesIn(of.entries).flat();
  const sentences = new Set(waits.map(({ of: what, sentence }) => `${what}: ${sentence}`));
  expect([...sentences]).toEqual(
    expect.arrayContaining([
      expect.stringMatching(
        /^subagent: waits for other subagents: sub_2; sub_2: step 1 of 5: its model/,
      ),
      'call: sub_1 works on it: step 1 of 5: its model works',
    ]),
  );
  const parent = waits.find(({ cause, because }) => cause === 'children' && because !== null);
  expect(parent).toMatchObject({ on: 'sub_2', because: { id: 'sub_2' } });
});

test('explains that a hibernated session is waiting for a process to wake it', async () => {
  const { of, talk } = await inMidQuestion();
  expect(await talk.session.hibernate()).toBe(true);
  const [session, question] = sentencesIn(of.entries).at(-1) ?? [];
  expect(session).toMatchObject({ of: 'session', cause: 'wake' });
  expect(question).toMatchObject({ of: 'question', cause: 'answer' });
});

test("explains a program's run while it waits for its relayed agent or for the program", async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const relay = scriptedRelay();
  const edit = { title: 'Edit notes.txt', kind: 'edit', input: { path: 'notes.txt' } };
  const { result } = runSubagent(
    { name: 'coder', instructions: 'Code.', relay },
    actsPrompt({ permission: edit }, { say: 'Done.' }),
    {
      runtime: createRuntime({ environment, journal }),
      id: 'run',
      onQuestion: () => ({ approved: true }),
    },
  );
  expect((await result).status).toBe('completed');
  const waits = sentencesIn(journal.read({ scope: 'run' })).flat();
  expect(waits.map(({ cause, sentence }) => `${cause}: ${sentence}`)).toEqual(
    expect.arrayContaining([
      `agent: step 2: ${relay.name} works`,
      `agent: step 2: ${relay.name} runs a tool of its own`,
      expect.stringMatching(/^answer: .+ asked \S+\.q1: the program that it works for has not/),
    ]),
  );
});

test("explains that a subagent's jobs are waiting for a worker, and names who may approve", async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const pay = tool({
    description: 'Pays',
    inputSchema: z.object({}),
    needsApproval: true,
    execute: () => 'paid',
  });
  const config = {
    name: 'treasurer',
    instructions: 'Pay.',
    runs: 'jobs',
    answerableBy: ['carl'],
    interactive: true,
    tools: { pay: { ...pay, idempotent: true } },
  } as const;
  const model = scriptedModel({
    agents: { treasurer: [{ calls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }] },
  });
  const jobs = localJobs({
    handler: jobWorker({ environment, configs: { treasurer: config }, model }),
  });
  const { result } = runSubagent(config, 'Pay', {
    runtime: createRuntime({ environment, journal, jobs }),
    id: 'run',
    onQuestion: () => ({ approved: true, by: 'carl' }),
  });
  expect((await result).text).toBe('Paid.');
  const waits = sentencesIn(journal.read({ scope: 'run' })).flat();
  expect(waits.map(({ cause, sentence }) => `${cause}: ${sentence}`)).toEqual(
    expect.arrayContaining([
      `job: step 1 of 5: a worker of ${jobs.name} calls its model`,
      `job: step 1 of 5: a worker of ${jobs.name} runs its tools: pay`,
    ]),
  );
  expect(waits.find(({ cause }) => cause === 'answer')).toMatchObject({ by: ['carl'] });
});

test('names the users who may answer a question, even if an ancestor of the subagent restricts them', async () => {
  const of = world();
  const script = () => calls(['ask_user', { question: 'Which map?' }]);
  const model = castOf({ subagents: { helper: { script } } });
  const helper = createSubAgentTool(
    { ...configOf('helper'), model, interactive: true, outputSchema: z.object({}) },
    z.object({}),
  );
  const life = textLife(of, {
    subagents: {
      ride: {
        script: () => calls(['helper', {}]),
        config: { answerableBy: ['manager'], tools: { helper } },
      },
    },
  });
  await life.start();
  await life.session.sendText('use ride');
  await of.environment.advance(1000);
  const waits = sentencesIn(of.entries).at(-1) ?? [];
  expect(waits.find((wait) => wait.of === 'question')).toMatchObject({ by: ['manager'] });
});

test('explains that a service is waiting for its source, for an event, or for its subagent', async () => {
  const of = world();
  let isDown = true;
  const monitor = orderMonitor({
    sourceBackoff: { baseDelayMs: 8000, maxDelayMs: 8000 },
    script: async () => {
      await new Promise<void>((resolve) => void of.environment.scheduler.schedule(resolve, 5000));
      return { text: 'An order was shipped.' };
    },
  });
  const [webhook] = monitor.service.eventSources;
  const source = {
    name: 'shop',
    start(...given: Parameters<NonNullable<typeof webhook>['start']>) {
      if (isDown) throw new Error('The shop does not answer');
      return webhook?.start(...given);
    },
  };
  const services = [{ ...monitor.service, eventSources: [source] }];
  const begin = async () => {
    const life = textLife(of, { services });
    await life.start();
    await of.environment.settle();
    return life;
  };
  /** The machines and the running service, which the journal's reader cannot see, report the same. */
  const told = (life: Awaited<ReturnType<typeof begin>>) => {
    const waits = sentencesIn(of.entries).at(-1) ?? [];
    const [service] = life.session.services.list();
    const last = [...replaySession(of.entries)].at(-1);
    const { state, sources } = last?.machines?.services?.get('order_monitor') ?? {};
    expect(JSON.stringify(state?.value)).toContain(service?.state);
    expect(JSON.stringify(sources?.get('shop')?.value)).toContain(service?.sources[0]?.state);
    return waits.flatMap(({ of: what, sentence }) =>
      what === 'service' || what === 'source' ? [`${what}: ${sentence}`] : [],
    );
  };
  let life = await begin();
  expect(told(life)).toEqual([
    expect.stringMatching(
      /^service: no event to look at, and no source of it runs; order_monitor\/shop: it failed: begun again in \d\.\d s \(1 failure in a row\)$/,
    ),
    expect.stringMatching(/^source: it failed: begun again in \d\.\d s \(1 failure in a row\)$/),
  ]);
  isDown = false;
  await of.environment.advance(8000);
  expect(told(life)).toEqual([
    'service: no event to look at: it waits for one',
    'source: it runs: no event has come since',
  ]);
  void monitor.happens({ order: 7 });
  void monitor.happens({ order: 8 });
  await of.environment.advance(1000);
  const looks =
    /^service: (?<sub>sub_\w+) looks at evt_\w+: step 1 of 3: its model works; 1 event in line behind it$/;
  expect(told(life)).toEqual([
    expect.stringMatching(looks),
    'source: it runs: no event has come since',
  ]);
  // The next process has the same event, but another source.
  life.kill();
  life = await begin();
  expect(told(life)).toEqual([
    expect.stringMatching(/^service: sub_\w+ looks at evt_\w+: step 1 of 3: its model works/),
    'source: it runs: no event has come since',
  ]);
  await of.environment.advance(30_000);
  expect(told(life)).toEqual([
    'service: no event to look at: it waits for one',
    'source: it runs: no event has come since',
  ]);
  await life.session.close();
  expect(sentencesIn(of.entries).at(-1)).toEqual([]);
});

test('describes a retried model call by attempt, time and previous error', async () => {
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  const overloaded = apiError(529, 'Overloaded');
  let calls = 0;
  const { result } = runSubagent(
    {
      name: 'writer',
      instructions: 'Write.',
      retry: { maxAttempts: 3, baseDelayMs: 4000 },
      model: scriptedModel({
        scripts: [],
        otherwise: () => {
          calls += 1;
          return calls === 1 ? { error: overloaded } : { text: 'Written.' };
        },
      }),
    },
    'Write',
    { runtime: createRuntime({ environment, journal }), id: 'run' },
  );
  const sentence = (): string | undefined =>
    sentencesIn(journal.read({ scope: 'run' }))
      .at(-1)
      ?.map((wait) => wait.sentence)
      .join();
  await environment.settle();
  expect(sentence()).toMatch(
    /^step 1 of 5: its model: 1 of 3 attempts failed \(\w+\): called again in \d\.\d s$/,
  );
  // No entry is written when the time comes.
  const last = [...replaySession(journal.read({ scope: 'run' }))].at(-1);
  const later = last?.machines && whyWaiting({ ...last.machines, at: last.machines.at + 6000 });
  expect(later?.map((wait) => wait.sentence)).toEqual([
    expect.stringMatching(
      /^step 1 of 5: its model works for 6\.\d s; 1 of 3 attempts failed \(\w+\)$/,
    ),
  ]);
  await environment.advance(20_000);
  expect((await result).text).toBe('Written.');
});

describe("the lead agent's model calls", () => {
  const limited = apiError(429, 'Slow down');

  /** Creates a session whose model fails this many times, and its journal. */
  async function failing(failures: number) {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    let calls = 0;
    const model = scriptedModel({
      scripts: [],
      otherwise: () => ((calls += 1) <= failures ? { error: limited } : { text: 'Here I am.' }),
    });
    const session = new TextSession({
      sessionId: 'ses_1',
      runtime: createRuntime({ environment, journal }),
      model,
      agents: [{ name: 'lead', instructions: 'Answer.' }],
    });
    session.parts.subscribe(() => {});
    await session.start();
    await session.sendText('Are you there?');
    await environment.settle();
    const entries = () => journal.read({ scope: 'ses_1' });
    const steps = () => [...replaySession(entries())];
    /** Returns the wait as it is this many milliseconds after the newest entry. */
    const sentence = (laterMs = 0): string | undefined => {
      const machines = steps().at(-1)?.machines;
      sentencesIn(entries());
      return machines
        ? whyWaiting({ ...machines, at: machines.at + laterMs })[0]?.sentence
        : undefined;
    };
    const facts = () => steps().flatMap(({ changes }) => changes['model'] ?? []);
    const kinds = () =>
      entries().flatMap(({ actor, event }) => (actor === 'lead' ? event.type : []));
    return { environment, session, sentence, facts, kinds, entries };
  }

  test('LEAD-STREAM-4: show when and why they will be retried', async () => {
    const { environment, session, sentence, facts, kinds } = await failing(1);
    expect(sentence()).toMatch(
      /^gate closed: the lead agent's model call failed \(RATE_LIMITED\): attempt 2 of 3 in \d\.\d s$/,
    );
    expect(sentence(4000)).toBe(
      'gate closed: the lead agent has its turn for 4.0 s; attempt 2 of 3, after its model call failed (RATE_LIMITED)',
    );
    await environment.advance(10_000);
    await session.idle();
    expect(sentence()).toBe('all is quiet: it is for the user to say something');
    expect(facts()).toEqual(['retried, 1 of 3 attempts failed (RATE_LIMITED)']);
    expect(kinds()).toEqual(['model.retried']);
  });

  test('LEAD-STREAM-4: stay visible as failed until the next response, even after hibernation', async () => {
    const { environment, session, sentence, kinds, entries } = await failing(3);
    await environment.advance(20_000);
    await session.idle();
    const failed =
      "the lead agent's model call failed 3 times (RATE_LIMITED), and is not made again: it is for the user to say something";
    expect(sentence()).toBe(failed);
    expect(kinds()).toEqual(['model.retried', 'model.retried', 'model.failed']);
    const slept = entries().length;
    expect(await session.hibernate()).toBe(true);
    const snapshot = entries()
      .slice(slept)
      .find(({ event }) => event.type === 'session.snapshot');
    const [awake] = replaySession(snapshot ? [snapshot] : []);
    expect(awake?.machines && whyWaiting({ ...awake.machines, isAsleep: false })[0]?.sentence).toBe(
      failed,
    );
  });

  test('LEAD-STREAM-4: do not count as failures when closing the session cancels them', async () => {
    const { session, kinds } = await failing(1);
    await session.close();
    expect(kinds()).toEqual(['model.retried']);
  });
});
