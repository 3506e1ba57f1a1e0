// Many processes on one database: the cost of their heartbeats and searches, how sessions are distributed, and several
// versions at the same time.

import { describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { heartbeat } from '../../../src/adapters/postgres-journal/node-leases.ts';
import { deskQuery } from '../../../src/adapters/journal-rows/desk-rows.ts';
import { placeholder } from '../../../src/adapters/postgres-journal/postgres-journal.ts';
import { take, unattended } from '../../../src/adapters/postgres-journal/node-wake-times.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { sleepersOn } from './sleepers.ts';
import { ask, downgrade, entry, expireLeases, newSchema, open } from './support.ts';

const NOW = 1_700_000_000_000;

interface Plan {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'WAL Bytes': number;
}

/** Runs a statement and returns its cost. The parameters are inserted into the statement's text. */
async function costOf(statement: string, values: readonly string[]): Promise<Plan> {
  const text = statement.replaceAll(/\$(\d+)/g, (_, at) => values[Number(at) - 1] ?? 'null');
  const [row] = await ask<{ 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }>(
    `explain (analyze, buffers, wal, format json) ${text}`,
  );
  if (!row) throw new Error('Expected a plan');
  return row['QUERY PLAN'][0].Plan;
}

describe('the cost of a page of the desk', () => {
  test.each([
    ['all identities', undefined],
    ['an identity', ['user_7']],
  ])(
    'includes two ranges of the index and fewer than 500 pages, with 100,000 sessions, for %s',
    async (_whose, answerableBy) => {
      const schema = newSchema();
      await open({ schema });
      await ask(`
      insert into ${schema}.desk (scope, id, who, kind, since, body)
        select 'ses_' || i, 'approval q', 'listed', 'approval', ${NOW} + i % 1000, '{}' from generate_series(1, 100000) i;
      insert into ${schema}.desk (scope, id, who, kind, since)
        select 'ses_' || i, 'approval q', '=user_' || i % 1000, 'approval', ${NOW} + i % 1000
        from generate_series(1, 100000) i`);
      await ask(`analyze ${schema}.desk`);
      const { text, values } = deskQuery(
        {
          kinds: ['approval'],
          ...(answerableBy && { answerableBy }),
          limit: 50,
          after: { since: NOW, scope: 'ses_9', id: '' },
        },
        `${schema}.desk`,
        placeholder,
      );
      const quoted = values.map((value) =>
        typeof value === 'string' ? `'${value}'` : String(value),
      );
      const literal = text.replaceAll(/\$(\d+)/g, (_, at) => quoted[Number(at) - 1] ?? 'null');
      const rows = await ask<{ 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }>(
        `explain (analyze, buffers, format json) ${literal}`,
      );
      const plan = rows[0]?.['QUERY PLAN'][0].Plan;
      const said = JSON.stringify(plan);
      expect(said.match(/"Index Name":"desk_in_order"/g)).toHaveLength(2);
      expect(said).not.toContain('Seq Scan');
      expect(plan && buffers(plan)).toBeLessThan(500);
      expect(plan).toMatchObject({ 'Actual Rows': 50 });
    },
  );
});

const buffers = (plan: Plan): number => plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];

describe('the cost of a node', () => {
  test('includes one row per heartbeat, regardless of the number of sessions', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    const [node] = await ask<{ id: string }>(`select id from ${schema}.nodes`);
    await ask(`insert into ${schema}.leases (scope, token, node)
      select 'ses_' || i, i + 1000, ${node?.id} from generate_series(1, 1000) i`);
    const plan = await costOf(heartbeat(schema), [String(node?.id), `'holder'`, 'null', '15000']);
    // With a lease and a heartbeat per session, it was 350 KB.
    expect(plan['WAL Bytes']).toBeGreaterThan(0);
    expect(plan['WAL Bytes']).toBeLessThan(1000);
    expect(buffers(plan)).toBeLessThan(20);
  });

  test('POSTGRES-JOURNAL-WAKE-TIMES-4: reads fewer than 100 pages when none of 200,000 sessions is due', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    const [node] = await ask<{ id: string }>(`select id from ${schema}.nodes`);
    await ask(`
      insert into ${schema}.nodes select i + 1000000, 'node ' || i, null, clock_timestamp() + interval '1 hour'
        from generate_series(0, 199) i;
      insert into ${schema}.leases (scope, token, node)
        select 'ses_' || i, i + 1000, i % 200 + 1000000 from generate_series(1, 200000) i;
      insert into ${schema}.wake_times (scope, at, node)
        select 'ses_' || i, 0, i % 200 + 1000000 from generate_series(1, 200000) i;
      insert into ${schema}.wake_times (scope, at)
        select 'asleep_' || i, ${NOW} + i from generate_series(1, 100000) i;
    `);
    await ask(`analyze ${schema}.leases, ${schema}.wake_times, ${schema}.nodes`);
    const taking = [String(node?.id), '3', '0', String(NOW), '16', `'{}'`];
    // The first run sets the hint bits of new rows.
    await costOf(take(schema), taking);
    expect(buffers(await costOf(take(schema), taking))).toBeLessThan(100);
    const next = [String(NOW), `'\u{10ffff}'`, '1', '0'];
    expect(buffers(await costOf(unattended(schema), next))).toBeLessThan(100);
    // A dead node costs nothing either, apart from the sessions that are taken over.
    await ask(`update ${schema}.nodes set expires_at = clock_timestamp() where id = 1000007`);
    expect(await journal.wakeTimes.take?.({ now: NOW, limit: 16, except: [] })).toHaveLength(16);
  });
});

