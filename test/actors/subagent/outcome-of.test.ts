// Outcomes and their readers: the types distinguish success and failure, and an old outcome without an error gets one
// wherever it is read.

import { describe, expect, expectTypeOf, test } from 'vitest';
import { readOutcome, type Outcome } from '../../../src/actors/contracts/outcome.ts';
import { outcomeOf } from '../../../src/actors/subagent/outcome-of.ts';
import { SubagentLog } from '../../../src/actors/subagent/subagent-log.ts';
import type { RunEngine } from '../../../src/entries/jobs.ts';
import { replaySession } from '../../../src/entries/replay.ts';
import { THE_LEAD, runSubagent } from '../../../src/entries/subagents.ts';
import {
  isLargeOutput,
  type CompletedOutcome,
  type LargeOutput,
  type UnfinishedOutcome,
} from '../../../src/entries/results.ts';
import { createRuntime } from '../../../src/index.ts';
import type { Failure } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { completedOutcome, unfinishedOutcome } from '../../support/outcomes.ts';
import { programLife } from '../../support/program-life.ts';
import { refolded } from '../../support/refolded-records.ts';
import { never } from '../../support/subagent-runs.ts';
import { serviceStage, order } from '../services/support.ts';

describe('the type of an outcome', () => {
  const outcome = completedOutcome('2', { output: { count: 2 } }) as Outcome<{ count: number }>;

  test('narrows to an output or an error when its status is checked', () => {
    if (outcome.status === 'completed') {
      expectTypeOf(outcome).toEqualTypeOf<CompletedOutcome<{ count: number }>>();
      expectTypeOf(outcome.output).toEqualTypeOf<{ count: number } | LargeOutput>();
      if (!isLargeOutput(outcome.output)) expectTypeOf(outcome.output.count).toBeNumber();
    } else {
      expectTypeOf(outcome).toEqualTypeOf<UnfinishedOutcome>();
      expectTypeOf(outcome.error).toEqualTypeOf<Failure>();
      expectTypeOf(outcome.output).toBeNull();
    }
    expect(outcome.output).toEqual({ count: 2 });
  });

  test('offers output, error and partial before the status has been checked', () => {
    expectTypeOf(outcome.output).toEqualTypeOf<{ count: number } | LargeOutput | null>();
    expectTypeOf(outcome.error?.message).toEqualTypeOf<string | undefined>();
    expectTypeOf(outcome.partial).toEqualTypeOf<string | undefined>();
    const untyped: Outcome = outcome;
    if (untyped.status === 'completed') expectTypeOf(untyped.output).toBeUnknown();
    else expect.unreachable();
  });
});

const UNNAMED = { code: 'INTERNAL', message: 'It ended as lost', retryable: false };

describe('an ended run', () => {
  const { error: _, ...bare } = unfinishedOutcome({ status: 'lost', partial: 'half' });

  test.each([
    ['lost', UNNAMED],
    ['failed', { ...UNNAMED, message: 'It ended as failed' }],
    ['timed_out', { ...UNNAMED, message: 'It ended as timed_out' }],
    ['cancelled', { code: 'CANCELLED', message: 'It ended as cancelled', retryable: false }],
  ] as const)('%s', (status, error) => {
    expect(readOutcome({ ...bare, status })).toEqual({ ...bare, status, error });
    expect(readOutcome({ ...bare, status, error: null })).toEqual({ ...bare, status, error });
    expect(outcomeOf({ status, steps: 0 }, new SubagentLog())).toMatchObject({ status, error });
  });

  test('keeps its error, or has none if the run completed', () => {
    const failed = unfinishedOutcome({ status: 'failed' });
    expect(readOutcome(failed)).toEqual(failed);
    expect(readOutcome(completedOutcome('x'))).toEqual(completedOutcome('x'));
  });
});

/** Returns the outcome as an older version wrote it. */
const withoutErrors = <T extends object>(written: T): T =>
  JSON.parse(JSON.stringify(written), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('toolLedger' in value)) return value;
    const { error, ...rest } = value as { readonly error?: unknown };
    return error === undefined ? value : rest;
  }) as T;

