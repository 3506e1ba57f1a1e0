// COMMIT-UNIT-10 on the frozen stories in test/corpus: the test randomly changes one entry of each story to a form that
// no version wrote. The session opens, reports the quarantined entry, continues and closes. Its id can then start a new
// session.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { replaySession } from '../../../src/entries/replay.ts';
import { OffstageError } from '../../../src/values/errors.ts';
import { type SessionEvent } from '../../../src/index.ts';
import { textLife, voiceLife, world, type World } from '../../support/crashes.ts';
import { frozenScope, storyOf, type FrozenStory } from '../../support/frozen-stories.ts';
import { mutated } from '../../support/mutated-entries.ts';

const corpus = new URL('../../corpus/stories-1.json', import.meta.url);
const stories = JSON.parse(readFileSync(corpus, 'utf8')) as readonly FrozenStory[];
const MUTATIONS = 6;

const lifeOf = (of: World, frozen: FrozenStory) => {
  const story = storyOf(frozen);
  return story.by === 'text'
    ? textLife(of, story.options('later'))
    : voiceLife(of, story.options('later'));
};

/** The only entry is a snapshot that cannot be read. */
const NOTHING_LEFT = new Set(['JOURNAL_CUT', 'JOURNAL_VERSION']);

const ends = (events: readonly SessionEvent[]) =>
  events.filter(({ type }) => type === 'session.ended' || type === 'session.suspended');

async function recovered(
  frozen: FrozenStory,
  seed: number,
): Promise<'quarantined' | 'folded' | 'refused'> {
  const { entries, told } = mutated(frozen.entries, seed);
  const must = (isSo: boolean, what: string): void => {
    if (!isSo) throw new Error(`${told}: expected ${what}`);
  };
  const of = world({ inheritance: { entries, at: frozen.at } });
  const life = lifeOf(of, frozen);
  try {
    await life.start();
  } catch (error) {
    const code = error instanceof OffstageError ? error.code : String(error);
    must(frozen.isTrimmed && NOTHING_LEFT.has(code), `a start, got ${code}`);
    return 'refused';
  }
  await of.environment.advance(30_000);
  must(ends(life.events).length === 0, 'the session to go on');
  for (const { error } of life.errors)
    must(error instanceof OffstageError, `typed errors, got ${String(error)}`);
  const outcomes = new Map<string, Set<string>>();
  for (const event of life.events) {
    if (event.type !== 'subagent.changed' || !event.subagent.outcome) continue;
    const { id, outcome } = event.subagent;
    outcomes.set(id, (outcomes.get(id) ?? new Set()).add(outcome.status));
  }
  must(
    [...outcomes.values()].every(({ size }) => size === 1),
    'one ending of each subagent (P1)',
  );
  const open = life.state().questions.filter(({ state }) => state === 'open');
  must(open.length <= 1, 'one owner of what the user says (P2)');
  const isReported = life.events.some(
    (event) => event.type === 'error.reported' && event.code === 'UNFOLDABLE_ENTRY',
  );
  // A quarantined entry of a subagent that has ended is not recorded, because no process resumes that subagent.
  const isWritten = of.entries.some(({ event }) => event.type === 'entry.set_aside');
  must(!isWritten || isReported, 'what is quarantined to be reported');
  await life.close();
  must(ends(life.events).length === 1, 'one end');
  let last = '';
  for (const { view } of replaySession(of.entries)) last = view.connection;
  must(last === 'closed', `a replay to its end, got ${last}`);
  const next = lifeOf(of, frozen);
  await next.start();
  must(next.state().subagents.length === 0, 'the next session with its id to be new');
  await next.close();
  return isReported ? 'quarantined' : 'folded';
}

describe.each(stories.map((story, index) => ({ scope: frozenScope(story), story, index })))(
  '$scope',
  ({ story, index }) => {
    test('recovers if any one of its entries is corrupted', async () => {
      const results: string[] = [];
      for (let number = 0; number < MUTATIONS; number += 1)
        results.push(await recovered(story, number * 1000 + index));
      expect(results).toHaveLength(MUTATIONS);
    });
  },
);
