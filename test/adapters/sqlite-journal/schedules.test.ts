// SESSION-POOL-3 on disk: a later process wakes a session at its scheduled time.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createRuntime } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { textTalk } from '../../support/text-talk.ts';

const HOUR = 3_600_000;

test('delivers the scheduled text exactly once, in a later process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'schedules-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const environment = simulatedEnvironment();
  const said: string[] = [];
  const errors: string[] = [];
  function begin() {
    const journal = sqliteJournal({ path: join(folder, 'a.journal'), environment });
    const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
    const pool = createSessionPool({
      runtime,
      idleMs: 1000,
      onError: (_error, where) => errors.push(where),
      open(sessionId) {
        const { session } = textTalk({ sessionId, runtime, environment });
        session.parts.subscribe((part) => {
          if (part.type === 'text.done') said.push(part.text);
        });
        return session;
      },
    });
    return { journal, pool };
  }
  const first = begin();
  const at = environment.clock.now() + HOUR;
  await first.pool.use('a', (session) => session.schedule({ key: 'k', at, say: 'Pizza' }));
  await environment.advance(10_000);
  expect(first.pool.awakeCount).toBe(0);
  await first.pool.close();
  first.journal.close();

  const next = begin();
  await next.pool.start();
  expect(next.pool.awakeCount).toBe(0);
  await environment.advance(HOUR);
  await environment.advance(HOUR);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('Pizza');
  expect(next.pool.awakeCount).toBe(0);
  expect(errors).toEqual([]);
  await next.pool.close();
  next.journal.close();
});
