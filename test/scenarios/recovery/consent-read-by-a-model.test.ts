// A model interprets the user's words over an approval, in processes that are killed after each entry (P3, P9, P10).

import { describe, expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/actors/ports/journal.ts';
import { textLife, world, type World } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { wordsModel } from '../../support/words-model.ts';

const READING_MS = 700;

type Ended = {
  readonly type: 'reading.ended';
  readonly reading: { readonly to: string; readonly answer?: { readonly approved?: boolean } };
};

const readingsIn = (entries: readonly JournalEntry[]): readonly string[] =>
  entries.flatMap(({ event }) => {
    if (event.type !== 'reading.ended') return [];
    const { reading } = event as unknown as Ended;
    return [reading.answer?.approved === true ? 'consent' : reading.to];
  });

/** Plays until the user has an answer. The user says yes to each question. */
async function played(snapshots: boolean, kill?: (of: World) => void) {
  const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
  kill?.(of);
  const { environment } = of;
  const { model, asked } = wordsModel(() => 'yes', { delayMs: () => READING_MS, environment });
  let sent = 0;
  let typed = 0;
  const routed: string[] = [];
  for (let lives = 1; ; lives += 1) {
    const life = textLife(of, {
      subagents: {
        mail: {
          script: ({ step }) =>
            step === 1 ? calls(['send_mail', { to: 'Anna' }]) : say('It is over.'),
          config: {
            tools: { send_mail: simpleTool(() => (sent += 1), { needsApproval: true }) },
          },
        },
      },
      agent: { language: 'pt' },
      consentModel: model,
    });
    life.session.parts.subscribe(() => {});
    void life.start().catch(() => {});
    await environment.settle();
    for (let round = 0; round < 12 && life.isAlive(); round += 1) {
      const { transcript, questions, subagents } = life.state();
      if (!transcript.some(({ role }) => role === 'user') && subagents.length === 0)
        void life.session.sendText('use mail').catch(() => {});
      else if (questions.some(({ state }) => state === 'open')) {
        typed += 1;
        void life.session.sendText('sim').catch(() => {});
      }
      await environment.settle();
      await environment.advance(2000);
    }
    for (const event of life.events)
      if (event.type === 'utterance.routed') routed.push(event.utteranceId);
    if (!life.isAlive()) continue;
    const open = life.state().questions.filter(({ state }) => state !== 'answered').length;
    const { entries, written } = of;
    await life.close();
    const said = entries.filter(({ event }) => event.type === 'user.said').length;
    return {
      sent,
      open,
      lives,
      written,
      typed,
      said,
      routed,
      asked: asked.length,
      readings: readingsIn(entries),
      begins: entries.findIndex(({ event }) => event.type === 'question.asked'),
    };
  }
}

describe.each([false, true])('a yes that a model interprets (snapshots: %s)', async (snapshots) => {
  const { written, begins, ...whole } = await played(snapshots);

  test('runs the action once if no process is killed', () => {
    expect(whole).toMatchObject({ sent: 1, open: 0, typed: 2, asked: 2 });
    expect(whole.readings).toEqual(['readBack', 'consent']);
  });

  const kills = Array.from({ length: written - begins }, (_, index) => begins + index + 1);
  test.each(kills)(
    'runs the action at most once, after two interpretations, if killed after entry %i',
    async (entry) => {
      const after = await played(snapshots, (of) => of.killAt(entry, 'after'));
      expect(after.lives).toBe(2);
      expect([after.open, after.sent <= 1]).toEqual([0, true]);
      // The only approval follows a yes that was read back.
      expect(after.readings.filter((reading) => reading === 'consent').length).toBeLessThan(2);
      if (after.sent > 0) expect(after.readings.slice(-2)).toEqual(['readBack', 'consent']);
      // Each utterance in the journal has one place and is interpreted at most once.
      expect(new Set(after.routed).size).toBe(after.routed.length);
      expect(after.asked).toBeLessThanOrEqual(after.said - 1);
    },
  );
});
