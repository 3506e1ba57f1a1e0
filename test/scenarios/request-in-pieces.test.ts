// A request that arrives in pieces: "Write to Anna" … "that I am late, and copy Bob". One task carries it out and
// receives the rest exactly once.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { BY_ITSELF, DELEGATES, FakeTransport } from '../support/fake-transport.ts';
import { instantsOf, textLife, world } from '../support/crashes.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const FIRST = 'Write to Anna';
const REST = "that I'm late, and copy Bob";
const WHOLE = `${FIRST} ${REST}`;

/**
 * How the lead model handles the rest: it calls the tool again with the whole request, passes the rest to the task, or
 * does both at once.
 */
const HABITS = ['again', 'tells', 'both'] as const;
type Habit = (typeof HABITS)[number];

const write = (request: string) => ['write', { request }] as [string, object];
const tell = ['running_task', { action: 'tell', words: REST }] as [string, object];

/** How a model reacts to the answers to its calls. */
function afterAnswers(read: string) {
  if (read.includes('not_started')) return calls(write(WHOLE));
  if (read.includes('already_in_progress')) return calls(tell);
  return say('All right.');
}

const lastOf = (prompt: ScriptedPrompt) => prompt.prompt.at(-1);

function leadOf(habit: Habit, thinks: () => Promise<unknown> = () => Promise.resolve()): Script {
  return async (prompt) => {
    const last = lastOf(prompt);
    await thinks();
    if (last?.role === 'tool') return afterAnswers(JSON.stringify(last));
    const hasBegun = JSON.stringify(prompt.prompt).includes('"status":"still_in_progress"');
    // A process died between the two calls.
    if (prompt.user.includes('You were cut off')) return calls(tell);
    if (prompt.user.endsWith(FIRST)) return calls(write(FIRST));
    if (!prompt.user.endsWith(REST)) return say('I see.');
    if (!hasBegun) return calls(write(WHOLE));
    if (habit === 'again') return calls(write(WHOLE));
    return habit === 'tells' ? calls(tell) : calls(write(WHOLE), tell);
  };
}

/** The model behind a wire that delegates. Each request asks for one step. */
const delegated =
  (habit: Habit): Script =>
  ({ prompt }) => {
    const whole = JSON.stringify(prompt);
    if (!whole.includes(REST)) return calls(write(FIRST));
    if (whole.includes('already_in_progress')) return calls(tell);
    if (habit === 'again' || !whole.includes('"status":"still_in_progress"'))
      return calls(write(WHOLE));
    return habit === 'tells' ? calls(tell) : calls(write(WHOLE), tell);
  };

/** How long the task works before it sends the email. `asks`: it asks the user first. */
type Work = number | 'asks';

/** The subagent that writes emails, and what it has read and sent. */
function mailer(work: Work, environment: ReturnType<typeof simulatedEnvironment>) {
  const sent: string[] = [];
  const read: string[] = [];
  const script: Script = async (prompt) => {
    read.push(JSON.stringify(prompt.prompt));
    if (lastOf(prompt)?.role === 'tool') return say('Sent.');
    if (work === 'asks') return calls(['ask_user', { question: 'Which Anna?' }]);
    await new Promise<void>((resolve) => {
      environment.scheduler.schedule(resolve, work);
    });
    return calls(['send']);
  };
  const tools = { send: simpleTool(() => sent.push('a mail')) };
  return { sent, read, subagents: { write: { script, config: { tools } } } };
}

/**
 * Returns how often the rest of the request occurs in the text that a task has read, in its arguments or in a message.
 */
const restIn = (read: string) => read.split("I'm late").length - 1;

const statusOf = (output: unknown) => (output as { status?: string } | null)?.status;

