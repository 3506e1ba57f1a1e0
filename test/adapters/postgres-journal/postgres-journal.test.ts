import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { forgetSession, type JournalEntry, type WakeTime } from '../../../src/entries/journal.ts';
import { inOrder } from '../../../src/actors/ports/wake-times.ts';
import { explained, openPool } from '../../../src/adapters/postgres-journal/database.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { ask, connection, downgrade, entry, expireLeases, newSchema, open } from './support.ts';

/** Breaks all connections of the journals in this schema; the connections are named after the schema. */
async function cutOff(schema: string): Promise<number> {
  const cut = await ask(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
    [schema],
  );
  return cut.length;
}

/**
 * Makes another client start to write the first entry of the unit, so that an append of this entry waits in the middle
 * of its statement. Returns a function that rolls the other client back.
 */
async function keepFirst(schema: string): Promise<() => Promise<void>> {
  const keeper = new Client(connection);
  await keeper.connect();
  await keeper.query(`begin; insert into ${schema}.entries
    (scope, unit, seq, at, actor, definition_version, event, checksum)
    values ('scope', 'unit', 1, 1, 'somebody', 1, '{}', 1)`);
  return async () => {
    await keeper.query('rollback');
    await keeper.end();
  };
}

/** Waits until this many connections named after the schema are waiting for a lock. */
async function untilWaiting(schema: string, count: number): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`;
  while ((await ask(waiting, [schema])).length < count);
}

describe('errors', () => {
  test.each(['EPIPE', 'EPERM', 'ECONNRESET'])(
    'become JOURNAL_UNREACHABLE after the socket error %s',
    (code) => {
      const error = Object.assign(new Error(`write ${code}`), { code, syscall: 'write' });
      expect(explained(error, 'pg')).toMatchObject({
        code: 'JOURNAL_UNREACHABLE',
        retryable: true,
      });
    },
  );

  test('become JOURNAL_IO for a server error', () => {
    const error = Object.assign(new Error('lost a page'), { code: 'XX001', severity: 'ERROR' });
    expect(explained(error, 'pg')).toMatchObject({ code: 'JOURNAL_IO', retryable: true });
  });
});

describe('appends', () => {
  test('APPEND-QUEUE-1, APPEND-QUEUE-2: share one statement per event loop turn, in order', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    const entries = Array.from({ length: 200 }, (_, index) => entry(1, `unit ${199 - index}`));
    await Promise.all(entries.map((one) => journal.append(one)));
    expect(await journal.read()).toEqual(entries);
    const transactions = await ask(`select distinct xmin::text from ${schema}.entries`);
    expect(transactions).toHaveLength(1);
  });

  test('split into several statements, in order, if they do not fit into one', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    // Random bytes, which packing cannot compress.
    const large = randomBytes(1_000_000).toString('base64');
    const entries = [
      ...Array.from({ length: 1500 }, (_, index) => entry(1, `unit ${index}`)),
      ...Array.from({ length: 5 }, (_, index) => ({
        ...entry(1, `large ${index}`),
        event: { type: 'said', large } as { type: string },
      })),
    ];
    await Promise.all(entries.map((one) => journal.append(one)));
    expect((await journal.read()).map(({ unit }) => unit)).toEqual(entries.map(({ unit }) => unit));
    const transactions = await ask(`select distinct xmin::text from ${schema}.entries`);
    expect(transactions.length).toBeGreaterThan(2);
  });

  test('APPEND-QUEUE-4: store only the first of two entries with the same number', async () => {
    const journal = await open({ schema: newSchema() });
    await journal.claim('scope');
    const other = { ...entry(1), event: { type: 'another' } };
    const outcomes = await Promise.allSettled([entry(1), other, entry(1)].map(journal.append));
    expect(outcomes).toMatchObject([
      { status: 'fulfilled' },
      { reason: { code: 'JOURNAL_CONFLICT', retryable: false } },
      { status: 'fulfilled' },
    ]);
  });

  test('APPEND-QUEUE-3: fail if the scope has not been claimed', async () => {
    const journal = await open({ schema: newSchema() });
    await expect(journal.append(entry(1))).rejects.toMatchObject({
      code: 'FENCED',
      retryable: false,
      message: expect.stringContaining('scope'),
    });
    expect(await journal.read()).toEqual([]);
  });

  test('APPEND-QUEUE-3: delay a takeover until a running append has been stored', async () => {
    const schema = newSchema();
    const named = { schema, connection: { ...connection, application_name: schema } };
    const journal = await open({ ...named, leaseMs: 600_000 });
    const other = await open({ ...named, leaseMs: 600_000 });
    await journal.claim('scope');
    await expireLeases(schema);
    const giveBack = await keepFirst(schema);
    const appended = journal.append(entry(1));
    await untilWaiting(schema, 1);
    let found: readonly JournalEntry[] | undefined;
    const takenOver = other.claim('scope').then(async () => {
      found = await other.read();
    });
    await untilWaiting(schema, 2);
    expect(found).toBeUndefined();
    await giveBack();
    await appended;
    await takenOver;
    expect(found).toEqual([entry(1)]);
    await expect(journal.append(entry(2))).rejects.toMatchObject({ code: 'FENCED' });
  });

  test.each(['a\0b', '\ud83d'])(
    'refuse a name that is not a string, without affecting other appends: %j',
    async (name) => {
      const journal = await open({ schema: newSchema() });
      await journal.claim('scope');
      const [refused, kept] = await Promise.allSettled(
        [entry(1, name), entry(1)].map(journal.append),
      );
      expect(refused).toMatchObject({ reason: { code: 'INVALID_ENTRY', retryable: false } });
      expect(kept?.status).toBe('fulfilled');
    },
  );

  test('STORED-ENTRY-1: cause an error that names the entry if a changed entry is read', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    await ask(`update ${schema}.entries set event = replace(event, '2', '7') where seq = 2`);
    await expect(journal.read()).rejects.toMatchObject({
      code: 'JOURNAL_CORRUPT',
      message: expect.stringMatching(/entry 2 of unit in scope/),
    });
  });
});

describe('a connection that is lost', () => {
  test('gets replaced at the next call if it was idle', async () => {
    const schema = newSchema();
    const journal = await open({ schema, connection: { ...connection, application_name: schema } });
    await journal.claim('scope');
    await journal.append(entry(1));
    expect(await cutOff(schema)).toBeGreaterThan(0);
    // The journal may or may not have noticed yet.
    await journal.append(entry(2)).catch(() => journal.append(entry(2)));
    expect(await journal.read()).toEqual([entry(1), entry(2)]);
  });

  test('fails a running append, but stores the append only once if it is retried', async () => {
    const schema = newSchema();
    const journal = await open({ schema, connection: { ...connection, application_name: schema } });
    await journal.claim('scope');
    // Another client locks the table, so the append has to wait.
    const giveBack = await keepFirst(schema);
    const refusal = journal.append(entry(1)).catch((error: unknown) => error);
    await untilWaiting(schema, 1);
    await cutOff(schema);
    expect(await refusal).toMatchObject({ code: 'JOURNAL_UNREACHABLE', retryable: true });
    await giveBack();
    await journal.append(entry(1));
    await journal.append(entry(2));
    expect(await journal.read()).toEqual([entry(1), entry(2)]);
  });

  test('fails an append whose response is late, but stores it only once if it is retried', async () => {
    const schema = newSchema();
    await open({ schema });
    const journal = await open({ schema, timeoutMs: 1000 });
    await journal.claim('scope');
    const giveBack = await keepFirst(schema);
    await expect(journal.append(entry(1))).rejects.toMatchObject({ retryable: true });
    await giveBack();
    // The first attempt may have been written after all.
    await journal.append(entry(1));
    expect(await journal.read()).toEqual([entry(1)]);
  });
});

describe('leases', () => {
  test("LEASES-2: remain valid while the node's heartbeat renews them in the background", async () => {
    const environment = simulatedEnvironment();
    const schema = newSchema();
    const journal = await open({ schema, environment, leaseMs: 3000 });
    await journal.claim('one');
    await journal.claim('two');
    expect(environment.pendingTimers).toBe(0);
    for (let beat = 0; beat < 3; beat += 1) {
      await expireLeases(schema);
      await environment.advance(1000);
      const alive = `select 1 from ${schema}.leases l join ${schema}.nodes n on n.id = l.node
        where n.expires_at > clock_timestamp()`;
      while ((await ask(alive)).length < 2);
      // The next heartbeat is scheduled when the answer has arrived.
      while (environment.backgroundTimers === 0) await environment.settle();
    }
    await journal.close();
    expect(environment.backgroundTimers).toBe(0);
  });

  test('LEASES-3: reject appends without a query after the leases have been lost', async () => {
    const environment = simulatedEnvironment();
    const schema = newSchema();
    const journal = await open({ schema, environment, leaseMs: 3000 });
    await journal.claim('scope');
    await expireLeases(schema);
    const other = await open({ schema, leaseMs: 600_000 });
    await other.claim('scope');
    const lease = `select * from ${schema}.leases`;
    const before = await ask(lease);
    await environment.advance(1000);
    // There is nothing left to renew, so no heartbeat follows.
    while (environment.backgroundTimers > 0) await environment.settle();
    await expect(
      Promise.all([journal.append(entry(1)), environment.advance(0)]),
    ).rejects.toMatchObject({
      code: 'FENCED',
    });
    expect(await ask(lease)).toEqual(before);
  });

  test('LEASES-1: have increasing tokens, even after a release', async () => {
    const schema = newSchema();
    const tokens: number[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const journal = await open({ schema });
      await journal.claim('scope');
      const [lease] = await ask<{ token: string }>(`select token from ${schema}.leases`);
      tokens.push(Number(lease?.token));
      if (turn === 1) await journal.release('scope');
      else await expireLeases(schema);
    }
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    expect(tokens).toHaveLength(3);
  });

  test('name their holder in the error', async () => {
    const schema = newSchema();
    await (await open({ schema })).claim('scope');
    await expect((await open({ schema })).claim('scope')).rejects.toMatchObject({
      name: 'CapacityError',
      code: 'SCOPE_IN_USE',
      message: expect.stringContaining(`process ${process.pid}`),
    });
  });

  test('end when the journal closes', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    const last = journal.append(entry(1));
    await journal.close();
    await last;
    const other = await open({ schema });
    await other.claim('scope');
    expect(await other.read()).toEqual([entry(1)]);
  });

  test('end when the journal closes during a claim', async () => {
    const environment = simulatedEnvironment();
    const schema = newSchema();
    const named = { ...connection, application_name: schema };
    const journal = await open({ schema, environment, connection: named });
    const other = new Client(connection);
    await other.connect();
    await other.query(`begin; insert into ${schema}.leases values ('scope', 0, 'other', now())`);
    const claimed = journal.claim('scope');
    await untilWaiting(schema, 1);
    const closed = journal.close();
    await other.query('rollback');
    await other.end();
    await Promise.all([claimed, closed]);
    expect(await ask(`select holder from ${schema}.leases`)).toEqual([]);
    expect(environment.backgroundTimers).toBe(0);
  });

  test('LEASES-5: remain valid for a claim that is made during a release', async () => {
    const journal = await open({ schema: newSchema() });
    await journal.claim('scope');
    const last = journal.append(entry(1));
    // The releases wait for the append.
    const released = [journal.release('scope'), journal.release('scope')];
    await journal.claim('scope');
    await Promise.all([last, ...released]);
    await journal.append(entry(2));
    expect(await journal.read()).toEqual([entry(1), entry(2)]);
  });

  test('end without waiting for appends to other scopes', async () => {
    const journal = await open({ schema: newSchema() });
    await journal.claim('scope');
    await journal.claim('busy');
    let isReleased = false;
    let seenAfter = 0;
    const goOn = async (unit: string): Promise<void> => {
      for (let seq = 1; seq <= 50 && !isReleased; seq += 1)
        await journal.append(entry(seq, unit, 'busy'));
      seenAfter += 1;
    };
    const busy = ['one', 'two', 'three'].map(goOn);
    const last = journal.append(entry(1));
    await journal.release('scope');
    isReleased = true;
    expect(seenAfter).toBe(0);
    await last;
    await Promise.all(busy);
  });
});

describe('forgetting', () => {
  test('deletes a large scope in parts, newest entries first', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    const entries = Array.from({ length: 4500 }, (_, index) => entry(1, `unit ${index}`));
    await Promise.all(entries.map((one) => journal.append(one)));
    // The last part fails, as if the process had died.
    await ask(`create function ${schema}.refuse() returns trigger language plpgsql as
      $$ begin if old.unit = 'unit 7' then raise 'refused'; end if; return old; end $$`);
    await ask(`create trigger refuse before delete on ${schema}.entries
      for each row execute function ${schema}.refuse()`);
    await expect(journal.forget('scope')).rejects.toMatchObject({ code: 'JOURNAL_IO' });
    expect(await journal.read()).toEqual(entries.slice(0, 500));
    await ask(`drop trigger refuse on ${schema}.entries`);
    await journal.forget('scope');
    expect(await journal.read()).toEqual([]);
    // This journal still claims the scope.
    await journal.append(entry(1));
  });

  test('removes the lease holder', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.forget('scope');
    expect(await ask(`select 1 from ${schema}.leases`)).toEqual([]);
  });
});

describe('long events', () => {
  const long = { ...entry(2), event: { type: 'said', long: 'a long text '.repeat(1000) } as never };

  test('STORED-ENTRY-2: get packed, and can be appended a second time', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    await Promise.all([entry(1), long, entry(3), long].map(journal.append));
    await journal.append(long);
    expect(await journal.read()).toEqual([entry(1), long, entry(3)]);
    expect(
      await ask(`select event, length(packed) < 200 as is_short from ${schema}.entries`),
    ).toEqual([
      { event: JSON.stringify(entry(1).event), is_short: null },
      { event: '', is_short: true },
      { event: JSON.stringify(entry(3).event), is_short: null },
    ]);
  });

  test('STORED-ENTRY-1: cause an error that names the entry if they have been changed', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    for (const one of [entry(1), long]) await journal.append(one);
    await ask(`update ${schema}.entries set packed = set_byte(packed, 20, 85) where seq = 2`);
    await expect(journal.read()).rejects.toMatchObject({
      code: 'JOURNAL_CORRUPT',
      message: expect.stringContaining('entry 2 of unit in scope'),
    });
  });
});

describe('trimming', () => {
  test('waits for pending entries, and trims those too', async () => {
    const journal = await open({ schema: newSchema() });
    await journal.claim('scope');
    const appended = [1, 2, 3].map((seq) => journal.append(entry(seq)));
    await journal.trim(entry(2));
    await Promise.all(appended);
    expect(await journal.read()).toEqual([entry(2), entry(3)]);
  });

  test('deletes either every entry or none', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('scope');
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    await ask(`create function ${schema}.refuse() returns trigger language plpgsql as
      $$ begin if old.seq = 2 then raise 'refused'; end if; return old; end $$`);
    await ask(`create trigger refuse before delete on ${schema}.entries
      for each row execute function ${schema}.refuse()`);
    await expect(journal.trim(entry(3))).rejects.toMatchObject({
      code: 'JOURNAL_IO',
      retryable: true,
    });
    expect(await journal.read()).toEqual([entry(1), entry(2), entry(3)]);
  });

  test('READING-1: lets a concurrent read return the scope as it was before or after the trim', async () => {
    const schema = newSchema();
    // A page reads only its own rows.
    const options = '-c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off';
    const named = { ...connection, application_name: schema, options };
    const journal = await open({ schema, connection: named });
    await journal.claim('scope');
    const entries = Array.from({ length: 4500 }, (_, index) => entry(1, `unit ${index}`));
    await Promise.all(entries.map((one) => journal.append(one)));
    // A reader of the middle waits for this transaction.
    const us = new Client(connection);
    await us.connect();
    await us.query('select pg_advisory_lock(hashtext($1))', [schema]);
    await us.query(`alter table ${schema}.entries rename to kept;
      create function ${schema}.waits(unit text) returns boolean language plpgsql as
        $$ begin
          if unit = 'unit 2500' then perform pg_advisory_xact_lock_shared(hashtext('${schema}')); end if;
          return true;
        end $$;
      create view ${schema}.entries as select * from ${schema}.kept where ${schema}.waits(unit)`);
    const read = journal.read({ scope: 'scope' });
    await untilWaiting(schema, 1);
    await us.query(`delete from ${schema}.kept where id <
      (select id from ${schema}.kept where unit = 'unit 4400')`);
    await us.end();
    const found = await read;
    expect([4500, 100]).toContain(found.length);
    expect(found).toEqual(entries.slice(-found.length));
  });

  test('DELETIONS-1: deletes nothing if it fails during a takeover', async () => {
    const schema = newSchema();
    const named = { ...connection, application_name: schema };
    const journal = await open({ schema, connection: named, leaseMs: 600_000 });
    await journal.claim('scope');
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    const other = new Client(connection);
    await other.connect();
    await other.query(`begin; update ${schema}.leases set token = token + 1, holder = 'other'`);
    const trimmed = journal.trim(entry(3)).catch((error: unknown) => error);
    await untilWaiting(schema, 1);
    await other.query('commit');
    await other.end();
    expect(await trimmed).toMatchObject({ code: 'FENCED', retryable: false });
    expect(await journal.read()).toEqual([entry(1), entry(2), entry(3)]);
    // The journal has noticed.
    await expect(journal.append(entry(4))).rejects.toMatchObject({ code: 'FENCED' });
  });

  test('DELETIONS-1: delays a takeover until it is complete', async () => {
    const schema = newSchema();
    const named = { schema, connection: { ...connection, application_name: schema } };
    const journal = await open({ ...named, leaseMs: 600_000 });
    const other = await open({ ...named, leaseMs: 600_000 });
    await journal.claim('scope');
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    await expireLeases(schema);
    // Another client locks a row that is to be deleted.
    const keeper = new Client(connection);
    await keeper.connect();
    await keeper.query(`begin; select 1 from ${schema}.entries where seq = 1 for update`);
    const trimmed = journal.trim(entry(3));
    await untilWaiting(schema, 1);
    let found: readonly JournalEntry[] | undefined;
    const takenOver = other.claim('scope').then(async () => {
      found = await other.read();
    });
    await untilWaiting(schema, 2);
    expect(found).toBeUndefined();
    await keeper.query('rollback');
    await keeper.end();
    await trimmed;
    await takenOver;
    expect(found).toEqual([entry(3)]);
  });
});

describe('wake times', () => {
  const timesOf = (count: number): WakeTime[] =>
    Array.from({ length: count }, (_, index) => ({
      scope: `ses_${index}`,
      at: 1_700_000_000_000 + ((index * 7919) % 1000),
    }));

  test('reach another process in order and page by page, even if there are ten thousand', async () => {
    const schema = newSchema();
    const [one, other] = await Promise.all([open({ schema }), open({ schema })]);
    const times = timesOf(10_000);
    await Promise.all(times.map(async ({ scope, at }) => one?.wakeTimes.set(scope, at)));
    await one?.close();
    const found: WakeTime[] = [];
    for (let more = true; more;) {
      const after = found.at(-1);
      const page = (await other?.wakeTimes.earliest({ ...(after && { after }), limit: 256 })) ?? [];
      found.push(...page);
      more = page.length === 256;
    }
    expect(found).toEqual(times.toSorted(inOrder));
  });

  test('POSTGRES-JOURNAL-WAKE-TIMES-2: share one statement per event loop turn', async () => {
    const schema = newSchema();
    const { wakeTimes } = await open({ schema });
    await Promise.all(timesOf(200).map(async ({ scope, at }) => wakeTimes.set(scope, at)));
    const written = await ask(`select distinct xmin::text from ${schema}.wake_times`);
    expect(written).toHaveLength(1);
  });

  test('POSTGRES-JOURNAL-WAKE-TIMES-1, POSTGRES-JOURNAL-WAKE-TIMES-2: store the last of several new times', async () => {
    const schema = newSchema();
    const { wakeTimes } = await open({
      schema,
      connection: { ...connection, application_name: schema },
    });
    await wakeTimes.set('scope', 1);
    const keeper = new Client(connection);
    await keeper.connect();
    await keeper.query(`begin; select 1 from ${schema}.wake_times for update`);
    const first = wakeTimes.set('scope', 2);
    await untilWaiting(schema, 1);
    const rest = [wakeTimes.set('scope', null), wakeTimes.set('scope', 3), wakeTimes.set('b', 4)];
    await keeper.query('rollback');
    await keeper.end();
    await Promise.all([first, ...rest]);
    expect(await wakeTimes.earliest({ limit: 9 })).toEqual([
      { scope: 'scope', at: 3 },
      { scope: 'b', at: 4 },
    ]);
  });

  test('POSTGRES-JOURNAL-WAKE-TIMES-3: never deadlock when processes set them in different orders', async () => {
    const schema = newSchema();
    const journals = await Promise.all([1, 2, 3].map(() => open({ schema })));
    const times = timesOf(300);
    for (let round = 0; round < 20; round += 1)
      await Promise.all(
        journals.flatMap(({ wakeTimes }, by) =>
          (by === 1 ? times.toReversed() : times).map(async ({ scope, at }, index) =>
            wakeTimes.set(scope, (index + by + round) % 3 === 0 ? null : at),
          ),
        ),
      );
    await Promise.all(times.map(async ({ scope, at }) => journals[0]?.wakeTimes.set(scope, at)));
    expect(await journals[1]?.wakeTimes.earliest({ limit: 301 })).toEqual(times.toSorted(inOrder));
  });

  test('reject when the connection is lost, but store the next time', async () => {
    const schema = newSchema();
    const { wakeTimes } = await open({
      schema,
      connection: { ...connection, application_name: schema },
    });
    await wakeTimes.set('scope', 1);
    const keeper = new Client(connection);
    await keeper.connect();
    await keeper.query(`begin; select 1 from ${schema}.wake_times for update`);
    const refusal = Promise.resolve(wakeTimes.set('scope', 2)).catch((error: unknown) => error);
    await untilWaiting(schema, 1);
    const next = wakeTimes.set('scope', 3);
    await cutOff(schema);
    await keeper.query('rollback');
    await keeper.end();
    expect(await refusal).toMatchObject({ code: 'JOURNAL_UNREACHABLE', retryable: true });
    await next;
    expect(await wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'scope', at: 3 }]);
  });

  test('reach the table before the journal closes', async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    const set = journal.wakeTimes.set('scope', 1);
    await journal.close();
    await set;
    expect(await (await open({ schema })).wakeTimes.earliest({ limit: 9 })).toEqual([
      { scope: 'scope', at: 1 },
    ]);
  });

  test('refuse values that cannot be stored, without affecting other wake times', async () => {
    const { wakeTimes } = await open({ schema: newSchema() });
    const other = wakeTimes.set('other', 1);
    for (const [scope, at] of [
      ['half \ud83d of a character', 1],
      ['the character \0', null],
      ['ses', Number.NaN],
    ] as const)
      await expect(wakeTimes.set(scope, at)).rejects.toMatchObject({ code: 'INVALID_ENTRY' });
    await other;
    expect(await wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'other', at: 1 }]);
  });

  test('remain set if a process that does not own the scope calls `forget`', async () => {
    const schema = newSchema();
    const [writer, other] = await Promise.all([open({ schema }), open({ schema })]);
    await writer?.claim('scope');
    await writer?.wakeTimes.set('scope', 1);
    await expect(other?.forget('scope')).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
    expect(await other?.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'scope', at: 1 }]);
  });
});

describe('opening', () => {
  test('POSTGRES-JOURNAL-DATABASE-2: creates the tables once when several processes start together', async () => {
    const schema = newSchema();
    const journals = await Promise.all(Array.from({ length: 5 }, () => open({ schema })));
    await journals[0]?.claim('scope');
    await journals[0]?.append(entry(1));
    expect(await journals[4]?.read()).toEqual([entry(1)]);
  });

  test('upgrades tables created before long events were packed, in only one of several processes', async () => {
    const schema = newSchema();
    const long = { ...entry(2), event: { type: 'said', long: 'x'.repeat(10_000) } as never };
    const first = await open({ schema });
    await first.claim('scope');
    await first.append(entry(1));
    await first.close();
    await downgrade(schema, 1);
    const journals = await Promise.all(Array.from({ length: 3 }, () => open({ schema })));
    const [journal] = journals;
    await journal?.claim('scope');
    await journal?.append(entry(1));
    await journal?.append(long);
    for (const one of journals) expect(await one.read()).toEqual([entry(1), long]);
    await journal?.wakeTimes.set('scope', 5);
    expect(await journals[2]?.wakeTimes.earliest({ limit: 9 })).toEqual([
      { scope: 'scope', at: 5 },
    ]);
    expect(await ask(`select version from ${schema}.layout`)).toEqual([{ version: 5 }]);
  });

  test('refuses a user who has no right to upgrade, and changes nothing', async () => {
    const schema = newSchema();
    await (await open({ schema })).close();
    await downgrade(schema, 1);
    await ask(`create role ${schema} login`);
    await ask(`grant usage on schema ${schema} to ${schema}`);
    await ask(
      `grant select, insert, update, delete on all tables in schema ${schema} to ${schema}`,
    );
    await expect(
      open({ schema, connection: { ...connection, user: schema } }),
    ).rejects.toMatchObject({ code: 'CANNOT_OPEN' });
    expect(await ask(`select version from ${schema}.layout`)).toEqual([{ version: 1 }]);
  });

  test('POSTGRES-JOURNAL-DATABASE-1: does not change tables of a newer version', async () => {
    const schema = newSchema();
    await (await open({ schema })).close();
    await ask(`update ${schema}.layout set version = 99`);
    await expect(open({ schema })).rejects.toMatchObject({
      name: 'ConfigurationError',
      code: 'JOURNAL_TOO_NEW',
      message: expect.stringContaining('layout 99'),
    });
  });

  test("POSTGRES-JOURNAL-DATABASE-1: keeps writing after another process's upgrade, but claims nothing new", async () => {
    const schema = newSchema();
    const journal = await open({ schema });
    await journal.claim('ours');
    await ask(`update ${schema}.layout set version = 99`);
    await expect(journal.claim('scope')).rejects.toMatchObject({
      code: 'JOURNAL_TOO_NEW',
      message: expect.stringContaining('layout 99'),
    });
    await journal.append(entry(1, 'unit', 'ours'));
    expect(await journal.read()).toEqual([entry(1, 'unit', 'ours')]);
  });

  test("POSTGRES-JOURNAL-DATABASE-1: does not change another program's tables", async () => {
    const schema = newSchema();
    await ask(`create schema ${schema}`);
    await ask(`create table ${schema}.entries (mine text)`);
    await expect(open({ schema })).rejects.toMatchObject({ code: 'NOT_A_JOURNAL' });
    const tables = await ask('select tablename from pg_tables where schemaname = $1', [schema]);
    expect(tables).toEqual([{ tablename: 'entries' }]);
  });

  test("POSTGRES-JOURNAL-DATABASE-1: refuses foreign tables that have the journal's names", async () => {
    const schema = newSchema();
    await ask(`create schema ${schema}`);
    await ask(`create table ${schema}.layout (color text)`);
    await expect(open({ schema })).rejects.toMatchObject({
      code: 'NOT_A_JOURNAL',
      message: expect.stringContaining('version'),
    });
  });

  test('does not require permission to create tables if they already exist', async () => {
    const schema = newSchema();
    await (await open({ schema })).close();
    await ask(`create role ${schema} login`);
    await ask(`grant usage on schema ${schema} to ${schema}`);
    await ask(
      `grant select, insert, update, delete on all tables in schema ${schema} to ${schema}`,
    );
    await ask(`grant usage on all sequences in schema ${schema} to ${schema}`);
    const journal = await open({ schema, connection: { ...connection, user: schema } });
    await journal.claim('scope');
    await journal.append(entry(1));
    expect(await journal.read()).toEqual([entry(1)]);
    await journal.wakeTimes.set('scope', 5);
    await journal.wakeTimes.set('scope', null);
  });

  test('throws an error for a missing database, user or server', async () => {
    const schema = newSchema();
    const no = { name: 'ConfigurationError', code: 'CANNOT_OPEN' };
    await expect(
      open({ schema, connection: { ...connection, database: 'no' } }),
    ).rejects.toMatchObject(no);
    await expect(open({ schema, connection: { ...connection, user: 'no' } })).rejects.toMatchObject(
      no,
    );
    await expect(
      open({ schema, connection: { ...connection, host: '/nowhere' } }),
    ).rejects.toMatchObject({ code: 'JOURNAL_UNREACHABLE', retryable: true });
  });

  test('accepts a database URL as its connection', async () => {
    const { host, user, database } = connection;
    const address = `postgres://${user}@${encodeURIComponent(host)}/${database}`;
    const journal = await open({ schema: newSchema(), connection: address });
    expect(await journal.scopes()).toEqual([]);
  });

  test.each([
    [{ schema: 'Quoted"; drop' }, 'schema'],
    [{ leaseMs: 1 }, 'leaseMs'],
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ connection: 5 }, 'connection'],
    [{ connection: undefined }, 'got undefined'],
    [{ connection: 'localhost/chats' }, 'expected postgres://'],
    [{ connection: 'host=localhost dbname=chats' }, 'expected postgres://'],
    [{ environment: undefined }, 'environment'],
  ])('refuses %j, and names the invalid option', async (wrong, name) => {
    const options = { connection, environment: nodeEnvironment(), ...wrong };
    await expect(postgresJournal(options as never)).rejects.toThrow(name);
  });

  test('names the install command if the package `pg` is missing', () => {
    const missing = (): never => {
      throw new Error('not found');
    };
    expect(() => openPool({}, missing)).toThrow(
      expect.objectContaining({
        code: 'MISSING_DEPENDENCY',
        message: expect.stringContaining('npm install pg'),
      }),
    );
  });
});

