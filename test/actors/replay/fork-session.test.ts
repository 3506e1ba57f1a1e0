// A forked session starts like another session and continues differently under its own id.

import { describe, expect, test } from 'vitest';
import { exportRecording, forkSession } from '../../../src/entries/replay.ts';
import { memoryJournal, type Journal } from '../../../src/index.ts';
import { textLife, world } from '../../support/crashes.ts';
import { textTalk } from '../../support/text-talk.ts';
import { inMidQuestion, replayed, rideStory, wholeRide } from './support.ts';

type Talk = ReturnType<typeof textLife>;

const outcomeOf = (talk: Talk): string | undefined =>
  talk.state().subagents.find(({ name }) => name === 'ride')?.outcome?.text;

async function answer(talk: Talk, text: string): Promise<void> {
  const question = talk.state().questions.find(({ state }) => state === 'open');
  await talk.session.answer(question?.requestId ?? '', { text });
  await talk.environment.settle();
  await talk.environment.advance(5000);
}

describe('a fork', () => {
  test('continues from an open question without affecting its source', async () => {
    const { of, talk } = await inMidQuestion();
    const { journal } = of.begin().runtime;
    await forkSession(journal, { from: 'ses', after: of.entries.length, to: 'other' });
    await answer(talk, 'comfort');
    const other = textLife(of, { ...rideStory(), sessionId: 'other' });
    await other.start();
    await of.environment.settle();
    await of.environment.advance(1000);
    await answer(other, 'business');
    expect(outcomeOf(talk)).toContain('comfort');
    expect(outcomeOf(other)).toContain('business');
    expect(other.state().subagents.map(({ id }) => id)).toEqual(['sub_1', 'sub_2']);
    expect(other.errors).toEqual([]);
    // FORK-SESSION-1
    const both = (scope: string) => of.entries.filter((entry) => entry.scope === scope);
    expect(JSON.stringify(both('ses'))).not.toContain('business');
    expect(JSON.stringify(both('other'))).not.toContain('comfort');
    expect(replayed(both('other')).view.agent).toBe('lead');
  });

  test('reopens a question of a finished session when it starts from an earlier entry', async () => {
    const { of, talk, after } = await wholeRide();
    await talk.close();
    await forkSession(of.begin().runtime.journal, { from: 'ses', after, to: 'other' });
    const other = textLife(of, { ...rideStory(), sessionId: 'other' });
    await other.start();
    await of.environment.settle();
    await of.environment.advance(1000);
    await answer(other, 'economy');
    expect(outcomeOf(other)).toContain('economy');
  });

  test('has the same state after any entry as a session that crashed at that entry', async () => {
    const { of, talk } = await wholeRide();
    await talk.close();
    const { journal } = of.begin().runtime;
    const { length } = of.entries;
    for (let after = 1; after <= length; after += 1) {
      await forkSession(journal, { from: 'ses', after, to: `fork_${after}` });
      const fork = of.entries.filter(({ scope }) => scope === `fork_${after}`);
      expect(fork).toHaveLength(after);
      expect(replayed(fork).view).toEqual(replayed(of.entries.slice(0, after)).view);
    }
  });

  test('accepts another journal as its target', async () => {
    const { of, after } = await wholeRide();
    const into = memoryJournal({ keep: Infinity });
    await forkSession(of.begin().runtime.journal, { from: 'ses', after, to: 'ses', into });
    expect(into.read({ scope: 'ses' })).toEqual(of.entries.slice(0, after));
  });

  test('renames the session and its services, but not its subagents', async () => {
    const journal = memoryJournal();
    const entry = {
      scope: 'a',
      seq: 1,
      at: 0,
      actor: 'x',
      definitionVersion: 1,
      event: { type: 'e' },
    };
    for (const unit of ['a', 'sub_a', 'a/service:mail']) journal.append({ ...entry, unit });
    await forkSession(journal, { from: 'a', after: 3, to: 'b' });
    expect(journal.read({ scope: 'b' }).map(({ unit }) => unit)).toEqual([
      'b',
      'sub_a',
      'b/service:mail',
    ]);
  });

  test('claims its id while it is being written', async () => {
    const { of } = await inMidQuestion();
    const told: string[] = [];
    const source = of.begin().runtime.journal;
    const into: Journal = {
      ...memoryJournal({ keep: Infinity }),
      claim: (scope) => void told.push(`claim ${scope}`),
      release: (scope) => void told.push(`release ${scope}`),
    };
    await forkSession(source, { from: 'ses', after: 2, to: 'other', into });
    expect(told).toEqual(['claim other', 'release other']);
  });
});

describe('an invalid call', () => {
  test.each([
    [{ from: 'nobody', after: 1, to: 'other' }, 'The journal has no session "nobody"'],
    [{ from: 'ses', after: 0, to: 'other' }, 'Expected `after` to be a whole number from 1 to'],
    [{ from: 'ses', after: 1.5, to: 'other' }, 'got 1.5'],
    [{ from: 'ses', after: 9999, to: 'other' }, 'got 9999'],
    [{ from: 'ses', after: 1, to: 'ses' }, 'Expected an id that is not in the journal, got "ses"'],
  ])('%j', async (options, message) => {
    const { of } = await inMidQuestion();
    const { journal } = of.begin().runtime;
    const { length } = of.entries;
    await expect(forkSession(journal, options)).rejects.toThrow(message);
    expect(of.entries).toHaveLength(length);
  });
});

test('rejects an unknown session', async () => {
  await expect(exportRecording(memoryJournal(), 'nobody')).rejects.toThrow('no session "nobody"');
  await expect(exportRecording(world().begin().runtime.journal, 'x')).rejects.toMatchObject({
    code: 'UNKNOWN_SESSION',
  });
});

// `textLife` uses `textTalk`, whose id must reach the session.
test('uses the given session id', () => {
  expect(textTalk({ sessionId: 'mine' }).session.id).toBe('mine');
});