function written(work: Work, habit: Habit, thinkMs = 0, more: TalkOptions = {}) {
  const environment = simulatedEnvironment();
  const mail = mailer(work, environment);
  const prompts: ScriptedPrompt[] = [];
  const thinks = () =>
    new Promise<void>((resolve) => {
      if (thinkMs === 0) resolve();
      else environment.scheduler.schedule(resolve, thinkMs);
    });
  const it = textTalk({
    environment,
    subagents: mail.subagents,
    lead: leadOf(habit, thinks),
    onModelCall: (who, prompt) => {
      if (who === 'lead') prompts.push(prompt);
    },
    ...more,
  });
  const statuses = () =>
    it.events.flatMap((event) => (event.type === 'tool.answered' ? [statusOf(event.output)] : []));
  return { ...it, ...mail, environment, prompts, statuses };
}

/** The answer that the model receives if it passes words to a task that has ended. */
const TOO_LATE: ReadonlySet<string> = new Set(['already_done', 'completed', 'too_late', 'nothing_runs']); // prettier-ignore

/** The two pieces with a pause between them. */
async function say2(it: ReturnType<typeof written>, pauseMs: number, rest = REST) {
  await it.start();
  await it.type(FIRST);
  await it.environment.advance(pauseMs);
  await it.type(rest);
  await it.environment.advance(20_000);
}

describe('by text', () => {
  test.each(HABITS)(
    'ONE-REQUEST-2: passes the rest of the request to the running task once: %s',
    async (habit) => {
      const it = written(60_000, habit);
      await say2(it, 1500);
      expect(it.state().subagents).toHaveLength(1);
      expect(restIn(it.read.at(-1) ?? '')).toBe(1);
      await it.environment.advance(120_000);
      expect(it.sent).toEqual(['a mail']);
      await it.close();
    },
  );

  test('ONE-REQUEST-1: starts one task for the whole request if the rest arrives before the call', async () => {
    const it = written(60_000, 'again', 2000);
    await say2(it, 1500);
    expect(it.statuses().slice(0, 2)).toEqual(['not_started', 'still_in_progress']);
    expect(it.state().subagents).toHaveLength(1);
    expect(restIn(it.read[0] ?? '')).toBeGreaterThan(0);
    await it.close();
  });

  test("ONE-REQUEST-1: starts nothing after “Don't do anything yet”", async () => {
    const it = written(60_000, 'again', 2000, {
      lead: async (prompt) => {
        const { user } = prompt;
        await new Promise<void>((resolve) => {
          it.environment.scheduler.schedule(resolve, 2000);
        });
        return user.endsWith(FIRST) ? calls(write(FIRST)) : say('I wait.');
      },
    });
    await say2(it, 1500, "Don't do anything yet.");
    expect(it.statuses()).toEqual(['not_started']);
    expect(it.said().at(-1)).toBe('I wait.');
    expect(it.state().subagents).toEqual([]);
    await it.close();
  });

  test('ONE-REQUEST-2: asks before it repeats a finished request', async () => {
    const it = written(500, 'again');
    await say2(it, 1500);
    expect(it.sent).toEqual(['a mail']);
    expect(it.statuses()).toEqual(['still_in_progress', 'already_done']);
    await it.type(`yes, ${REST}`);
    await it.environment.advance(20_000);
    expect(it.sent).toEqual(['a mail', 'a mail']);
    await it.close();
  });

  test.each([
    ['a task of another request', FIRST, 20_000, WHOLE],
    ['other arguments', FIRST, 1500, 'Write to Carl'],
  ])('ONE-REQUEST-2: starts %s', async (_, first, pauseMs, second) => {
    const it = written(60_000, 'again', 0, {
      lead: (prompt) =>
        lastOf(prompt)?.role === 'user' ? calls(write(prompt.user)) : say('All right.'),
    });
    await it.start();
    await it.type(first);
    await it.environment.advance(pauseMs);
    await it.type(second);
    await it.environment.advance(5000);
    expect(it.state().subagents).toHaveLength(2);
    await it.close();
  });

  test.each([
    ['starts a longer request after the user has answered', 'Anna Stein', 'still_in_progress'],
    [
      'adds to the first request after the user has put off',
      'Wait a minute',
      'already_in_progress',
    ],
  ])('ONE-REQUEST-2: %s a question from the first task', async (_, answer, status) => {
    const script: Script = (prompt) =>
      lastOf(prompt)?.role === 'tool'
        ? say('Sent.')
        : calls(['ask_user', { question: 'Which Anna?' }]);
    const it = written('asks', 'again', 0, {
      subagents: { write: { script, config: { interactive: true } } },
      lead: (prompt) => {
        const words = [WHOLE, FIRST].find((one) => prompt.user.endsWith(one));
        const isCalled = words === undefined || lastOf(prompt)?.role !== 'user';
        return isCalled ? say('All right.') : calls(write(words));
      },
    });
    await it.start();
    for (const words of [FIRST, answer, WHOLE]) {
      await it.type(words);
      await it.environment.advance(2000);
    }
    expect(it.statuses()).toEqual(['still_in_progress', status]);
    await it.close();
  });

  test('ONE-REQUEST-2: starts several tasks if the model calls for them in one answer', async () => {
    const it = written(60_000, 'again', 0, {
      lead: (prompt) =>
        lastOf(prompt)?.role === 'user' ? calls(write(FIRST), write(WHOLE)) : say('All right.'),
    });
    await it.start();
    await it.type(FIRST);
    await it.environment.advance(5000);
    expect(it.state().subagents).toHaveLength(2);
    await it.close();
  });

  test('ONE-REQUEST-2: does not hold anything back if there is no running_task tool', async () => {
    const it = written(60_000, 'again', 0, { steering: false });
    await say2(it, 1500);
    expect(it.state().subagents).toHaveLength(2);
    await it.close();
  });

  test('sends one mail without losing a message, however long the pause and whatever the task is doing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(0, 300, 1500, 2500, 6000),
        fc.constantFrom(0, 700, 2000),
        fc.constantFrom<Work>('asks', 200, 1200, 4000, 30_000),
        fc.constantFrom(...HABITS),
        async (pauseMs, thinkMs, work, habit) => {
          const it = written(work, habit, thinkMs);
          await say2(it, pauseMs);
          await it.environment.advance(60_000);
          expect(it.state().subagents).toHaveLength(1);
          expect(it.sent.length).toBeLessThanOrEqual(1);
          // The task read the rest once, or the model was informed that the rest came too late.
          const isTooLate = it.statuses().some((status) => TOO_LATE.has(status ?? ''));
          const isOnce = it.read.some((read) => restIn(read) >= 1);
          expect(isOnce || isTooLate || work === 'asks').toBe(true);
          const messages = it.read.map((read) => read.split('A message from the agent').length - 1);
          expect(Math.max(0, ...messages)).toBeLessThanOrEqual(1);
          const read = JSON.stringify(it.prompts.at(-1)?.prompt);
          for (const words of [FIRST, REST]) expect(read).toContain(words);
          await it.close();
        },
      ),
      { numRuns: 60, seed: 11 },
    );
  });
});

