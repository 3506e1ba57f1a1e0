// STORE-1 on PostgreSQL: values that no database stores unchanged become the same values there as in memory.

import { expect, test } from 'vitest';
import { memoryJournal } from '../../../src/index.ts';
import { hostileStory } from '../../support/hostile-story.ts';
import { ask, entry, newSchema, open } from './support.ts';

test('stores any text from models, tools and users unchanged', async () => {
  const journal = await open({ schema: newSchema() });
  await journal.claim('hostile');
  const inMemory = memoryJournal({ keep: Infinity });
  await hostileStory(inMemory, 3);
  for (const entry of inMemory.read()) await journal.append(entry);
  const read = await journal.read({ scope: 'hostile' });
  expect(read).toEqual(JSON.parse(JSON.stringify(inMemory.read())));
});

test('APPEND-QUEUE-5: writes the other entries of a statement when one is refused', async () => {
  const schema = newSchema();
  const journal = await open({ schema });
  await journal.claim('scope');
  await ask(`alter table ${schema}.entries add constraint picky check (actor <> 'bad')`);
  const entries = Array.from({ length: 9 }, (_, index) => entry(index + 1, `unit ${index}`)).map(
    (one, index) => ({ ...one, seq: 1, actor: index % 4 === 2 ? 'bad' : 'good' }),
  );
  const appended = await Promise.allSettled(entries.map((one) => journal.append(one)));
  expect(appended.map(({ status }) => status)).toEqual(
    entries.map(({ actor }) => (actor === 'bad' ? 'rejected' : 'fulfilled')),
  );
  expect(appended[2]).toMatchObject({
    reason: { code: 'INVALID_ENTRY', retryable: false },
  });
  expect(await journal.read({ scope: 'scope' })).toEqual(
    entries.filter(({ actor }) => actor === 'good'),
  );
});
