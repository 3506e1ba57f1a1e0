// The suite for journals, inside a Durable Object.

import { DurableObject } from 'cloudflare:workers';
import { durableObjectJournal, workersEnvironment } from 'offstage/cloudflare';
import { journalConformance } from 'journal-conformance';

const TABLES = ['entries', 'pieces', 'wake_times'];

export class Chat extends DurableObject {
  async fetch() {
    const { storage } = this.ctx;
    const open = () => durableObjectJournal({ storage, environment: workersEnvironment() });
    const results = [];
    const cases = journalConformance({
      name: 'durableObjectJournal',
      offers: ['scopes', 'readAfter', 'trim', 'forget', 'reopen', 'wakeTimes'],
      open() {
        for (const table of TABLES) storage.sql.exec(`drop table if exists ${table}`);
        return { journal: open(), reopen: open };
      },
    });
    for (const { name, skipped, run } of cases)
      results.push({
        name,
        result:
          skipped ??
          (await run().then(
            () => 'ok',
            (error) => `failed: ${String(error)}`,
          )),
      });
    // Nothing that takes less room when it is packed.
    const large = Array.from({ length: 60 }, () =>
      btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(60_000)))),
    ).join('');
    const entry = { scope: 's', unit: 'u', seq: 1, at: 1, actor: 'a', definitionVersion: 1 };
    open().append({ ...entry, event: { type: 'large', large } });
    const pieces = storage.sql
      .exec('select max(length(bytes)) as n, count(*) as c from pieces')
      .one();
    const isSame = open().read({ scope: 's' })[0]?.event.large === large;
    open().trim({ scope: 's', unit: 'u', seq: 1 });
    await open().forget('s');
    const left = storage.sql.exec('select count(*) as n from pieces').one().n;
    return Response.json({ results, large: { isSame, pieces: pieces.c, longest: pieces.n, left } });
  }

  alarm() {}
}

export default { fetch: (request, env) => env.CHAT.getByName('x').fetch(request) };