describe('sessions that are due', () => {
  test('POSTGRES-JOURNAL-WAKE-TIMES-5: go to one process each when several processes search simultaneously', async () => {
    const schema = newSchema();
    const journals = await Promise.all(Array.from({ length: 4 }, () => open({ schema })));
    const due = Array.from({ length: 100 }, (_, index) => `ses_${index}`);
    await Promise.all(due.map(async (scope, at) => journals[0]?.wakeTimes.set(scope, NOW + at)));
    await journals[0]?.wakeTimes.set('later', NOW + 1000);
    const taken: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const found = await Promise.all(
        journals.map(async ({ wakeTimes }) =>
          wakeTimes.take?.({ now: NOW + 999, limit: 7, except: ['ses_50'] }),
        ),
      );
      taken.push(...found.flatMap((scopes) => scopes ?? []));
    }
    expect(taken.toSorted()).toEqual(due.filter((scope) => scope !== 'ses_50').toSorted());
    // The sessions are claimed.
    const [scope = ''] = taken;
    const outcomes = await Promise.allSettled(journals.map((journal) => journal.claim(scope)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('move from a dead process to another, but never from a live one', async () => {
    const schema = newSchema();
    const [dies, lives, looks] = await Promise.all([1, 2, 3].map(() => open({ schema })));
    for (const [journal, scope] of [
      [dies, 'dead'],
      [dies, 'asleep'],
      [lives, 'alive'],
    ] as const) {
      await journal?.claim(scope);
      await journal?.wakeTimes.set(scope, scope === 'asleep' ? NOW : 0);
    }
    await dies?.release('asleep');
    const look = async () => looks?.wakeTimes.take?.({ now: NOW - 1, limit: 16, except: [] });
    expect(await look()).toEqual([]);
    await ask(`update ${schema}.nodes set expires_at = clock_timestamp() where id =
      (select node from ${schema}.leases where scope = 'dead')`);
    expect(await look()).toEqual(['dead']);
    expect(await look()).toEqual([]);
    await expect(dies?.append(entry(1, 'unit', 'dead'))).rejects.toMatchObject({ code: 'FENCED' });
    await lives?.append(entry(1, 'unit', 'alive'));
  });

  test('move to another process immediately when they are released', async () => {
    const schema = newSchema();
    const [one, other] = await Promise.all([open({ schema }), open({ schema })]);
    await one?.claim('scope');
    await one?.wakeTimes.set('scope', 0);
    const look = async () => other?.wakeTimes.take?.({ now: NOW, limit: 16, except: [] });
    expect(await look()).toEqual([]);
    await one?.release('scope');
    expect(await look()).toEqual(['scope']);
    await other?.close();
    expect(await one?.wakeTimes.take?.({ now: NOW, limit: 16, except: [] })).toEqual(['scope']);
  });
});

test('names the holder of a lease and the address of that holder', async () => {
  const schema = newSchema();
  const address = 'http://10.0.0.7:3000';
  await (await open({ schema, address })).claim('scope');
  await expect((await open({ schema })).claim('scope')).rejects.toMatchObject({
    name: 'CapacityError',
    code: 'SCOPE_IN_USE',
    holder: { name: expect.stringContaining(`process ${process.pid}`), address },
    message: expect.stringContaining(address),
  });
});

test('LEASES-7: retries a failed release at the next heartbeat', async () => {
  const environment = simulatedEnvironment();
  const schema = newSchema();
  const journal = await open({ schema, environment, leaseMs: 3000 });
  await journal.claim('scope');
  await ask(`create function ${schema}.refuse() returns trigger language plpgsql as
    $$ begin raise 'refused'; end $$`);
  await ask(`create trigger refuse before delete on ${schema}.leases
    for each row execute function ${schema}.refuse()`);
  await expect(journal.release('scope')).rejects.toMatchObject({ code: 'JOURNAL_IO' });
  await ask(`drop trigger refuse on ${schema}.leases`);
  await environment.advance(1000);
  while ((await ask(`select 1 from ${schema}.leases`)).length > 0) await environment.settle();
  await (await open({ schema })).claim('scope');
});

describe('two releases of Offstage at the same time', () => {
  test('LEASES-6: let the older one keep its scopes, but not claim scopes written by the newer one', async () => {
    const schema = newSchema();
    const [old, later] = await Promise.all([open({ schema }), open({ schema, release: 7 })]);
    for (const [journal, scope] of [
      [old, 'old'],
      [later, 'later'],
    ] as const) {
      await journal.claim(scope);
      await journal.append(entry(1, 'unit', scope));
      await journal.wakeTimes.set(scope, NOW);
      await journal.release(scope);
    }
    await expect(old.claim('later')).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'JOURNAL_TOO_NEW',
      message: expect.stringMatching(/later was written by release 7.*release 0/),
    });
    const look = { now: NOW, limit: 16, except: [] };
    expect(await old.wakeTimes.take?.(look)).toEqual(['old']);
    await old.release('old');
    expect(await later.wakeTimes.take?.(look)).toEqual(['later', 'old']);
  });

  test('keep a question open under the same id during the deployment', async () => {
    const schema = newSchema();
    const failed: string[] = [];
    const environment = nodeEnvironment();
    const poolOf = async (release: number, said?: (text: string) => void) => {
      const journal = await open({ schema, release });
      const options = { environment, failed: (where: string) => failed.push(where) };
      return sleepersOn(journal, { ...options, ...(said && { said: (_id, text) => said(text) }) });
    };
    const asked = async (pool: Awaited<ReturnType<typeof poolOf>>) =>
      pool.use('chat', (session) =>
        session.store
          .getSnapshot()
          .context.questions.filter(({ state }) => state === 'open')
          .map(({ requestId }) => requestId),
      );
    const old = await poolOf(1);
    await old.use('chat', (session) => session.sendText('use paint'));
    while ((await asked(old)).length === 0) await new Promise((resolve) => setImmediate(resolve));
    const before = await asked(old);
    await old.close();

    let told = (_text: string): void => {};
    const result = new Promise<string>((resolve) => (told = resolve));
    const later = await poolOf(2, (text) => told(text));
    await later.start();
    expect(await asked(later)).toEqual(before);
    const beside = await poolOf(1);
    await beside.start();
    // This holds whether or not that process has the session in memory.
    await expect(asked(beside)).rejects.toMatchObject({
      code: expect.stringMatching(/^(SCOPE_IN_USE|JOURNAL_TOO_NEW)$/),
    });
    await later.use('chat', (session) => session.answer(before[0] ?? '', { text: 'red' }));
    expect(await result).toContain('red');
    await later.close();
    await expect(asked(beside)).rejects.toMatchObject({ code: 'JOURNAL_TOO_NEW' });
    await beside.close();
    expect(failed).toEqual([]);
  });

  test('lets a process with layout 2 renew its leases, but not claim more', async () => {
    const schema = newSchema();
    const first = await open({ schema });
    await first.claim('scope');
    await first.append(entry(1));
    await first.wakeTimes.set('scope', NOW);
    await first.close();
    await downgrade(schema, 2);
    await ask(`insert into ${schema}.leases (scope, token, holder, expires_at)
      values ('scope', 77, 'an old process', clock_timestamp() + interval '1 hour')`);
    // One of them upgrades these tables without losing anything.
    const [journal, other] = await Promise.all([open({ schema }), open({ schema })]);
    expect(await other.read()).toEqual([entry(1)]);
    expect(await other.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'scope', at: NOW }]);
    await expect(journal.claim('scope')).rejects.toMatchObject({
      code: 'SCOPE_IN_USE',
      holder: { name: 'an old process', address: null },
    });
    const look = { now: NOW, limit: 16, except: [] };
    expect(await journal.wakeTimes.take?.(look)).toEqual([]);
    // The statements of layout 2: a heartbeat, an append under the lease, and a claim.
    const renewed =
      await ask(`update ${schema}.leases set expires_at = clock_timestamp() + interval '1 hour'
      where scope = 'scope' and token = 77 returning scope`);
    expect(renewed).toHaveLength(1);
    await ask(`insert into ${schema}.entries (scope, unit, seq, at, actor, definition_version, event, checksum, packed)
      select 'beside', unit, seq, at, actor, definition_version, event, checksum, packed from ${schema}.entries`);
    const claimed = await ask(`insert into ${schema}.leases as l (scope, token, holder, expires_at)
      select 'new', nextval('${schema}.lease_tokens'), 'an old process', clock_timestamp()
      from ${schema}.layout where version <= 2 returning token`);
    expect(claimed).toEqual([]);
    await ask(`update ${schema}.leases set expires_at = clock_timestamp() where token = 77`);
    expect(await journal.wakeTimes.take?.(look)).toEqual(['scope']);
    await journal.append(entry(2));
    await expireLeases(schema);
    await other.claim('scope');
    expect(await other.read({ scope: 'scope' })).toEqual([entry(1), entry(2)]);
  });
});

test('LEASES-8: measures the clock offset of a node that is 90 minutes ahead', async () => {
  const { clock, ...others } = nodeEnvironment();
  const ahead = (now: () => number) => () => now() + 90 * 60_000;
  const now = ahead(() => clock.now());
  const environment = { ...others, clock: { now, wall: now } };
  const schema = newSchema();
  const journal = await open({ schema, environment });
  const offsetMs = journal.clockOffsetMs?.() ?? 0;
  expect(Math.abs(offsetMs + 90 * 60_000)).toBeLessThan(60_000);
  // The test server uses this machine's clock.
  expect((await open({ schema })).clockOffsetMs?.()).toBe(0);
});