test('refuses every call once it has been closed', async () => {
  const journal = await open({ schema: newSchema() });
  await Promise.all([journal.close(), journal.close()]);
  const closed = { code: 'JOURNAL_CLOSED', retryable: false };
  await expect(journal.append(entry(1))).rejects.toMatchObject(closed);
  await expect(journal.read()).rejects.toMatchObject(closed);
  await expect(journal.claim('scope')).rejects.toMatchObject(closed);
  await expect(journal.wakeTimes.set('scope', 1)).rejects.toMatchObject(closed);
  await expect(journal.wakeTimes.earliest({ limit: 1 })).rejects.toMatchObject(closed);
});

test('leaves no user text in any table after a scope is deleted', async () => {
  const schema = newSchema();
  const journal = await open({ schema });
  const word = 'Xylophonmusik';
  const said = { ...entry(1), event: { type: 'user.said', text: word } as { type: string } };
  await journal.claim('scope');
  await journal.append(said);
  await journal.wakeTimes.set('scope', 1);
  const tablesWith = async (text: string): Promise<string[]> => {
    const tables = await ask<{ tablename: string }>(
      'select tablename from pg_tables where schemaname = $1',
      [schema],
    );
    const found: string[] = [];
    for (const { tablename } of tables) {
      const query = `select 1 from ${schema}.${tablename} t where t::text like $1`;
      if ((await ask(query, [`%${text}%`])).length > 0) found.push(tablename);
    }
    return found;
  };
  expect(await tablesWith(word)).toEqual(['entries']);
  await forgetSession('scope', { journal });
  expect(await tablesWith(word)).toEqual([]);
  expect(await tablesWith('scope')).toEqual([]);
});
