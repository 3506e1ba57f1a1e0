// P9: this version continues sessions of earlier versions from any state.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import {
  continueStory,
  frozenScope,
  ofStory,
  storyOf,
  type FrozenStory,
} from '../../support/frozen-stories.ts';

const folder = new URL('../../corpus/', import.meta.url);
const frozen = readdirSync(folder).filter((name) => /^stories-\d+\.json$/.test(name));

describe.each(frozen)('%s', (name) => {
  const stories = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as FrozenStory[];

  test.each(stories.map((story) => ({ scope: frozenScope(story), story })))(
    '$scope: continues',
    async ({ story }) => {
      const { state, end, errors } = await continueStory(storyOf(story), story);
      const transcript = story.state.transcript.filter(({ text }) => !text.startsWith('Told: '));
      expect(state).toEqual({ ...story.state, transcript });
      expect(end).toMatch(storyOf(story).end);
      expect(errors).toEqual([]);
    },
  );

  test('reads the same entries from the SQLite file', () => {
    const path = new URL(name.replace('.json', '.journal'), folder).pathname;
    const journal = sqliteJournal({ path, environment: nodeEnvironment(), readOnly: true });
    for (const story of stories)
      expect(ofStory([...journal.read({ scope: frozenScope(story) })])).toEqual(story.entries);
    journal.close();
  });
});
