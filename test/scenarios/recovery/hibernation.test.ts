// A session that hibernates while idle resumes as if it had stayed in memory.

import { describe, expect, test } from 'vitest';
import { memoryStore, workingMemory as newMemory } from '../../../src/entries/memory.ts';
import { createChildSubagentToolset } from '../../../src/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import { textLife, turns, world, type World } from '../../support/crashes.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../../support/text-talk.ts';

const booking: Script = turns(calls(['ask_user', { question: 'Which class?' }]), ({ results }) =>
  say(`Booked ${JSON.stringify(results.at(-1))}`),
);

const asking: TalkOptions = {
  subagents: { ride: { script: booking, config: { interactive: true, inputTimeout: 600_000 } } },
};

/** Hibernates a session and resumes it. */
async function woken(of: World, before: ReturnType<typeof textLife>, options: TalkOptions = {}) {
  const wasIdle = await before.session.hibernate();
  const after = textLife(of, options);
  await after.start();
  await of.environment.advance(1000);
  return { wasIdle, after };
}

describe('a session that hibernates', () => {
  test('RECOVERY-2: notifies the app of an open question only once', async () => {
    const of = world();
    const heard: string[] = [];
    const onQuestion = ({ requestId }: { requestId: string }) => void heard.push(requestId);
    const options = { ...asking, hooks: { onQuestion } };
    const before = textLife(of, options);
    await before.start();
    await before.type('use ride');
    const { after, wasIdle } = await woken(of, before, options);
    expect(wasIdle).toBe(true);
    expect(after.question()).toMatchObject({ state: 'open' });
    expect(heard).toEqual(['sub_1.q1']);
    await after.close();
  });

  test('returns the same result for repeated calls to hibernate()', async () => {
    const before = textLife(world(), asking);
    await before.start();
    await before.type('use ride');
    const twice = [before.session.hibernate(), before.session.hibernate()];
    expect(await Promise.all(twice)).toEqual([true, true]);
    expect(await before.session.hibernate()).toBe(true);
  });

  test('remains awake if input arrives during hibernation', async () => {
    const of = world();
    const before = textLife(of, { lead: () => ({ text: 'Late.', delayMs: 5000 }) });
    await before.start();
    const leaving = before.session.hibernate();
    void before.session.sendText('wait');
    expect(await leaving).toBe(false);
    const after = textLife(of);
    await after.start();
    await of.environment.advance(1000);
    expect(after.said()).toEqual(['You said: wait']);
    await after.close();
  });

  test('does not repeat a request each time it wakes if the reply was empty', async () => {
    const of = world();
    let asked = 0;
    const lead = () => {
      asked += 1;
      return { text: '' };
    };
    const before = textLife(of, { lead });
    await before.start();
    await before.type('hello');
    const { after, wasIdle } = await woken(of, before, { lead });
    // The lead agent is asked again in its turn, not when the session wakes up.
    expect([asked, wasIdle]).toEqual([2, true]);
    await after.close();
  });

  test('SUBAGENTS-REQUESTS-2: delivers a request to the parent once and keeps its deadline', async () => {
    const of = world();
    const options: TalkOptions = {
      subagents: {
        ride: {
          script: turns(
            calls(['request_input', { question: 'Which?', timeoutMs: 60_000 }]),
            ({ results }) => say(`Heard ${JSON.stringify(results.at(-1))}`),
          ),
          config: { tools: createChildSubagentToolset() },
        },
      },
    };
    const before = textLife(of, options);
    await before.start();
    await before.type('use ride');
    expect(before.said().join()).toContain('SUBAGENT REQUEST');
    await of.environment.advance(40_000);
    const { after, wasIdle } = await woken(of, before, options);
    expect(wasIdle).toBe(true);
    expect(after.said()).toEqual([]);
    await of.environment.advance(20_000);
    expect(after.said().join()).toContain('timedOut');
    await after.close();
  });

  test('UPKEEP-3: extracts facts from each message only once', async () => {
    const of = world();
    const read: string[] = [];
    const options: TalkOptions = {
      memory: memoryStore(),
      conversation: {
        distil: async ({ items }) => {
          read.push(items.map((item) => ('text' in item ? item.text : '')).join());
          return [];
        },
      },
    };
    const before = textLife(of, options);
    await before.start();
    await before.type('hello');
    const { after } = await woken(of, before, options);
    await after.session.hibernate();
    const third = textLife(of, options);
    await third.start();
    await third.type('again');
    await third.session.hibernate();
    expect(read).toEqual(['hello,You said: hello', 'again,You said: again']);
  });

  test('counts as busy while its conversation is summarised', async () => {
    const of = world();
    let release: (summary: string) => void = () => {};
    const { session, start, type } = textLife(of, {
      conversation: {
        limits: { maxItems: 12, maxChars: 2000, maxItemChars: 500 },
        summariseAbove: 0.1,
        keepItems: 1,
        summarise: () => new Promise<string>((resolve) => (release = resolve)),
      },
    });
    await start();
    await type('one');
    await type('two');
    expect(session.isIdle).toBe(false);
    release('They said two things.');
    await of.environment.settle();
    expect(session.isIdle).toBe(true);
    await session.hibernate();
  });
});

test('SLOTS-3: resumes a running subagent in the same runtime after a suspend', async () => {
  const of = world();
  const { runtime } = of.begin();
  let times = 0;
  const charge = simpleTool(() => ((times += 1) === 1 ? never() : 'paid'), { idempotent: true });
  const options: TalkOptions = {
    sessionId: 'ses',
    runtime,
    environment: of.environment,
    subagents: {
      pay: {
        script: turns(calls(['charge', {}]), ({ results }) => say(JSON.stringify(results))),
        config: { tools: { charge } },
      },
    },
  };
  const before = textTalk(options);
  await before.start();
  await before.type('use pay');
  await before.session.suspend();
  const after = textTalk(options);
  await after.start();
  await of.environment.advance(1000);
  expect(after.said().join()).toContain('paid');
  await after.close();
});

test('does not start the same work twice after a crash', async () => {
  const of = world();
  const options: TalkOptions = {
    subagents: {
      pay: {
        script: turns(calls(['charge', {}])),
        config: { tools: { charge: simpleTool(never, { idempotent: true }) } },
      },
    },
  };
  const before = textLife(of, options);
  await before.start();
  await before.type('use pay');
  before.kill();
  const after = textLife(of, options);
  await after.start();
  await after.type('use pay');
  expect(after.state().subagents).toHaveLength(1);
  expect(after.said().join()).toContain('already_in_progress');
  await after.close();
});

test('keeps the working memory for the next process if the start fails', async () => {
  const of = world();
  const forgotten: string[] = [];
  const workingMemory = Object.assign(newMemory({ environment: of.environment }), {
    forget: async (sessionId: string) => void forgotten.push(sessionId),
  });
  const asleep = textLife(of, { workingMemory });
  await asleep.session.hibernate();
  expect(forgotten).toEqual([]);
  const closed = textLife(of, { workingMemory });
  await closed.start();
  await closed.close();
  expect(forgotten).toEqual(['ses']);
});
