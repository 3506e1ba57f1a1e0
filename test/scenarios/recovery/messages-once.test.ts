// A subagent reads a message (`send_to_subagent`) exactly once, whichever entry the process is killed at. The message
// may also be the answer to a question from the subagent.
import { THE_LEAD, createSubagentService } from '../../../src/entries/subagents.ts';
import { describe, expect, test } from 'vitest';
import {
  type DoubtfulCall,
  createChildSubagentToolset,
  createParentSubagentToolset,
} from '../../../src/index.ts';
import { readTask, type Script, type ScriptedPrompt } from '../../../src/testing/index.ts';
import { turns, world, type World } from '../../support/crashes.ts';
import { calls, say, simpleTool } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';

const WORDS = 'The user has a dog with them.';

/** Counts how often the text occurs in a prompt. */
const readIn = ({ prompt }: ScriptedPrompt): number =>
  JSON.stringify(prompt).split(JSON.stringify(WORDS).slice(1, -1)).length - 1;

/** Returns the id of the subagent that the boss has spawned, as the boss's model reads it. */
const helperOf = ({ prompt }: ScriptedPrompt): string =>
  /"subagentId":"(\w+)","status":"spawning"/.exec(JSON.stringify(prompt))?.[1] ?? 'nobody';

const waiting: Script = (prompt) => calls(['await_subagent', { subagentId: helperOf(prompt) }]);
const telling =
  (isAnswer: boolean): Script =>
  (prompt) => {
    const subagentId = helperOf(prompt);
    const inResponseTo = isAnswer ? { inResponseTo: `${subagentId}.q1` } : {};
    return calls(['send_to_subagent', { subagentId, content: WORDS, ...inResponseTo }]);
  };
const spawning = calls([
  'spawn_subagent',
  { task: 'Find it', contextMode: 'fresh', systemPrompt: 'Be a helper.' },
]);
const passingOn: Script = ({ results }) => say(`The helper says ${JSON.stringify(results.at(-1))}`);

/** The boss spawns a helper, sends it a message while it is working, and waits for it. */
const bossTelling: Script = turns(spawning, telling(false), waiting, passingOn);

/** The boss waits until the helper asks, and then answers. */
const bossAnswering: Script = turns(spawning, waiting, telling(true), waiting, passingOn);

const working: Script = turns(calls(['look', {}]), (prompt) =>
  calls(['complete_task', { result: `I have read it ${readIn(prompt)} times.` }]),
);
const askingParent: Script = turns(
  calls(['request_input', { question: 'Is there a dog?' }]),
  (prompt) => calls(['complete_task', { result: `I have read it ${readIn(prompt)} times.` }]),
);

interface Story {
  readonly boss: Script;
  readonly helper: Script;
}

const stories: Readonly<Record<string, Story>> = {
  'a message': { boss: bossTelling, helper: working },
  'an answer': { boss: bossAnswering, helper: askingParent },
};

/** Plays the story until it has the result, in as many processes as it needs. */
async function live(of: World, { boss, helper }: Story) {
  const doubts: DoubtfulCall[] = [];
  const errors: unknown[] = [];
  for (;;) {
    const { process, runtime } = of.begin();
    const { scheduler } = process.environment;
    const config = configOf('order', {
      maxSteps: 10,
      tools: {
        look: simpleTool(
          async () => {
            // The helper is working when the message arrives.
            await new Promise<void>((resolve) => scheduler.schedule(resolve, 1000));
            return { seen: 'a map' };
          },
          { idempotent: true },
        ),
        ...createParentSubagentToolset({ agent: configOf('order') }),
        ...createChildSubagentToolset(),
      },
    });
    const service = createSubagentService({
      runtime,
      id: 'orders',
      configs: { order: config },
      model: castOf({
        subagents: {
          order: {
            script: (prompt) =>
              (readTask(prompt.prompt)?.arguments['instructions'] === 'Be a helper.'
                ? helper
                : boss)(prompt),
          },
        },
      }),
      onCallInDoubt: (call) => void doubts.push(call),
      onError: (error) => void errors.push(error),
    });
    const recovering = service.recover();
    await of.environment.settle();
    if (!process.isAlive) continue;
    await recovering;
    const receipt = service.spawn({
      config,
      task: { toolName: 'order', args: {}, description: 'Order it' },
      caller: THE_LEAD,
      idempotencyKey: 'order-17',
    });
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    await of.environment.advance(10_000);
    if (!process.isAlive) continue;
    const found = service.check(receipt.subagentId, THE_LEAD);
    await of.environment.settle();
    if (!process.isAlive) continue;
    // The messages sent by a call whose id names its step.
    const sent = of.entries.filter(
      ({ event }) => 'messageId' in event && String(event.messageId).includes(':'),
    ).length;
    return { said: found.ok && found.report.result, sent, doubts, errors };
  }
}

describe.each(Object.entries(stories))('P4, P6: %s', async (_, story) => {
  const once = {
    said: expect.stringContaining('I have read it 1 times.'),
    sent: 1,
    doubts: [],
    errors: [],
  };
  const whole = world();
  const first = await live(whole, story);
  const instants = Array.from({ length: whole.written }, (__, index) => index + 1).flatMap(
    (entry) => (['before', 'after'] as const).map((when) => [when, entry] as const),
  );

  test('completes the story without a kill', () => {
    expect(first).toEqual(once);
    expect(instants.length).toBeGreaterThan(30);
  });

  test.each(instants)('reaches the same end after a kill %s entry %i', async (when, entry) => {
    const of = world();
    of.killAt(entry, when);
    expect(await live(of, story)).toEqual(once);
  });
});
