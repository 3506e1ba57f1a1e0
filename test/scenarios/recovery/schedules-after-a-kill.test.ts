// The schedules of a session whose process is killed before or after any of its entries (P4, P6, P9).

import { describe, expect, test } from 'vitest';
import { instantsOf, textLife, turns, world, type World } from '../../support/crashes.ts';
import { say } from '../../support/subagent-runs.ts';

const HOUR = 3_600_000;
const TASK = { subagent: 'report', task: 'Write the report' };

interface Way {
  readonly snapshots: boolean;
  /** Whether the session is in memory when its due times come. */
  readonly isAwake: boolean;
}

const WAYS: readonly Way[] = [false, true].flatMap((snapshots) =>
  [false, true].map((isAwake) => ({ snapshots, isAwake })),
);

/** Sets the schedules in each process, as an app does when it starts, and runs until the last due time has passed. */
async function played({ snapshots, isAwake }: Way, kill?: (of: World) => void) {
  const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: true } } : {});
  kill?.(of);
  const startedAt = of.environment.clock.now();
  let runs = 0;
  const report = {
    script: turns(() => {
      runs += 1;
      return say('The report is ready');
    }),
  };
  for (let lives = 1; lives < 10; lives += 1) {
    const life = textLife(of, { subagents: { report } });
    void life.start().catch(() => {});
    await of.environment.settle();
    const { session } = life;
    const set = async (): Promise<void> => {
      const left = startedAt + HOUR - of.environment.clock.now();
      if (left > 0) await session.schedule({ key: 'once', at: startedAt + HOUR, say: 'Pizza' });
      if (left > 0) await session.schedule({ key: 'task', at: startedAt + HOUR, task: TASK });
      await session.schedule({ key: 'twice', everyMs: 2 * HOUR, say: 'Drink' });
    };
    if (of.environment.clock.now() < startedAt + 2 * HOUR) {
      void set().catch(() => {});
      await of.environment.settle();
      if (!life.isAlive()) continue;
      if (!isAwake) {
        void session.hibernate().catch(() => {});
        await of.environment.advance(1000);
      }
      for (let minute = 0; minute < 150 && life.isAlive(); minute += 1)
        await of.environment.advance(60_000);
      if (!isAwake || !life.isAlive()) continue;
    }
    await of.environment.advance(60_000);
    if (!life.isAlive()) continue;
    const schedules = life.state().schedules.map(({ key, dueAt }) => [key, dueAt !== null]);
    const { written } = of;
    await life.close();
    const entries = of.entries.map(({ event }) => JSON.stringify(event));
    const heard = (words: string): number =>
      new Set(entries.filter((json) => json.includes('assistant.said') && json.includes(words)))
        .size;
    return {
      lives,
      written,
      runs,
      schedules,
      pizza: heard('Pizza'),
      report: heard('The report is ready'),
    };
  }
  throw new Error('Expected a process that lives to its end');
}

describe.each(WAYS)('schedules (snapshots: $snapshots, awake: $isAwake)', async (way) => {
  const { written, lives: _, ...seen } = await played(way);
  test('delivers reminders and starts tasks once if no process is killed', () => {
    expect(seen).toMatchObject({ schedules: [['twice', true]] });
    // The utterance may have been in entries that have been trimmed.
    if (!way.snapshots) expect(seen).toMatchObject({ runs: 1, pizza: 1, report: 1 });
  });

  test.each(instantsOf(written))(
    'P6, P9: keeps every schedule when killed %s entry %i',
    async (when, entry) => {
      const { runs, schedules, pizza } = await played(way, (of) => of.killAt(entry, when));
      expect(schedules).toEqual([['twice', true]]);
      // A model call that was interrupted by the kill is repeated.
      expect([1, 2]).toContain(runs);
      if (!way.snapshots) expect(pizza).toBeGreaterThan(0);
    },
  );
});
