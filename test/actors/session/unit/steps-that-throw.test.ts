// COMMIT-UNIT-2, COMMIT-UNIT-10: wherever a step of a session throws (in a chart, the wiring, a record or the
// conversation), the event is refused with an error, nothing changes, and no entry is written. The same event is then
// accepted as usual.

import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { ConversationLog } from '../../../../src/actors/conversation/conversation.ts';
import { nothingFollows } from '../../../../src/actors/replay/entry-by-entry.ts';
import { createHost } from '../../../../src/actors/runtime/host.ts';
import { Table } from '../../../../src/actors/runtime/draft.ts';
import { isQuarantine } from '../../../../src/actors/runtime/quarantine.ts';
import {
  foldSessionEvent,
  forgetWhatIsOver,
} from '../../../../src/actors/session/lifecycle/session-journal.ts';
import { SessionRecords } from '../../../../src/actors/session/state/session-records.ts';
import { inputsIn } from '../../../../src/actors/session/unit/session-entries.ts';
import { SessionUnit } from '../../../../src/actors/session/unit/session-unit.ts';
import { defineTool } from '../../../../src/index.ts';
import type { JournalEntry } from '../../../../src/entries/journal.ts';
import {
  batchMachine,
  interactionMachine,
  outboxMachine,
  questionMachine,
  sessionMachine,
  toolCallMachine,
} from '../../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import type { FrozenStory } from '../../../support/frozen-stories.ts';
import { writtenJournal } from '../../../support/refolded-records.ts';
import { calls, say, steps } from '../../../support/subagent-runs.ts';
import { textTalk } from '../../../support/text-talk.ts';

afterEach(() => void vi.restoreAllMocks());

/** A session that accepts events and executes no effect. */
function sessionOf(first: JournalEntry) {
  const inputs = inputsIn([first]);
  if (!inputs) throw new Error('Expected an opening');
  const { agentName = '', limits, promptStyle } = inputs.books ?? {};
  const simulated = simulatedEnvironment();
  let at = first.at;
  const kept: JournalEntry[] = [];
  const errors: string[] = [];
  const host = createHost({
    environment: { ...simulated, clock: { now: () => at } },
    journal: { append: (entry) => void kept.push(entry), read: () => [] },
    onError: (error, where) => errors.push(`${where}: ${(error as Error).message}`),
  });
  const records = new SessionRecords(agentName, limits, promptStyle);
  const refused: (Error | null)[] = [];
  const unit: SessionUnit = new SessionUnit(
    host,
    { id: first.unit, ...inputs },
    {
      ...nothingFollows,
      draft: records.draft,
      fold: (received) => foldSessionEvent(records, unit, received),
      ignored: (_, error) => refused.push(error),
    },
  );
  unit.begin();
  unit.unit.resume();
  return {
    unit,
    kept,
    errors,
    refused,
    state: () => JSON.stringify([unit.toSnapshot(), records.toSnapshot()]),
    between: () => forgetWhatIsOver(records, unit),
    send(entry: JournalEntry) {
      at = entry.at;
      unit.unit.receive(entry.actor as 'session', entry.event as { type: 'session.start' });
    },
  };
}

/** Makes the call with this index throw; the index counts all calls in a step of a session. */
function plant() {
  const state = { left: Number.POSITIVE_INFINITY, calls: 0 };
  const tried = (): void => {
    state.calls += 1;
    state.left -= 1;
    if (state.left === 0) throw new TypeError('planted');
  };
  const before = <K extends string>(owner: Record<K, (...args: never[]) => unknown>, name: K) => {
    const right = owner[name] as (this: unknown, ...args: unknown[]) => unknown;
    vi.spyOn(owner, name as never).mockImplementation(function (this: unknown, ...args: unknown[]) {
      tried();
      return right.apply(this, args);
    } as never);
  };
  for (const machine of [
    batchMachine,
    interactionMachine,
    outboxMachine,
    questionMachine,
    sessionMachine,
    toolCallMachine,
  ])
    for (const name of ['transition', 'getInitialSnapshot'])
      before(machine as never as Record<string, () => unknown>, name);
  for (const [prototype, names] of [
    [SessionUnit.prototype, ['apply', 'route', 'settle', 'post']],
    [SessionRecords.prototype, ['fold', 'note', 'userSaid']],
    [Table.prototype, ['set', 'change']],
    [ConversationLog.prototype, ['add', 'begin', 'toolCall', 'toolResult', 'transfer']],
  ] as const)
    for (const name of names) before(prototype as never as Record<string, () => unknown>, name);
  return state;
}

