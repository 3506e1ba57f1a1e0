// How a background result reaches the user (`delivery`): in the next pause, at once, silently, or only when neither
// party is speaking. A result that is not spoken stays on the screen (P4).

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, TextSession } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { readNotes, scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { say } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

type Mode = 'when_idle' | 'interrupt' | 'silent' | 'skip_if_busy';

const reportIn = (delivery: Mode, pending: string | null = 'On it.') => ({
  subagents: { report: { script: () => say('Sales are up.'), pending, config: { delivery } } },
});

/** The report is running while the lead agent is telling a long story. */
async function duringStory(delivery: Mode) {
  let finish: () => void = () => {};
  const working = new Promise<void>((resolve) => (finish = resolve));
  const talk = voiceTalk({
    subagents: {
      report: {
        script: () => working.then(() => say('Sales are up.')),
        config: { delivery },
      },
    },
  });
  await talk.start();
  await talk.use('report');
  await talk.say('tell me a story');
  const story = talk.model().begin('Once upon a time there was a king.', 4000);
  await talk.play(story.itemId, 1000);
  finish();
  await talk.environment.settle();
  /** Returns all messages of the notes that quote the result. */
  const notes = () => {
    const told = talk.model().of('message.add');
    const quoting = told.filter(({ text }) => text.includes('Sales are up.'));
    const marks = new Set(quoting.flatMap(({ text }) => readNotes(text).map(({ mark }) => mark)));
    return told.filter(({ text }) => readNotes(text).some(({ mark }) => marks.has(mark)));
  };
  return { ...talk, story, notes };
}

describe('a delivery by voice, while the lead agent speaks', () => {
  test('when_idle: waits for the next pause', async () => {
    const { story, play, pause, asked, result, model } = await duringStory('when_idle');
    expect(model().of('response.cancel')).toEqual([]);
    expect(result()).toMatchObject({ state: 'pending', card: false });
    story.end();
    await play(story.itemId, 4000);
    await pause();
    expect(asked()).toContain('Sales are up.');
  });

  test('interrupt: speaks the delivery immediately', async () => {
    const { story, play, asked, result, model, environment } = await duringStory('interrupt');
    expect(model().of('response.cancel')).toHaveLength(1);
    expect(result()).toMatchObject({ priority: 'urgent' });
    await play(story.itemId, 1100);
    story.end('cancelled');
    await environment.settle();
    expect(asked()).toContain('Sales are up.');
  });

  test.each(['silent', 'skip_if_busy'] as const)(
    'passes %s to the model without speech and keeps it on the screen',
    async (mode) => {
      const talk = await duringStory(mode);
      const { story, play, pause, asked, result, notes, say: utter, session, environment } = talk;
      expect(result()).toMatchObject({ state: 'pending', card: true, attempts: 0 });
      expect(notes()).toMatchObject([
        { role: 'system', text: expect.stringContaining('Do not speak about it') },
        { role: 'user', isNote: true, text: expect.stringMatching(/^\[data .*Sales are up\./) },
      ]);
      story.end();
      await play(story.itemId, 4000);
      await pause();
      expect(asked()).toBeNull();
      // Neither a message from the user nor a new client triggers the result.
      await utter('go on');
      await talk.speak('And then …');
      talk.leave();
      session.attach();
      await pause();
      expect(asked()).toBeNull();
      expect(result()).toMatchObject({ state: 'pending', card: true });
      session.shown(result()?.deliveryId ?? '', { by: 'ada' });
      await environment.settle();
      expect(result()).toMatchObject({ state: 'delivered', grade: 'shown', by: 'ada' });
      expect(notes()).toHaveLength(2);
    },
  );
});

describe('a delivery by voice, in silence', () => {
  test('skip_if_busy: speaks the delivery like any other result', async () => {
    const { start, use, pause, asked, speak, result } = voiceTalk({
      subagents: {
        report: {
          script: () => new Promise((resolve) => later.push(() => resolve(say('Done.')))) as never,
          config: { delivery: 'skip_if_busy' },
        },
      },
    });
    const later: (() => void)[] = [];
    await start();
    await use('report');
    await pause();
    later[0]?.();
    await pause();
    expect(asked()).toContain('Done.');
    await speak('Done.');
    expect(result()).toMatchObject({ state: 'delivered', grade: 'played' });
  });

  test('silent: answers the open call without a response', async () => {
    const { start, use, pause, asked, model, result, session, environment } = voiceTalk(
      reportIn('silent', null),
    );
    await start();
    await use('report');
    await pause();
    expect(model().of('tool.answer')).toMatchObject([
      { callId: 'call_1', output: expect.stringContaining('Sales are up.') },
    ]);
    expect(asked()).toBeNull();
    expect(result()).toMatchObject({ state: 'pending', card: true });
    session.dismiss(result()?.deliveryId ?? '', { by: 'ada' });
    await environment.settle();
    expect(result()).toMatchObject({ state: 'dismissed', by: 'ada' });
    expect(model().of('tool.answer')).toHaveLength(1);
  });
});

describe('a delivery in text', () => {
  test('silent: reaches readers as a card, not as a message', async () => {
    let finish: () => void = () => {};
    const working = new Promise<void>((resolve) => (finish = resolve));
    const { start, type, environment, parts, said, state } = textTalk({
      subagents: {
        report: {
          script: () => working.then(() => say('Sales are up.')),
          config: { delivery: 'silent' },
        },
      },
    });
    await start();
    await type('use report');
    const before = said().length;
    finish();
    await environment.advance(1000);
    expect(said()).toHaveLength(before);
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'delivery.card', text: 'Sales are up.' }),
    );
    expect(state().deliveries).toMatchObject([{ state: 'delivered', grade: 'shown' }]);
  });

  test('delivers a result with its own mode separately from the other results', async () => {
    const script = () => say('Done.');
    const { start, type, environment, parts } = textTalk({
      subagents: {
        first: { script, config: { delivery: 'interrupt' } },
        second: { script },
        third: { script },
      },
    });
    await start();
    await type('use first and second and third');
    await environment.advance(1000);
    const told = parts.flatMap((part) =>
      part.type === 'text.done' && part.deliveryId !== null ? [part.deliveryIds?.length ?? 1] : [],
    );
    expect(told).toEqual([1, 2]);
  });
});

