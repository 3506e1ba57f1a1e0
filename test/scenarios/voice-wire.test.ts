// Failures between a voice session and its model: the connection, refused responses, errors, a client that leaves and
// returns, and a slow journal.

import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { gatedJournal } from '../support/journals.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const report = { script: () => say('Sales are up.') };
const asking = (question: string) => ({
  script: steps(calls(['ask_user', { question }]), say('It is done.')),
  config: { interactive: true },
});

describe('a connection that is lost', () => {
  test(
    'retries with an increasing delay, then stops retrying and gives the reason',
    { tags: ['B88'] },
    async () => {
      const transport = new FakeTransport();
      const { start, session, environment, events, errors, state } = voiceTalk({
        transport,
        voice: { maxReconnects: 3 },
      });
      await start();
      transport.autoReady = false;
      const begin = environment.clock.now();
      const at: number[] = [];
      for (let attempt = 1; attempt <= 4; attempt += 1) {
        transport.current.drop(true, 'no route');
        const before = transport.connections.length;
        for (let waited = 0; waited < 30 && transport.connections.length === before; waited += 1) {
          await environment.advance(100);
        }
        at.push(environment.clock.now() - begin);
      }
      const [first = 0, second = 0, third = 0] = at;
      // Between half and all of 1 s, 2 s and 4 s.
      expect(first).toBeGreaterThanOrEqual(500);
      expect(first).toBeLessThanOrEqual(1100);
      expect(second - first).toBeGreaterThanOrEqual(1000);
      expect(third - second).toBeGreaterThanOrEqual(2000);
      expect(transport.connections).toHaveLength(4);
      const outage = {
        code: 'TRANSPORT_LOST',
        message: expect.stringMatching(/fake.*1006.*no route/),
        retryAt: expect.any(Number),
      };
      expect(state()).toMatchObject({ connection: 'resting', outage });
      expect(events).toContainEqual({ type: 'connection.changed', state: 'resting', outage });
      expect(errors).toEqual([
        { error: expect.objectContaining({ message: outage.message }), where: 'connection' },
      ]);
      const closing = session.close();
      await environment.settle();
      await closing;
      expect(events.at(-1)).toEqual({ type: 'session.ended', error: null });
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('keeps work during an outage that outlasts its retries, and delivers the results afterwards', async () => {
    const transport = new FakeTransport();
    let finishWork: () => void = () => {};
    const worked = new Promise<void>((resolve) => (finishWork = resolve));
    const { start, use, model, environment, state, asked, speak, result } = voiceTalk({
      transport,
      voice: { maxReconnects: 2 },
      subagents: {
        report: { script: () => worked.then(() => say('Sales are up.')) },
        ride: asking('Red?'),
      },
    });
    await start();
    await use('report', 'ride');
    transport.autoReady = false;
    for (let failed = 0; failed < 6; failed += 1) {
      model().drop(true, 'HTTP 503');
      const known = transport.connections.length;
      while (transport.connections.length === known) await environment.advance(500);
    }
    model().drop(true, 'HTTP 503');
    await environment.settle();
    finishWork();
    await environment.settle();
    expect(state().subagents.map((subagent) => subagent.state)).toEqual([
      'completed',
      'waiting_for_input',
    ]);
    expect(result()).toMatchObject({ state: 'pending', text: 'Sales are up.' });
    transport.autoReady = true;
    for (let s = 0; s < 300 && state().connection !== 'active'; s += 1)
      await environment.advance(1000);
    expect(state()).toMatchObject({ connection: 'active', outage: null });
    await environment.advance(1000);
    const told: string[] = [];
    // The result follows the question once the user has had time to answer.
    for (let n = 0; n < 6; n += 1) {
      if (asked() !== null) {
        told.push(String(asked()));
        await speak('Red? And sales are up.');
      }
      await environment.advance(1000);
    }
    expect(told.join(' ')).toMatch(/Sales are up/);
    expect(told.join(' ')).toMatch(/Red\?/);
  });

  test('waits for a request after a permanent refusal without losing work', async () => {
    const talk = voiceTalk({ subagents: { ride: asking('Red?') } });
    const { start, use, model, session, environment, errors, state, transport } = talk;
    await start();
    await use('ride');
    const refuse = async (): Promise<void> => {
      model().drop(false, 'HTTP 401: Incorrect API key provided');
      await environment.settle();
      await environment.advance(600_000);
    };
    transport.autoReady = false;
    await refuse();
    const outage = { code: 'TRANSPORT_LOST', retryAt: null };
    expect(state()).toMatchObject({ connection: 'refused', outage });
    expect(state().outage?.message).toMatch(/Incorrect API key provided/);
    expect(errors).toHaveLength(1);
    expect(transport.connections).toHaveLength(1);
    // The user types, the client returns, or the app has new information.
    await session.sendText('hello?');
    await environment.settle();
    expect(transport.connections).toHaveLength(2);
    await refuse();
    talk.leave();
    session.attach();
    await environment.settle();
    expect(transport.connections).toHaveLength(3);
    await refuse();
    transport.autoReady = true;
    session.reconnect();
    session.reconnect();
    await environment.settle();
    expect(transport.connections).toHaveLength(4);
    expect(state()).toMatchObject({ connection: 'active', outage: null });
    expect(state().questions[0]?.state).not.toBe('withdrawn');
    expect(model().of('message.add')).toContainEqual(
      expect.objectContaining({ role: 'user', text: 'hello?' }),
    );
  });

  test.each([
    ['resting', true, 'HTTP 503'],
    ['refused', false, 'HTTP 401: Incorrect API key provided'],
  ] as const)(
    'leaves its session %s and keeps its work if a later process cannot connect',
    async (connection, retryable, reason) => {
      const environment = simulatedEnvironment();
      const journal = memoryJournal();
      const options = {
        environment,
        sessionId: 'ses',
        voice: { maxReconnects: 0 },
        subagents: { report, ride: asking('Red?') },
      };
      const one = voiceTalk({ ...options, runtime: createRuntime({ environment, journal }) });
      await one.start();
      await one.use('ride');
      await one.session.suspend();
      const transport = new FakeTransport();
      transport.autoReady = false;
      const runtime = createRuntime({ environment, journal });
      const { session, state, speak, asked } = voiceTalk({ ...options, transport, runtime });
      const started = session.start();
      await environment.settle();
      transport.current.drop(retryable, reason);
      await started;
      expect(state()).toMatchObject({ connection, subagents: [{ state: 'waiting_for_input' }] });
      // An idle session may be unloaded from memory. It returns in the same state.
      await environment.settle();
      expect(session.isIdle).toBe(true);
      expect(session.nextDueAt === null).toBe(!retryable);
      transport.autoReady = true;
      session.attach();
      await environment.advance(1000);
      expect(state().connection).toBe('active');
      expect(asked()).toMatch(/Red\?/);
      await speak('Red?');
      expect(state().questions[0]).toMatchObject({ state: 'open' });
      await session.suspend();
    },
  );

  test('rejects start() with the reason if it was never established', async () => {
    const transport = new FakeTransport();
    transport.autoReady = false;
    const { session, environment, errors } = voiceTalk({ transport, voice: { maxReconnects: 0 } });
    const started = session.start();
    const failed = started.catch((error: unknown) => error);
    await environment.settle();
    transport.current.drop(true, 'no route');
    expect(await failed).toMatchObject({ code: 'TRANSPORT_LOST' });
    expect(errors).toMatchObject([{ error: { code: 'TRANSPORT_LOST' }, where: 'connection' }]);
  });

  test("reports repeated closes once with the provider's message", async () => {
    const { start, model, environment, errors, transport } = voiceTalk();
    await start();
    const quota = 'You exceeded your current quota, please check your plan and billing details.';
    // Gemini ends each connection in this way after its setup.
    for (let n = 0; n < 3; n += 1) {
      const { events } = model();
      events.next({ type: 'transport.closed', code: 1011, reason: quota, retryable: true });
      events.complete();
      await environment.advance(5000);
    }
    expect(transport.connections).toHaveLength(4);
    expect(errors).toEqual([
      {
        where: 'transport',
        error: expect.objectContaining({
          code: 'TRANSPORT_LOST',
          message: expect.stringContaining(quota),
        }),
      },
    ]);
  });

  test('resets its failure count when it is established again', async () => {
    const { start, model, environment, state, transport } = voiceTalk({
      voice: { maxReconnects: 1 },
    });
    await start();
    for (let round = 0; round < 4; round += 1) {
      model().drop();
      await environment.advance(1000);
      expect(state().connection).toBe('active');
    }
    expect(transport.connections).toHaveLength(5);
  });

  test('replies on the next connection to an utterance that has not had a reply', async () => {
    const { start, say: utter, model, environment, asked } = voiceTalk();
    await start();
    await utter('what is my balance?');
    model().drop();
    await environment.advance(1000);
    expect(asked()).toBe('reply');
    expect(model().commands[0]).toMatchObject({
      type: 'message.add',
      role: 'user',
      text: 'what is my balance?',
    });
  });

  test(
    'passes tool answers given during the outage to the next connection, including errors',
    { tags: ['BW9', 'BW37'] },
    async () => {
      let finish: () => void = () => {};
      const working = new Promise<void>((resolve) => (finish = resolve));
      const {
        start,
        say: utter,
        model,
        environment,
        asked,
      } = voiceTalk({
        tools: [
          {
            name: 'pay',
            description: 'Pays',
            parameters: emptySchema,
            execute: () => working.then(() => Promise.reject(new Error('card declined'))),
          },
        ],
      });
      await start();
      await utter('pay the bill');
      model().call({ callId: 'call_1', name: 'pay', arguments: '{}' });
      await environment.settle();
      model().drop();
      finish();
      await environment.advance(1000);
      expect(model().of('tool.recall')).toEqual([
        { type: 'tool.recall', callId: 'call_1', name: 'pay', arguments: '{}' },
      ]);
      expect(model().of('tool.answer')).toEqual([
        { type: 'tool.answer', callId: 'call_1', output: '{"error":"card declined"}' },
      ]);
      // The model is asked to reply to it.
      expect(asked()).toBe('reply');
    },
  );

  test('TOOL-CALL-1: passes a delivered result to the next connection as the answer to its call', async () => {
    const { start, use, pause, speak, model, environment } = voiceTalk({
      subagents: { report: { ...report, pending: null } },
    });
    await start();
    await use('report');
    await pause();
    await speak('Sales are up.');
    model().drop();
    await environment.advance(1000);
    const [recall, answer] = model().commands.filter(({ type }) => type.startsWith('tool.'));
    expect(recall).toMatchObject({ type: 'tool.recall', callId: 'call_1' });
    expect(answer).toMatchObject({
      type: 'tool.answer',
      callId: 'call_1',
      output: expect.stringContaining('Sales are up.'),
    });
  });

  test('repeats a delivery on the new connection if it is lost during the delivery', async () => {
    const { start, use, pause, speak, play, model, environment, result, asked } = voiceTalk({
      subagents: { report: { ...report, pending: null } },
    });
    await start();
    await use('report');
    await pause();
    const telling = model().begin('Sales', 1000);
    await play(telling.itemId, 300);
    model().drop();
    await environment.advance(1000);
    // The audio that has been received continues to play, and no other speech overlaps it.
    await play(telling.itemId, 1000);
    await pause();
    expect(asked()).toContain('Sales are up.');
    await speak('Sales are up.');
    expect(result()).toMatchObject({ state: 'delivered', attempts: 2 });
    expect(model().of('tool.answer')).toHaveLength(1);
  });
});

describe('a response that is refused', () => {
  test('causes its delivery to be offered again', async () => {
    const { start, use, pause, speak, model, result, environment, errors } = voiceTalk({
      subagents: { report },
    });
    await start();
    await use('report');
    await pause();
    const [request] = model().openRequests;
    model().events.next({
      type: 'transport.error',
      code: 'conversation_already_has_active_response',
      message: 'busy',
      responseKey: request?.responseKey ?? null,
      raw: null,
    });
    await environment.settle();
    expect(errors).toEqual([expect.objectContaining({ where: 'transport' })]);
    // An app that shows the error also shows its code.
    expect(errors[0]?.error).toMatchObject({
      code: 'conversation_already_has_active_response',
      message: 'busy',
    });
    expect(result()).toMatchObject({ state: 'pending', attempts: 1 });
    await pause();
    // The refused request stays refused. The new request is the second one.
    model().begin('', 0).end('failed');
    await speak('Sales are up.');
    expect(result()).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('causes one more request, after which the user is informed', async () => {
    const { start, say: utter, model, environment, state, events } = voiceTalk();
    await start();
    await utter('hello');
    for (const count of [1, 2]) {
      expect(model().of('response.request')).toHaveLength(count);
      model().events.next({
        type: 'transport.error',
        code: 'oops',
        message: 'no',
        responseKey: model().of('response.request').at(-1)?.responseKey ?? null,
        raw: null,
      });
      await environment.settle();
    }
    expect(state().floor).toBe('nobody');
    expect(events.filter(({ type }) => type === 'utterance.unanswered')).toMatchObject([
      { reason: 'no_reply' },
    ]);
    await utter('hello?');
    expect(model().of('response.request')).toHaveLength(3);
  });
});

test("RESPONSES-9: reports a failed response with the provider's message", async () => {
  const { start, say: utter, model, environment, errors, events } = voiceTalk();
  await start();
  await utter('hello');
  const reason = 'insufficient_quota: You exceeded your current quota';
  for (let n = 0; n < 2; n += 1) {
    const responseKey = model().of('response.request').at(-1)?.responseKey ?? null;
    const response = { responseId: `resp_${n}`, responseKey };
    model().events.next({ type: 'response.started', ...response });
    model().events.next({
      type: 'response.ended',
      ...response,
      status: 'failed',
      reason,
      audio: [],
    });
    await environment.settle();
  }
  expect(errors).toMatchObject([
    { error: { code: 'MODEL_ERROR', message: `The response failed: ${reason}` } },
    { error: { code: 'MODEL_ERROR' }, where: 'voice model' },
  ]);
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'utterance.unanswered', reason: 'no_reply' }),
  );
});

describe('an error of the transport', () => {
  test('reaches the app without ending the session', async () => {
    const { start, say: utter, model, errors, events, environment, asked } = voiceTalk();
    await start();
    model().events.next({
      type: 'transport.error',
      code: 'invalid_value',
      message: 'bad item',
      responseKey: null,
      raw: { a: 1 },
    });
    await environment.settle();
    expect(errors).toEqual([
      {
        error: expect.objectContaining({ message: 'bad item', code: 'invalid_value' }),
        where: 'transport',
      },
    ]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'error.reported' }));
    await utter('hello');
    expect(asked()).toBe('reply');
  });

  test('does not crash the process if an adapter sends malformed events', async () => {
    const { start, say: utter, model, errors, environment, asked } = voiceTalk();
    await start();
    model().events.next({ type: 'utterance.transcribed', utteranceId: 'u', final: true } as never);
    model().audio.next({ samples: null, sampleRateHz: 24_000 } as never);
    await environment.settle();
    expect(errors.map(({ where }) => where)).toEqual(['transport', 'transport']);
    await utter('hello');
    expect(asked()).toBe('reply');
  });

  test('counts as a lost connection if the event stream itself fails', async () => {
    const { start, model, environment, state, transport } = voiceTalk();
    await start();
    model().events.error(new Error('the stream broke'));
    await environment.settle();
    expect(state().connection).toBe('reconnecting');
    await environment.advance(1000);
    expect(state().connection).toBe('active');
    expect(transport.connections).toHaveLength(2);
  });

  test('P6: runs a call once even if it is announced twice', async () => {
    let ran = 0;
    const {
      start,
      say: utter,
      model,
      environment,
      asked,
    } = voiceTalk({
      tools: [
        { name: 'pay', description: 'Pays', parameters: emptySchema, execute: () => (ran += 1) },
      ],
      subagents: { ride: asking('Red?') },
    });
    await start();
    await utter('pay');
    const pay = { callId: 'call_1', name: 'pay', arguments: '{}' };
    const ride = { callId: 'call_2', name: 'ride', arguments: '{}' };
    model().call(pay, pay, ride, ride);
    await environment.settle();
    model().events.next({ type: 'tool.called', responseId: 'r', ...pay });
    model().events.next({ type: 'tool.called', responseId: 'r', ...ride });
    await environment.settle();
    expect(ran).toBe(1);
    expect(
      model()
        .of('tool.answer')
        .map(({ callId }) => callId)
        .toSorted(),
    ).toEqual(['call_1', 'call_2']);
    // The session does not wait for an answer that will not come.
    expect(asked()).toBe('reply');
  });
});