const laterIn = ({ entries, environment }: World): World =>
  world({
    inheritance: { entries: withoutErrors(entries), at: environment.clock.now() },
  });

const cancelled = { code: 'CANCELLED', message: 'It ended as cancelled' };

describe('an outcome', () => {
  test("gets its error back when restored from a session's older entries or snapshot", async () => {
    const of = world({ snapshots: { afterEntries: 1, trim: false } });
    const life = textLife(of, {
      subagents: { paint: { script: () => ({ error: new Error('no paint') }) } },
    });
    await life.start();
    await life.type('use paint');
    await of.environment.advance(500);
    const entries = withoutErrors(of.entries);
    life.kill();
    const ended = entries.find(({ event }) => event.type === 'subagent.ended');
    expect(ended?.event).toMatchObject({ outcome: { status: 'failed', text: '' } });
    expect(ended?.event).not.toHaveProperty('outcome.error');
    const error = { code: 'INTERNAL', message: 'It ended as failed', retryable: false };
    const records = refolded(entries, 'ses');
    const call = () => [...records.calls.values()];
    expect(call()).toMatchObject([{ outcome: { status: 'failed', error } }]);
    const snapshot = records.toSnapshot();
    records.reset();
    records.restore({
      ...snapshot,
      calls: snapshot.calls.map((one) => ({
        ...one,
        outcome: one.outcome && (({ error: __, ...rest }) => rest as Outcome)(one.outcome),
      })),
    });
    expect(call()).toMatchObject([{ outcome: { status: 'failed', error } }]);
  });

  test("gets its error back when restored from a program's older snapshot or replayed", async () => {
    const of = world({ snapshots: { afterEntries: 1, trim: true } });
    const before = programLife(of, { script: turns(never) });
    await before.service.recover();
    const id = before.wanted();
    await of.environment.advance(1000);
    before.service.cancel(id, THE_LEAD);
    await of.environment.advance(1000);
    before.kill();
    const later = laterIn(of);
    expect(JSON.stringify(later.entries)).not.toContain('"error":');
    const after = programLife(later, { script: turns(never) });
    await after.service.recover();
    expect(await after.service.await([id], THE_LEAD)).toMatchObject({
      reports: [{ outcome: { error: cancelled } }],
    });
    expect(after.errors).toEqual([]);
    const [first] = [...replaySession(later.entries)];
    expect(JSON.stringify(first?.changes)).toContain(cancelled.message);
    await after.close();
  });

  test("gets its error back when restored from a service's older journal or snapshot", async () => {
    const stage = serviceStage();
    await stage.start();
    await stage.emit(order({}, { priority: 'urgent' }));
    await stage.end(unfinishedOutcome({ status: 'lost' }));
    const later = serviceStage();
    later.service.refold(withoutErrors(stage.journal.kept));
    const latest = serviceStage();
    latest.service.restore(withoutErrors(later.service.toSnapshot()));
    for (const { start, told } of [later, latest]) {
      await start();
      const texts = told.map(({ text }) => text);
      expect(texts).toEqual([expect.stringContaining('It ended as lost')]);
    }
  });

  test('gets an error when an older engine returns none', async () => {
    const environment = simulatedEnvironment();
    const { error: _, ...outcome } = unfinishedOutcome({ status: 'lost' });
    const engine: RunEngine = {
      name: 'older',
      start: async () => {},
      view: async () => ({ turn: 1, waiting: [], outcome }),
      answer: async () => true,
      cancel: async () => {},
    };
    const config = { name: 'rides', instructions: 'Book.', runs: 'jobs' } as const;
    const runtime = createRuntime({ environment });
    const { result } = runSubagent(config, 'Go', { runtime, engine, id: 'r' });
    await environment.settle();
    expect(await result).toEqual({ ...outcome, error: UNNAMED });
  });
});