describe('the delivery mode', () => {
  test("prefers the tool's delivery mode to the subagent's", async () => {
    const tool = defineTool({
      name: 'report',
      description: 'Reports',
      parameters: z.looseObject({}),
      execution: 'background',
      delivery: 'silent',
    });
    const environment = simulatedEnvironment();
    const transport = new FakeTransport();
    const session = new VoiceSession({
      environment,
      transport,
      model: scriptedModel([say('Done.')]),
      agents: [{ name: 'lead', instructions: 'Help', tools: [tool] }],
      subagentConfigs: {
        report: { name: 'report', instructions: 'Report', delivery: 'interrupt' },
      },
    });
    session.attach();
    await session.start();
    transport.current.utterance('report');
    await environment.settle();
    transport.current.call({ callId: 'c', name: 'report', arguments: '{}' });
    await environment.advance(1000);
    expect(session.store.getSnapshot().context.deliveries).toMatchObject([
      { card: true, priority: 'normal' },
    ]);
    const closed = session.close();
    await environment.advance(10_000);
    await closed;
  });

  test('refuses an unknown mode', () => {
    expect(
      () =>
        new TextSession({
          model: scriptedModel([say('Hi.')]),
          agents: [
            {
              name: 'lead',
              instructions: 'Help',
              tools: [
                defineTool({
                  name: 'report',
                  description: 'Reports',
                  parameters: z.object({}),
                  execution: 'background',
                }),
              ],
            },
          ],
          subagentConfigs: {
            report: { name: 'report', instructions: 'Report', delivery: 'loud' as never },
          },
        }),
    ).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });
});
