// STORE-1 on PostgreSQL: what no database keeps as it is comes to the same there as in memory.

import { expect, test } from 'vitest';
import { memoryJournal } from '../../../src/index.ts';
import { hostileStory } from '../../support/hostile-story.ts';
import { newSchema, open } from './support.ts';

test('models, tools and users may say what they like', async () => {
  const journal = await open({ schema: newSchema() });
  await journal.claim('hostile');
  const inMemory = memoryJournal({ keep: Infinity });
  await hostileStory(inMemory, 3);
  for (const entry of inMemory.read()) await journal.append(entry);
  const read = await journal.read({ scope: 'hostile' });
  expect(read).toEqual(JSON.parse(JSON.stringify(inMemory.read())));
});
