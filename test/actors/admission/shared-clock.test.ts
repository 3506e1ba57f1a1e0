// Processes with different clocks, on one journal with a shared clock.

import { expect, test } from 'vitest';
import { memoryWakeTimes, createSessionPool } from '../../../src/entries/journal.ts';
import {
  createRuntime,
  memoryJournal,
  type Environment,
  type Journal,
  type TextSession,
} from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { paintingSession } from '../pool/painting-session.ts';

const AHEAD_MS = 90 * 60_000;

test('continues a run without a timeout in a process whose clock is 90 minutes ahead', async () => {
  const environment = simulatedEnvironment();
  const kept: Journal = { ...memoryJournal({ keep: Infinity }), wakeTimes: memoryWakeTimes() };
  const said: string[] = [];
  const processWith = (aheadMs: number) => {
    const { clock, scheduler, ids, random } = environment;
    const own: Environment = {
      clock: { now: () => clock.now() + aheadMs },
      scheduler,
      ids,
      random,
    };
    const journal: Journal = { ...kept, clockOffsetMs: () => -aheadMs };
    const runtime = createRuntime({ environment: own, journal });
    return createSessionPool<TextSession>({
      runtime,
      open: (sessionId) =>
        paintingSession({
          sessionId,
          runtime,
          environment,
          askMs: 60_000,
          slowMs: 20_000,
          idempotent: true,
          said,
        }),
    });
  };
  const first = processWith(0);
  await first.use('a', (session) => session.sendText('use slow'));
  await environment.advance(1_000);
  await first.close();
  const second = processWith(AHEAD_MS);
  await second.start();
  await environment.advance(60_000);
  expect(said.join()).toContain('It took a while.');
  await second.close();
});

test('keeps the shared clock moving forward when the offset decreases', () => {
  let [own, offsetMs] = [1_000_000, 0];
  const environment: Environment = { ...simulatedEnvironment(), clock: { now: () => own } };
  const journal: Journal = { ...memoryJournal(), clockOffsetMs: () => offsetMs };
  const { clock } = createRuntime({ environment, journal }).environment;
  expect(clock.now()).toBe(1_000_000);
  offsetMs = 5_000;
  expect(clock.now()).toBe(1_005_000);
  offsetMs = 0;
  own += 10;
  expect(clock.now()).toBe(1_005_010);
  expect(clock.wall?.()).toBe(1_000_010);
});
