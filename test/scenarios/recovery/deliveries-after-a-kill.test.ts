// A session's deliveries after its process was killed (P4, P9).

import { describe, expect, test } from 'vitest';
import { leadTools } from '../../../src/entries/subagents.ts';
import type { JournalEntry } from '../../../src/actors/ports/journal.ts';
import { createParentSubagentToolset } from '../../../src/index.ts';
import type { Script, ScriptedStep } from '../../../src/testing/index.ts';
import { textLife, voiceLife, world, type World } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { instructionsOf, leadScript, type TalkOptions } from '../../support/text-talk.ts';

const RESULT = 'the parcel is in Lyon';
const WORK_MS = 20_000;

describe('a pending delivery', () => {
  test('P9: keeps count of its attempts after a kill', async () => {
    const of = world();
    const before = textLife(of);
    await before.session.start();
    before.session.notifyBackground('The order was sent');
    await of.environment.settle();
    const { deliveries } = before.state();
    expect(deliveries).toMatchObject([{ state: 'pending', card: true, attempts: 1 }]);
    before.kill();

    const after = textLife(of);
    await after.session.start();
    expect(after.state().deliveries).toEqual(deliveries);
    await after.close();
  });
});

const BEGINS = {
  'a background call': { begin: 'use parcel', ends: say(RESULT) },
  'a spawned subagent': {
    begin: `use spawn_subagent ${JSON.stringify({ task: 'parcel', contextMode: 'fresh' })}`,
    ends: calls(['complete_task', { result: RESULT }]),
  },
} as const;

type Kind = keyof typeof BEGINS;

const isReply = ({ event }: JournalEntry): boolean =>
  event.type === 'assistant.said' &&
  'repliesTo' in event &&
  event.repliesTo !== null &&
  JSON.stringify(event).includes(RESULT);

/**
 * Whether the process that wrote these entries last had spoken the result but not yet recorded the delivery.
 */
function isUnsureIn(entries: readonly JournalEntry[]): boolean {
  const ends = entries.findLastIndex(({ event }) => event.type === 'session.recovered');
  const before = entries.slice(0, Math.max(0, ends));
  const isTold = ({ event }: JournalEntry): boolean =>
    event.type === 'result.told' ||
    event.type === 'delivery.dismissed' ||
    (event.type === 'subagent.ended' && 'known' in event);
  return before.some(isReply) && !before.some(isTold);
}

/** How often the lead agent fails to report what it has read, and when sessions write snapshots. */
interface Way {
  readonly kind: Kind;
  /** Whether the lead agent waits for the result or looks it up while its delivery is pending. */
  readonly reads: 'awaits' | 'looks up';
  readonly fails: number;
  readonly snapshots: boolean;
}

const WAYS: readonly Way[] = (Object.keys(BEGINS) as Kind[]).flatMap((kind) =>
  (['awaits', 'looks up'] as const).flatMap((reads) =>
    [0, 1, 2].flatMap((fails) =>
      [false, true].map((snapshots) => ({ kind, reads, fails, snapshots })),
    ),
  ),
);
const LOOK = 'how is it?';

/** Plays the conversation until a process survives to the end. */
async function played({ kind, reads, fails, snapshots }: Way, kill?: (of: World) => void) {
  const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: false } } : {});
  kill?.(of);
  const { begin, ends } = BEGINS[kind];
  let failed = 0;
  let asked = 0;
  const script: Script = () =>
    new Promise<ScriptedStep>((resolve) =>
      of.environment.scheduler.schedule(() => resolve(ends), WORK_MS),
    );
  const options: TalkOptions = {
    subagents: { parcel: { script, pending: 'On it.' } },
    tools: leadTools(
      createParentSubagentToolset({ agent: { instructions: instructionsOf('parcel') } }),
    ),
    lead: (prompt) => {
      asked += 1;
      const last = prompt.prompt.at(-1);
      const hasRead = last?.role === 'tool' && JSON.stringify(last).includes(RESULT);
      // The model takes time, and the result arrives while it is thinking.
      if (prompt.user === LOOK && last?.role !== 'tool')
        return new Promise<ScriptedStep>((resolve) =>
          of.environment.scheduler.schedule(
            () => resolve(calls(['check_subagent', { subagentId: 'sub_1' }])),
            WORK_MS + 1000,
          ),
        );
      // A failed model call is retried once.
      if (!hasRead || failed >= 2 * fails) return leadScript(prompt);
      failed += 1;
      return say('');
    },
  };
  const waits = `use await_subagent ${JSON.stringify({ subagentId: 'sub_1' })}`;
  const wanted = [begin, reads === 'awaits' ? waits : LOOK];
  for (let lives = 1; ; lives += 1) {
    const life = textLife(of, options);
    asked = 0;
    // A subscriber that hears each delivery that is pushed.
    const stop = life.session.parts.subscribe(() => {});
    void life.start().catch(() => {});
    await of.environment.settle();
    for (let round = 0; round < 40 && life.isAlive(); round += 1) {
      const typed = life.state().transcript.filter(({ role }) => role === 'user').length;
      const next = wanted[typed];
      if (next !== undefined && (typed === 0 || life.state().subagents.length > 0))
        void life.session.sendText(next).catch(() => {});
      await of.environment.settle();
      await of.environment.advance(2000);
    }
    stop.unsubscribe();
    if (!life.isAlive()) continue;
    const { deliveries } = life.state();
    const { written, entries } = of;
    await life.close();
    const replies = entries.filter(isReply);
    return {
      replies: replies.length,
      isUnsure: isUnsureIn(entries),
      heard: entries.filter(({ event }) => event.type === 'delivery.heard').length,
      pending: deliveries.filter(({ state }) => state === 'pending').length,
      lives,
      written,
      /** The number of entries before the user asked for the result. */
      awaits: entries.findLastIndex(({ event }) => event.type === 'user.said'),
      asked,
    };
  }
}