describe('after a crash', () => {
  /** The user says both pieces, in however many processes there are. */
  async function lived(of: ReturnType<typeof world>) {
    const mail = mailer(60_000, of.environment);
    for (;;) {
      const it = textLife(of, { lead: leadOf('both'), subagents: mail.subagents });
      void it.start().catch(() => {});
      await of.environment.settle();
      for (const text of [FIRST, REST]) {
        if (!it.state().transcript.some((item) => item.text === text))
          void it.session.sendText(text).catch(() => {});
        for (let round = 0; round < 3; round += 1) {
          await of.environment.settle();
          await of.environment.advance(800);
        }
      }
      if (it.isAlive()) return { it, ...mail };
    }
  }

  const lengthOf = 37;
  test('writes as many entries as the test covers', async () => {
    const of = world();
    await lived(of);
    expect(of.written).toBe(lengthOf);
  });

  test.each(instantsOf(lengthOf))(
    'one task has the rest once after a kill %s entry %i',
    async (when, at) => {
      const of = world();
      of.killAt(at, when);
      const { it, read } = await lived(of);
      expect(it.state().subagents).toHaveLength(1);
      const messages = (read.at(-1) ?? '').split('A message from the agent').length - 1;
      expect([messages, restIn(read.at(-1) ?? '') > 0]).toEqual([1, true]);
      await it.close();
    },
  );
});

