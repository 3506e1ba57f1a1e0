// A voice lead agent's tool takes a long time. In the meantime, messages that are due are reported during the lead
// agent's turn, and the tool's answer is reported afterwards.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import type { TransportCapabilities } from '../../src/voice/connection/transport.ts';
import { BY_ITSELF, FakeTransport } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const TOOL_TIMEOUT_MS = 20_000;
/** Longer than a tool holds the floor, including the pause after it. */
const LONG_MS = 3000;
const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];

/** Starts a tool for the lead agent and does nothing else. */
async function atWork(
  capabilities: Partial<TransportCapabilities> = {},
  tools: readonly string[] = ['look_up'],
  more: VoiceTalkOptions = {},
) {
  const finish = new Map<string, () => void>();
  const talk = voiceTalk({
    tools: tools.map((name) =>
      defineTool({
        name,
        description: 'Looks something up',
        parameters: z.object({}),
        timeout: TOOL_TIMEOUT_MS,
        // The utterance waits for the tool, which is not detached.
        detach: { onWords: false },
        execute: () =>
          new Promise<string>((resolve) => finish.set(name, () => resolve(`${name} found it`))),
      }),
    ),
    transport: new FakeTransport(capabilities),
    ...more,
  });
  await talk.start();
  const { session, environment, model } = talk;
  await talk.say('look it up');
  if (capabilities.responds === 'by_itself') {
    for (const [index, name] of tools.entries())
      model().events.next({
        type: 'tool.called',
        callId: `call_${index}`,
        name,
        arguments: '{}',
        responseId: 'resp_x',
      });
  } else
    model().call(
      ...tools.map((name, index) => ({ callId: `call_${index}`, name, arguments: '{}' })),
    );
  await environment.settle();
  return {
    ...talk,
    news: () => session.notifyBackground('Something new.'),
    told: () => talk.state().deliveries.find(({ text }) => text.includes('Something new.')),
    turns: () => talk.events.filter(({ type }) => type === 'turn.ended').length,
    async finish(name = 'look_up') {
      finish.get(name)?.();
      await environment.settle();
    },
    /** Makes the model speak the requested words and the client play them. */
    async saysIt(words: string) {
      expect(model().openRequests).toHaveLength(1);
      await talk.speak(words);
    },
  };
}

type Work = Awaited<ReturnType<typeof atWork>>;

/** Checks that the model receives the tool's answer, reports it once, and reports nothing else. */
async function isAnswered(work: Work): Promise<void> {
  const { model, asked, environment, saysIt, turns } = work;
  const before = turns();
  expect(model().of('tool.answer').at(-1)?.output).toContain('found it');
  expect(asked()).toBe('reply');
  await saysIt('I found it.');
  await environment.advance(LONG_MS);
  expect(turns()).toBe(before + 1);
  expect(work.state().floor).toBe('nobody');
  expect(model().openRequests).toEqual([]);
}

