// A session with nothing left to say dies, and another process resumes it. The lead agent says nothing, because no
// message is waiting for a reply (P10). A user who wakes a hibernated chat does not hear the last result again.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../src/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import { textLife, turns, voiceLife, world, type World } from '../../support/crashes.ts';
import { BY_ITSELF, FakeTransport } from '../../support/fake-transport.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { leadScript, type ScriptedSubagent, type TalkOptions } from '../../support/text-talk.ts';

const look = defineTool({
  name: 'look',
  description: 'Looks something up',
  parameters: z.looseObject({}),
  execute: () => 'It rains.',
});
const report = (
  pending: string | null,
  config: ScriptedSubagent['config'] = {},
): Pick<TalkOptions, 'subagents'> => ({
  subagents: { report: { script: () => say('Sales are up.'), pending, config } },
});
const ride = (pending: string | null): Pick<TalkOptions, 'subagents'> => ({
  subagents: {
    ride: {
      script: turns(calls(['ask_user', { question: 'Which class?' }]), say('Booked.')),
      pending,
      config: { interactive: true },
    },
  },
});
/** A lead agent that looks something up before it reports the result. */
const looksFirst: Script = (prompt) => {
  const told = prompt.prompt.findIndex((one) => JSON.stringify(one).includes('Sales are up.'));
  if (told < 0) return leadScript(prompt);
  const hasLooked = prompt.prompt.slice(told + 1).some(({ role }) => role === 'tool');
  return hasLooked ? say('Sales are up, in the rain.') : calls(['look', {}]);
};

const stories: readonly (readonly [name: string, TalkOptions, words: readonly string[]])[] = [
  ['small talk', {}, ['hello']],
  ['a greeting', { greeting: 'Good morning.' }, []],
  ['a tool', { tools: [look] }, ['use look']],
  ...[null, 'On it.'].flatMap((pending) =>
    (['when_idle', 'interrupt', 'silent', 'skip_if_busy'] as const).map(
      (delivery) =>
        [
          `a result told ${delivery}, ${pending === null ? 'as the answer of its call' : 'after a message'}`,
          report(pending, { delivery }),
          ['use report'],
        ] as const,
    ),
  ),
  ['a tool, and a result', { ...report(null), tools: [look] }, ['use report and look']],
  [
    'a result told with a tool',
    { ...report(null), tools: [look], lead: looksFirst },
    ['use report'],
  ],
  [
    'a result told with a tool, after a message',
    { ...report('On it.'), tools: [look], lead: looksFirst },
    ['use report'],
  ],
  ['words after a result', report(null), ['use report', 'thanks']],
  ['an answered question', ride(null), ['use ride', 'economy']],
  ['an answered question, after a message', ride('On it.'), ['use ride', 'economy']],
  [
    'work that failed',
    {
      subagents: {
        report: {
          script: () => {
            throw new Error('no');
          },
          pending: null,
          config: { retry: { maxAttempts: 1 } },
        },
      },
    },
    ['use report'],
  ],
];

/** Plays a text session until it is idle and all results have been delivered and seen. */
async function toIdle(of: World, options: TalkOptions, words: readonly string[]) {
  const life = textLife(of, options);
  await life.start();
  await of.environment.advance(5000);
  for (const text of words) {
    await life.type(text);
    await of.environment.advance(5000);
    for (const { deliveryId, state } of life.state().deliveries)
      if (state !== 'delivered') life.session.shown(deliveryId);
    await of.environment.advance(5000);
  }
  return life;
}

describe('P10: by text', () => {
  test.each(stories)('%s', async (_, options, words) => {
    const of = world();
    const before = await toIdle(of, options, words);
    expect(before.state().deliveries.filter(({ state }) => state !== 'delivered')).toEqual([]);
    before.kill();
    const asked: string[] = [];
    const onModelCall = (who: string) => void asked.push(who);
    const after = textLife(of, { ...options, onModelCall });
    await after.start();
    await of.environment.advance(60_000);
    expect(after.said()).toEqual([]);
    expect(asked).toEqual([]);
    expect(after.errors).toEqual([]);
    await after.close();
  });
});

describe('P10: by text, while a subagent works', () => {
  test.each([null, 'On it.'])('pending message: %s', async (pending) => {
    const of = world();
    const slowly = async () => {
      await new Promise<void>((done) => void of.environment.scheduler.schedule(done, 100_000));
      return say('Sales are up.');
    };
    const options: TalkOptions = { subagents: { report: { script: slowly, pending } } };
    const before = await toIdle(of, options, ['use report']);
    before.kill();
    const after = textLife(of, options);
    await after.start();
    await of.environment.advance(60_000);
    expect(after.said()).toEqual([]);
    await of.environment.advance(60_000);
    expect(after.said()).toHaveLength(1);
    await after.close();
  });
});

describe.each([
  ['when asked', true, {}],
  ['by itself', false, BY_ITSELF],
] as const)('P10: by voice, a model that responds %s', (_, isAsked, capabilities) => {
  test.each([null, 'On it.'])('a result, pending message: %s', async (pending) => {
    const of = world();
    const options = {
      ...report(pending),
      transport: new FakeTransport(capabilities),
    };
    const before = voiceLife(of, options);
    await before.start();
    if (isAsked) await before.use('report');
    else {
      await before.say('use report');
      const call = { callId: 'call_1', name: 'report', arguments: '{}', responseId: 'resp_x' };
      before.model().events.next({ type: 'tool.called', ...call });
      await of.environment.settle();
      if (pending !== null) await before.play(before.model().speakByItself(pending));
    }
    await before.pause();
    await before.speak('Sales are up.');
    expect(before.result()).toMatchObject({ state: 'delivered' });
    before.kill();
    const after = voiceLife(of, options);
    await after.start();
    await after.pause();
    await of.environment.advance(60_000);
    expect(after.asked()).toBeNull();
    await after.close();
  });
});