/**
 * A conversation with a call of each kind, questions, notices and a transfer, and everything that the user can do with
 * them.
 */
async function told(): Promise<readonly JournalEntry[]> {
  const journal = writtenJournal();
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    parameters: z.looseObject({}),
    execute: () => ({ seen: true }),
  });
  const { session, environment, state, start, type } = textTalk({
    journal,
    budget: { tokens: 100_000 },
    tools: [look],
    subagents: {
      asks: {
        script: steps(calls(['ask_user', { question: 'Red or blue?' }]), say('Painted.')),
        config: { interactive: true },
      },
      report: { script: steps(say('42 sales')) },
      fails: { script: () => ({ error: new Error('it broke') }) },
    },
    others: [
      {
        name: 'billing',
        greeting: 'Say that you are billing.',
        onEnter: ({ setDirective }) => setDirective('tone', 'warm', 'agent'),
      },
    ],
    conversation: {
      summarise: async ({ items }) => `They said ${items.length} things.`,
      limits: { maxItems: 14, maxChars: 2000, maxItemChars: 500 },
      summariseAbove: 0.5,
      keepItems: 2,
    },
  });
  await start();
  for (const words of ['hello', 'use look', 'use report and look', 'use fails', 'use nothing']) {
    await type(words);
    await environment.advance(1000);
  }
  await type('use asks');
  await environment.advance(1000);
  await type('wait a moment');
  await environment.advance(60_000);
  const { requestId = '' } = state().questions.at(-1) ?? {};
  session.shown(requestId);
  const answered = session.answer(requestId, { text: 'red' });
  await environment.advance(1000);
  await answered;
  session.notifyBackground('A notice', { priority: 'high' });
  session.notifyBackground('Another');
  for (const { deliveryId } of state().deliveries) session.dismiss(deliveryId);
  await environment.advance(1000);
  session.subagents.raiseBudget(null, { tokens: 200_000 });
  await session.transfer('billing');
  await environment.advance(1000);
  await type('use report');
  const closed = session.close();
  await environment.advance(60_000);
  await closed;
  return journal.entries;
}

const corpus = new URL('../../../corpus/stories-1.json', import.meta.url);

test('refuses an event whose step throws, changes nothing, and accepts the event again later', async () => {
  const stories = JSON.parse(readFileSync(corpus, 'utf8')) as FrozenStory[];
  const types = new Map<string, number>();
  let throws = 0;
  for (const entries of [await told(), ...stories.map((story) => story.entries)]) {
    const [first] = entries;
    if (!first || first.event.type !== 'session.opened') continue;
    const session = sessionOf(first);
    const own = entries.filter(({ unit }) => unit === first.unit);
    for (const [index, entry] of own.entries()) {
      session.between();
      const { type } = entry.event;
      const times = types.get(type) ?? 0;
      if (isQuarantine(entry.event) || !session.unit.unit.wouldAccept(entry)) {
        session.unit.unit.refold([entry]);
        continue;
      }
      types.set(type, times + 1);
      const before = session.state();
      for (let number = 1; times < 3; number += 1) {
        const planted = plant();
        planted.left = number;
        session.send(entry);
        vi.restoreAllMocks();
        if (planted.left > 0) break;
        throws += 1;
        expect(session.refused.splice(0)).toEqual([
          expect.objectContaining({ code: 'INTERNAL', message: 'planted' }),
        ]);
        expect(session.errors.splice(0)).toEqual([
          `${first.unit}: \`${type}\` for ${entry.actor}: planted`,
        ]);
        expect(session.kept).toHaveLength(index);
        expect(session.state()).toBe(before);
      }
      if (times >= 3) session.send(entry);
      expect(session.kept[index]).toEqual(entry);
    }
    const refolded = sessionOf(first);
    for (const entry of own) {
      refolded.between();
      refolded.unit.unit.refold([entry]);
    }
    expect(session.state()).toBe(refolded.state());
  }
  expect(types.size).toBeGreaterThan(45);
  expect(throws).toBeGreaterThan(500);
});