describe('TOOL-CALL-1: a result that was dismissed or has been seen on the screen', () => {
  test.each(['dismiss', 'shown'] as const)(
    '%s: answers the call that was waiting for it, without speech',
    async (how) => {
      const {
        start,
        use,
        say: utter,
        model,
        session,
        result,
        asked,
        environment,
        pause,
      } = voiceTalk({
        subagents: { report: { ...report, pending: null } },
      });
      await start();
      await use('report');
      expect(model().of('tool.answer')).toEqual([]);
      session[how](result()?.deliveryId ?? '');
      await environment.settle();
      expect(model().of('tool.answer')).toEqual([
        { type: 'tool.answer', callId: 'call_1', output: expect.stringContaining('Sales are up.') },
      ]);
      await pause();
      expect(asked()).toBeNull();
      await utter('hello');
      expect(asked()).toBe('reply');
    },
  );
});

describe('a client that leaves', () => {
  test('hears a result again if it left during playback, but the model receives the result once', async () => {
    const talk = voiceTalk({ subagents: { report: { ...report, pending: null } } });
    const { start, use, pause, speak, play, model, result, session, environment, asked } = talk;
    await start();
    await use('report');
    await pause();
    const telling = model().begin('Sales', 1000);
    await play(telling.itemId, 300);
    talk.leave();
    telling.end('cancelled');
    await environment.advance(3_600_000);
    expect(result()).toMatchObject({ state: 'pending' });
    expect(asked()).toBeNull();
    session.attach();
    await pause();
    expect(asked()).toContain('Sales are up.');
    await speak('Sales are up.');
    expect(result()).toMatchObject({ state: 'delivered' });
    expect(model().of('tool.answer')).toHaveLength(1);
    await pause();
    await environment.advance(3_600_000);
    expect(asked()).toBeNull();
  });

  test('ends its unfinished utterance immediately', async () => {
    const talk = voiceTalk();
    const { start, model, session, environment, asked, pause, speak, state } = talk;
    await start();
    model().speechStarted('u1');
    talk.leave();
    await environment.settle();
    session.attach();
    await session.sendText('hello');
    await environment.settle();
    expect(asked()).toBe('reply');
    await speak('Hello.');
    session.notifyBackground('The order was sent');
    await pause();
    expect(asked()).toContain('The order was sent');
    expect(state().deliveries[0]).toMatchObject({ attempts: 1 });
  });

  test('hears a notice again after it returns, but the model receives the notice once', async () => {
    const talk = voiceTalk();
    const { start, pause, play, model, session, environment, asked, speak, state } = talk;
    await start();
    session.notifyBackground('The order was sent');
    await pause();
    const telling = model().begin('The order', 1000);
    await play(telling.itemId, 300);
    talk.leave();
    telling.end('cancelled');
    await environment.settle();
    session.attach();
    await pause();
    expect(asked()).toContain('The order was sent');
    await speak('The order was sent.');
    expect(state().deliveries[0]).toMatchObject({ state: 'delivered' });
    const notes = model()
      .of('message.add')
      .filter(({ text }) => text.includes('The order was sent'));
    expect(notes).toHaveLength(1);
  });
});