describe('TURNS-9: a lead agent whose tool is running', () => {
  test("delivers a notice during the lead agent's turn and the answer later", async () => {
    const work = await atWork();
    const { environment, news, asked, told, saysIt, finish, turns, model, state } = work;
    news();
    await environment.advance(1900);
    expect(asked()).toBeNull();
    await environment.advance(1100);
    expect(asked()).toContain('Something new.');
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
    await environment.advance(LONG_MS);
    expect(turns()).toBe(0);
    expect(state().floor).toBe('model');
    expect(model().of('tool.answer')).toEqual([]);
    await finish();
    await isAnswered(work);
    await work.close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('delivers late notices one after another', async () => {
    const work = await atWork();
    const { environment, session, asked, saysIt, finish, state } = work;
    await environment.advance(LONG_MS);
    for (const words of ['First.', 'Second.', 'Third.']) {
      session.notifyBackground(words);
      await environment.advance(LONG_MS);
      expect(asked()).toContain(words);
      await saysIt(words);
    }
    expect(state().deliveries.map((delivery) => delivery.state)).toEqual([
      'delivered',
      'delivered',
      'delivered',
    ]);
    await finish();
    await isAnswered(work);
  });

  test('delivers the result of a quick tool first', async () => {
    const work = await atWork();
    const { environment, news, asked, told, finish, saysIt } = work;
    news();
    await environment.advance(1900);
    await finish();
    expect(asked()).toBe('reply');
    await saysIt('I found it.');
    await environment.advance(LONG_MS);
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
  });

  test('TURNS-1: delays an answer that arrives during a delivery until the delivery has ended', async () => {
    const work = await atWork();
    const { environment, news, told, finish, model, play } = work;
    news();
    await environment.advance(LONG_MS);
    const telling = model().begin('There is something new.', 2000);
    await environment.advance(500);
    await finish();
    await environment.advance(LONG_MS);
    expect(model().openRequests).toEqual([]);
    telling.end();
    await environment.settle();
    await play(telling.itemId, 2000);
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
    await isAnswered(work);
  });

  test('TURNS-1: requests one reply if the answer arrives before a delivery is audible', async () => {
    const work = await atWork();
    const { environment, news, told, finish, saysIt } = work;
    news();
    await environment.advance(LONG_MS);
    await finish();
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
    await isAnswered(work);
  });

  test('requests the reply to a tool that timed out only after the delivery', async () => {
    const work = await atWork();
    const { environment, news, told, model, play, asked } = work;
    await environment.advance(TOOL_TIMEOUT_MS - LONG_MS);
    news();
    await environment.advance(1000);
    const telling = model().begin('There is something new.', 4000);
    await environment.advance(LONG_MS);
    expect(model().of('tool.answer')).toHaveLength(1);
    expect(asked()).toBeNull();
    telling.end();
    await play(telling.itemId, 4000);
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(asked()).toBe('reply');
  });

  test('requests one reply once both tools have answered', async () => {
    const work = await atWork({}, ['look_up', 'search']);
    const { environment, news, told, saysIt, finish, asked } = work;
    news();
    await environment.advance(LONG_MS);
    await finish();
    await saysIt('There is something new.');
    await environment.advance(LONG_MS);
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(asked()).toBeNull();
    await finish('search');
    await isAnswered(work);
  });

  test("repeats a delivery that the user interrupted and then answers with the tool's result", async () => {
    const work = await atWork();
    const { environment, news, told, model, asked, saysIt, finish } = work;
    news();
    await environment.advance(LONG_MS);
    const telling = model().begin('There is something new.', 4000);
    await environment.advance(500);
    model().speechStarted('u2');
    await environment.advance(1000);
    telling.end('cancelled');
    model().speechEnded('u2', 'what about the weather?');
    await environment.settle();
    expect(told()?.state).toBe('pending');
    await environment.advance(LONG_MS);
    expect(asked()).toContain('Something new.');
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 2 });
    await finish();
    await isAnswered(work);
  });

  test('does not deliver anything while the user is speaking or the utterance is being transcribed', async () => {
    const { environment, news, told, model, asked, saysIt } = await atWork();
    news();
    await environment.advance(1900);
    model().speechStarted('u2');
    await environment.advance(LONG_MS);
    expect(asked()).toBeNull();
    model().speechEnded('u2', 'are you there?');
    await environment.settle();
    expect(asked()).toBeNull();
    await environment.advance(LONG_MS);
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
  });

  test('repeats the delivery for the next client if the client leaves during it', async () => {
    const work = await atWork();
    const { environment, news, told, model, leave, session, saysIt, finish } = work;
    news();
    await environment.advance(LONG_MS);
    const telling = model().begin('There is something new.', 4000);
    await environment.advance(500);
    leave();
    await environment.settle();
    telling.end('cancelled');
    await environment.advance(LONG_MS);
    expect(told()?.state).toBe('pending');
    session.attach();
    await environment.advance(LONG_MS);
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered' });
    await finish();
    await isAnswered(work);
  });

  test('repeats the delivery and then answers on the next connection if the current one is lost', async () => {
    const work = await atWork();
    const { environment, news, told, model, finish, asked, speak } = work;
    news();
    await environment.advance(LONG_MS);
    model().begin('There is something new.', 4000);
    await environment.advance(500);
    model().drop();
    await environment.advance(LONG_MS);
    const said: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const request = asked();
      if (request) {
        said.push(request);
        await speak('Well.');
      }
      if (turn === 1) await finish();
      await environment.advance(LONG_MS);
    }
    expect(told()).toMatchObject({ state: 'delivered' });
    expect(said.filter((words) => words.includes('Something new.'))).toHaveLength(1);
    expect(model().of('tool.answer').at(-1)?.output).toContain('found it');
    expect(work.state().floor).toBe('nobody');
  });

  test('asks a question and receives its answer', async () => {
    const work = await atWork({}, ['look_up'], {
      subagents: {
        ride: {
          script: steps(calls(['ask_user', { question: 'Economy or Premium?', options }]), () =>
            say('Booked.'),
          ),
          config: { interactive: true },
        },
      },
    });
    const { environment, model, question, asked, saysIt, finish, turns } = work;
    model().events.next({
      type: 'tool.called',
      callId: 'call_ride',
      name: 'ride',
      arguments: '{}',
      responseId: 'resp_x',
    });
    await environment.advance(LONG_MS);
    expect(asked()).toContain('Economy or Premium?');
    await saysIt('Economy or Premium?');
    expect(question()?.state).toBe('open');
    await work.say('premium');
    await environment.advance(LONG_MS);
    expect(question()?.state).toBe('answered');
    expect(asked()).toContain('Booked.');
    await saysIt('It is booked.');
    expect(turns()).toBe(0);
    await finish();
    await isAnswered(work);
  });

  test('delivers an urgent notice immediately and continues the turn', async () => {
    const work = await atWork();
    const { environment, session, asked, saysIt, finish, turns } = work;
    await environment.advance(500);
    session.notifyBackground('It burns.', { priority: 'urgent' });
    await environment.settle();
    expect(asked()).toContain('It burns.');
    await saysIt('It burns!');
    await environment.advance(LONG_MS);
    expect(turns()).toBe(0);
    await finish();
    await isAnswered(work);
  });

  test('does not count its filler as a delivery attempt', async () => {
    const { environment, news, told, model, asked, saysIt } = await atWork(
      { speaksOutOfBand: true },
      ['look_up'],
      { filler: { afterMs: 2500, say: ['Wait.'] } },
    );
    await environment.advance(2500);
    expect(asked()).toContain('Wait.');
    news();
    const word = model().begin('Wait.', 300);
    await environment.advance(LONG_MS);
    expect(asked()).toBeNull();
    word.end();
    await environment.advance(LONG_MS);
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
  });

  test.each<[string, Partial<TransportCapabilities>]>([
    ['a model that is asked', {}],
    ['a wire that schedules results', { ...BY_ITSELF, schedulesToolResults: true }],
    ['a model that cannot be cancelled', { cancelsResponses: false, truncatesAudio: false }],
  ])('%s: delivers in the middle of its turn', async (_wire, capabilities) => {
    const work = await atWork(capabilities);
    work.news();
    await work.environment.advance(LONG_MS);
    await work.saysIt('There is something new.');
    expect(work.told()).toMatchObject({ state: 'delivered', attempts: 1 });
    await work.finish();
    await isAnswered(work);
  });

  test.each<[string, Partial<TransportCapabilities>]>([
    ['a wire that makes no response while a call is open', { defersToolResults: false }],
    ['a model that speaks to results by itself', BY_ITSELF],
  ])('%s: delivers after its tool', async (_wire, capabilities) => {
    const { environment, news, told, asked, finish, model, play, saysIt } =
      await atWork(capabilities);
    news();
    await environment.advance(10_000);
    expect(asked()).toBeNull();
    await finish();
    if (capabilities.responds === 'by_itself') await play(model().speakByItself('I found it.'));
    else await saysIt('I found it.');
    await environment.advance(LONG_MS);
    await saysIt('There is something new.');
    expect(told()).toMatchObject({ state: 'delivered', attempts: 1 });
  });
});
