// Jumps between the entries of a long session.

import { expect, test } from 'vitest';
import { replaySession } from '../../src/entries/replay.ts';
import { redactNothing, shownValue } from '../../src/adapters/inspect/shown-value.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { InspectedSession } from '../../src/inspector/inspected-session.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { rideSession } from '../serve/support/served.ts';

test('INSPECTED-3: shows the same state for an entry, however the entry is reached', async () => {
  const journal = memoryJournal({ keep: 100_000 });
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const leave = session.attach();
  await session.sendText('use book_ride');
  for (let said = 0; said < 300; said += 1) {
    await session.sendText(`word ${said}`);
    await session.idle();
  }
  leave();
  await session.close();
  const entries = journal.read({ scope: 'ses_1' });
  expect(entries.length).toBeGreaterThan(1_150);

  const environment = simulatedEnvironment();
  const inspected = new InspectedSession(journal, 'ses_1', redactNothing, environment);
  await inspected.refresh();
  const ids = ['session', 'outbox', 'interaction', 'subagent sub_1'];
  const wanted = [1, 2, 998, 999, 1000, 1001, 1002, 1100, entries.length];
  const direct = new Map<number, unknown>();
  for (const { number, machines } of replaySession(entries))
    if (machines && wanted.includes(number))
      direct.set(number, [
        machines.session?.value,
        shownValue(machines.session?.context, 'context', redactNothing, { bytesLeft: 32_768 }),
      ]);
  const jumps = [...wanted, ...wanted.toReversed(), 1100, 2, 1000, 1, 1002, 1001];
  const seen = new Map<number, unknown>();
  for (const n of jumps) {
    const shown = ids.map((id) => inspected.subjectAt(n, id, 'ann'));
    const [first] = shown;
    expect([first?.value, first?.context], `entry ${n}`).toEqual(direct.get(n));
    if (seen.has(n)) expect(shown).toEqual(seen.get(n));
    seen.set(n, shown);
  }
});

test('INSPECTED-6: sends a long session in parts and yields to the event loop in between', async () => {
  const journal = memoryJournal({ keep: Infinity });
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const leave = session.attach();
  await session.sendText('use book_ride');
  await session.idle();
  leave();
  await session.close();
  const whole = journal.read().length;
  // Each entry takes 5 ms.
  let now = 0;
  const turns: number[] = [];
  const environment = {
    clock: { now: () => (now += 5) },
    scheduler: {
      ...simulatedEnvironment().scheduler,
      yieldThen(task: () => void) {
        turns.push(inspected.count);
        queueMicrotask(task);
      },
    },
  };
  const inspected: InspectedSession = new InspectedSession(
    journal,
    'ses_1',
    redactNothing,
    environment,
  );
  await inspected.look();
  const early = inspected.count;
  expect(early).toBeGreaterThan(0);
  expect(early).toBeLessThan(whole);
  expect(inspected.kept).toBe(whole);
  expect(inspected.subjectAt(early, 'session', 'ann')?.value).toBeTruthy();
  await inspected.refresh();
  expect(inspected.count).toBe(whole);
  const most = turns.map((count, index) => count - (turns[index - 1] ?? 0));
  expect(Math.max(...most)).toBeLessThan(5);
});