describe.each(WAYS)(
  '$kind whose result the lead agent $reads and fails to deliver $fails times (snapshots: $snapshots)',
  async (way) => {
    const { written, awaits, ...seen } = await played(way);
    test('reaches the user if no process dies', () =>
      expect(seen).toMatchObject(
        way.fails === 0
          ? { replies: 1, heard: 0, pending: 0 }
          : { replies: 0, heard: 1, pending: 0 },
      ));

    test('remains delivered in a process that continues after the last entry', async () => {
      const after = await played(way, (of) => of.killAt(written, 'after'));
      expect(after).toMatchObject({ lives: 2, asked: 0 });
    });

    const kills = Array.from({ length: written - awaits }, (_, index) => awaits + index + 1);
    test.each(kills)('P4: reaches the user once after a kill at entry %i', async (entry) => {
      const seen = await played(way, (of) => of.killAt(entry, 'after'));
      expect({ ...seen, sum: seen.replies + seen.heard + seen.pending }).toMatchObject({
        // It is unknown whether the user has read the last message of the killed process.
        sum: seen.isUnsure ? 2 : 1,
      });
    });
  },
);

/** Plays a call in which the lead agent waits for a result and the user interrupts the reply that reports it. */
async function spokenOver(kill?: (of: World) => void) {
  const of = world();
  kill?.(of);
  const script: Script = () =>
    new Promise<ScriptedStep>((resolve) =>
      of.environment.scheduler.schedule(() => resolve(say(RESULT)), WORK_MS),
    );
  const options = {
    subagents: { parcel: { script, pending: 'On it.' } },
    tools: leadTools(createParentSubagentToolset({})),
  };
  const has = (words: string): boolean => JSON.stringify(of.entries).includes(words);
  let replies = 0;
  let isCut = false;
  const wanted = [
    { words: 'get parcel', call: { callId: 'c1', name: 'parcel', arguments: '{}' } },
    {
      words: 'wait for it',
      call: { callId: 'c2', name: 'await_subagent', arguments: '{"subagentId":"sub_1"}' },
    },
  ];
  for (let items = 100; ; items += 100) {
    const life = voiceLife(of, options);
    const use = async ({ words, call }: (typeof wanted)[number]): Promise<void> => {
      await life.say(words);
      if (life.isAlive()) life.model().call(call);
    };
    const reply = async (): Promise<void> => {
      if (!has(RESULT)) return life.speak('I am on it.');
      if (has('one moment') && !has('Fine.') && life.asked() === 'reply')
        return life.speak('Fine.');
      if (isCut) {
        const isReplying = life.asked() === 'reply';
        await life.speak(RESULT);
        if (isReplying && life.isAlive()) replies += 1;
        return;
      }
      isCut = true;
      await life.play(life.model().speak(RESULT), 50);
      if (life.isAlive()) await life.say('one moment');
    };
    void life.start().catch(() => {});
    await of.environment.settle();
    // No real wire gives items on two connections the same names.
    if (life.isAlive()) life.model().items = items;
    for (let round = 0; round < 60 && life.isAlive(); round += 1) {
      if (life.asked() !== null) await reply();
      else if (wanted[0] && (wanted.length > 1 || life.state().subagents.length > 0)) {
        const [next] = wanted.splice(0, 1);
        if (next) await use(next);
      }
      await of.environment.advance(1000);
    }
    if (!life.isAlive()) continue;
    const pending = life.state().deliveries.filter(({ state }) => state === 'pending').length;
    const { written, entries } = of;
    await life.close();
    const heard = entries.filter(({ event }) => event.type === 'delivery.heard').length;
    /** The number of entries before the output of the tool that returned the result. */
    const returned = entries.findIndex(({ event }) => 'returned' in event);
    return { replies, heard, pending, written, returned };
  }
}

describe('a result whose reply the user interrupts', async () => {
  const { written, returned, ...seen } = await spokenOver();
  test('reaches the user as a delivery if no process dies', () =>
    expect(seen).toMatchObject({ replies: 0, heard: 1, pending: 0 }));

  const kills = Array.from({ length: written - returned + 1 }, (_, index) => returned + index);
  test.each(kills)('P4: reaches the user after a kill at entry %i', async (entry) => {
    const { replies, heard, pending } = await spokenOver((of) => of.killAt(entry, 'after'));
    expect(replies + heard + pending).toBeGreaterThan(0);
    expect(heard + pending).toBeLessThan(2);
  });
});
