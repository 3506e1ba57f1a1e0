// The journal reads rows exactly as earlier versions wrote them into a database.

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { frozenScope, ofStory, type FrozenStory } from '../../support/frozen-stories.ts';
import { ask, open } from './support.ts';

const folder = new URL('../../corpus/', import.meta.url);
const frozen = readdirSync(folder).filter((name) => /^stories-\d+\.sql$/.test(name));

test.each(frozen)('reads the frozen corpus of %s', async (name) => {
  await ask(readFileSync(new URL(name, folder), 'utf8'));
  const json = readFileSync(new URL(name.replace('.sql', '.json'), folder), 'utf8');
  const journal = await open({ schema: name.replace('.sql', '').replace('-', '_') });
  for (const story of JSON.parse(json) as FrozenStory[])
    expect(ofStory([...(await journal.read({ scope: frozenScope(story) }))])).toEqual(
      story.entries,
    );
});