describe('by voice', () => {
  const wires = {
    'asked to speak': {},
    'that speaks by itself': BY_ITSELF,
    'that delegates': DELEGATES,
  } as const;
  type Wire = keyof typeof wires;

  /**
   * The user continues `pauseMs` after the call, over the reply, and the model handles the rest according to its habit.
   */
  async function spoken(
    wire: Wire,
    work: Work,
    habit: Habit,
    pauseMs: number,
    isSlowToHear: boolean,
  ) {
    const environment = simulatedEnvironment();
    const mail = mailer(work, environment);
    const it = voiceTalk({
      environment,
      transport: new FakeTransport(wires[wire]),
      subagents: mail.subagents,
      delegationModel: scriptedModel({ scripts: [{ when: '', script: delegated(habit) }] }),
    });
    await it.start();
    const model = it.model();
    let made = 0;
    const makes = async (...wanted: readonly [string, object][]) => {
      if (wire === 'that delegates')
        model.events.next({ type: 'delegation.created', delegationId: `d${(made += 1)}` });
      else {
        const isAsked = model.openRequests.length > 0;
        const { responseId, end } = isAsked ? model.begin('', 0) : model.beginByItself('', 0);
        for (const [name, input] of wanted)
          model.events.next({ type: 'tool.called', responseId, callId: `c${(made += 1)}`, name, arguments: JSON.stringify(input) }); // prettier-ignore
        end();
      }
      await environment.advance(4000);
    };
    const answered = () =>
      it.events.flatMap((event) =>
        event.type === 'tool.answered' ? [JSON.stringify(event.output)] : [],
      );
    await it.say(FIRST);
    await makes(write(FIRST));
    // The reply is cut off.
    const asked = model.openRequests.length > 0;
    const reply = asked ? model.begin('On it, I', 3000) : model.beginByItself('On it, I', 3000);
    await environment.advance(pauseMs);
    model.speechStarted('rest');
    await environment.advance(600);
    reply.end('cancelled');
    it.session.playout.next({ itemId: reply.itemId, playedMs: 200 });
    if (!isSlowToHear || wire === 'that delegates') model.speechEnded('rest', REST);
    else model.events.next({ type: 'utterance.ended', utteranceId: 'rest' });
    await environment.advance(100);
    if (isSlowToHear && wire !== 'that delegates')
      environment.scheduler.schedule(
        () => model.events.next({ type: 'utterance.transcribed', utteranceId: 'rest', text: REST, final: true }), // prettier-ignore
        500,
      );
    await makes(...(habit === 'tells' ? [tell] : habit === 'again' ? [write(WHOLE)] : [write(WHOLE), tell])); // prettier-ignore
    if (
      wire !== 'that delegates' &&
      answered().some((answer) => answer.includes('already_in_progress'))
    )
      await makes(tell);
    else if (wire === 'that delegates' && habit === 'again') await makes();
    await environment.advance(20_000);
    const told = it.state().transcript.map(({ text }) => text);
    return { ...it, ...mail, answered, told };
  }

  test('sends one mail without losing a message on any wire, whatever the task is doing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(wires) as Wire[])),
        fc.constantFrom<Work>('asks', 1000, 4500, 60_000),
        fc.constantFrom(...HABITS),
        fc.constantFrom(100, 1500, 2900),
        fc.boolean(),
        async (wire, work, habit, pauseMs, isSlowToHear) => {
          const it = await spoken(wire, work, habit, pauseMs, isSlowToHear);
          expect(it.state().subagents).toHaveLength(1);
          const messages = it.read.map((read) => read.split('A message from the agent').length - 1);
          expect(Math.max(0, ...messages)).toBeLessThanOrEqual(1);
          for (const words of [FIRST, REST]) expect(it.told).toContain(words);
          if (work === 60_000) expect(Math.max(...messages)).toBe(1);
          await it.close();
        },
      ),
      { numRuns: 60, seed: 5 },
    );
  });
});
