// SESSION-POOL-3 on disk: a later process wakes a session when a channel's step is due.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createRuntime } from '../../../src/index.ts';
import { createSessionPool } from '../../../src/entries/journal.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { fakeChannel } from '../../support/fake-channel.ts';
import { textTalk } from '../../support/text-talk.ts';

const HOUR = 3_600_000;

test('sends the text through each channel from a later process, and sleeps in between', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reach-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const environment = simulatedEnvironment();
  const mail = fakeChannel();
  const sms = fakeChannel();
  const errors: string[] = [];
  function begin() {
    const journal = sqliteJournal({ path: join(folder, 'a.journal'), environment });
    const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
    const steps = [
      { afterUnheardMs: HOUR, by: 'mail' },
      { afterUnheardMs: 3 * HOUR, by: 'sms' },
    ];
    const reach = { channels: { mail, sms }, steps };
    const pool = createSessionPool({
      runtime,
      idleMs: 1000,
      onError: (_error, where) => errors.push(where),
      open: (sessionId) => textTalk({ sessionId, runtime, environment, reach }).session,
    });
    return { journal, pool };
  }
  const first = begin();
  await first.pool.use('a', (session) => session.notifyBackground('Parcel'));
  await environment.advance(10_000);
  expect(first.pool.awakeCount).toBe(0);
  await first.pool.close();
  first.journal.close();

  const next = begin();
  await next.pool.start();
  await environment.advance(HOUR / 2);
  expect(next.pool.awakeCount).toBe(0);
  expect(mail.sent).toEqual([]);
  await environment.advance(HOUR);
  expect(mail.sent).toMatchObject([{ text: 'Parcel' }]);
  expect(next.pool.awakeCount).toBe(0);
  await environment.advance(2 * HOUR);
  expect([mail.sent.length, sms.sent.length]).toEqual([1, 1]);
  expect(await next.pool.use('a', (one) => one.reached(sms.sent[0]?.key ?? '', 'read'))).toBe(true);
  await environment.advance(HOUR);
  expect(next.pool.awakeCount).toBe(0);
  expect(errors).toEqual([]);
  await next.pool.close();
  next.journal.close();
});
