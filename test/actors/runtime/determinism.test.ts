// Two runs of a scenario with the same seed write the same journal, byte for byte.

import { APICallError } from 'ai';
import { describe, expect, test } from 'vitest';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { memoryJournal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { voiceTalk } from '../../support/voice-talk.ts';

const overloaded = new APICallError({
  message: 'overloaded',
  url: 'http://127.0.0.1',
  requestBodyValues: {},
  statusCode: 503,
  isRetryable: true,
});

/** A subagent that fails once (a random delay precedes the retry), looks up data, asks a question, and answers. */
const busy = () => ({
  script: steps(
    { error: overloaded },
    calls(['look', { at: 'this' }], ['look', { at: 'that' }]),
    calls(['ask_user', { question: 'Red or blue?' }], ['pay', { sum: 7 }]),
    ({ results }) => say(`Done: ${JSON.stringify(results)}`),
  ),
  config: {
    interactive: true,
    tools: {
      look: simpleTool(() => ({ seen: true })),
      pay: simpleTool(() => 'paid', { needsApproval: true }),
    },
  },
});

async function textStory(seed: number): Promise<readonly JournalEntry[]> {
  const journal = memoryJournal({ keep: Infinity });
  const { start, type, environment, close, session } = textTalk({
    environment: simulatedEnvironment({ seed }),
    journal,
    greeting: 'Say hello.',
    subagents: {
      busy: busy(),
      hang: {
        script: () => calls(['hang']),
        config: { timeout: 30_000, tools: { hang: simpleTool(never) } },
      },
    },
  });
  await start();
  await type('use busy and hang and busy');
  await environment.advance(5000);
  await type('blue');
  await type('yes');
  session.notifyBackground('A notice', { ttlMs: 60_000 });
  await environment.advance(60_000);
  await type('red');
  await type('no');
  await environment.advance(1000);
  await close();
  return journal.read();
}

async function voiceStory(seed: number): Promise<readonly JournalEntry[]> {
  const journal = memoryJournal({ keep: Infinity });
  const talk = voiceTalk({
    environment: simulatedEnvironment({ seed }),
    journal,
    subagents: { busy: busy() },
  });
  const {
    start,
    use,
    pause,
    environment,
    model,
    play,
    speak,
    say: utter,
    session,
    close,
    asked,
  } = talk;
  await start();
  await use('busy');
  await environment.advance(5000);
  expect(asked()).toContain('Red or blue?');
  const putting = model().begin('Red or', 1000);
  await play(putting.itemId, 300);
  model().drop();
  await environment.advance(3000);
  await play(putting.itemId, 1000);
  await pause();
  await speak('Red or blue?');
  talk.leave();
  await environment.advance(1000);
  session.attach();
  await pause();
  await speak('Red or blue?');
  await utter('blue');
  await pause();
  await speak('May I pay 7?');
  await utter('yes');
  await pause();
  await speak('It is done.');
  await close();
  return journal.read();
}

/** Removes the times and waits, which depend on randomness. */
const withoutTimes = (entries: readonly JournalEntry[]): string =>
  JSON.stringify(entries, (key, value: unknown) =>
    [
      'answeredAt',
      'at',
      'calledAt',
      'dueAt',
      'retryAt',
      'retryInMs',
      'saidAt',
      'settledAt',
      'startedAt',
      'utteranceStartedAt',
    ].includes(key)
      ? 0
      : value,
  );

describe.each([
  ['text', textStory],
  ['voice', voiceStory],
])('a conversation by %s', (_, story) => {
  test('writes the same journal in two runs with the same seed', async () => {
    const first = await story(7);
    const second = await story(7);
    expect(first.length).toBeGreaterThan(60);
    expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  });

  test('differs only in its times when the seed is different', async () => {
    const first = await story(7);
    const second = await story(8);
    expect(JSON.stringify(second)).not.toBe(JSON.stringify(first));
    expect(withoutTimes(second)).toBe(withoutTimes(first));
  });

  test('writes plain JSON entries in chronological order, numbered without gaps in each unit', async () => {
    const entries = await story(7);
    expect(JSON.parse(JSON.stringify(entries))).toEqual(entries);
    const seqs = new Map<string, number>();
    let latest = 0;
    for (const { unit, seq, at } of entries) {
      expect(seq).toBe((seqs.get(unit) ?? 0) + 1);
      seqs.set(unit, seq);
      expect(at).toBeGreaterThanOrEqual(latest);
      latest = at;
    }
    expect(seqs.size).toBeGreaterThan(1);
  });
});