describe('a slow journal', () => {
  test('RESPONSES-1: never causes two simultaneous response requests', async () => {
    const journal = gatedJournal();
    const { start, use, model, environment, session, result, speak, pause, asked } = voiceTalk({
      journal,
      subagents: { report },
    });
    await start();
    await use('report');
    await environment.advance(299);
    // The user speaks at the very moment when the pause ends.
    journal.shut();
    void session.sendText('hello');
    await settleAll(journal, environment, 0);
    await environment.advance(1);
    await settleAll(journal, environment, 1);
    journal.open();
    await environment.settle();
    const requests = model().of('response.request');
    expect(requests.length - 2).toBe(1);
    await speak('Hello.');
    await pause();
    expect(asked()).toContain('Sales are up.');
    await speak('Sales are up.');
    expect(result()).toMatchObject({ state: 'delivered' });
  });
});

async function settleAll(
  journal: ReturnType<typeof gatedJournal>,
  environment: { settle(): Promise<void> },
  keep: number,
): Promise<void> {
  await environment.settle();
  for (let kept = 0; kept < keep && journal.waiting.length > 0; kept += 1) {
    journal.keepOne();
    await environment.settle();
  }
}

const emptySchema = jsonSchema<never>({ type: 'object', properties: {} });

test('passes the code of a transport error to the app', async () => {
  const { start, model, events, environment } = voiceTalk();
  await start();
  model().events.next({
    type: 'transport.error',
    code: 'rate_limit_exceeded',
    message: 'Too many tokens',
    responseKey: null,
    raw: null,
  });
  await environment.settle();
  expect(events.find(({ type }) => type === 'error.reported')).toMatchObject({
    code: 'rate_limit_exceeded',
    message: expect.stringContaining('Too many tokens'),
  });
});
