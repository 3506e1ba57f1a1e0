// Typical uses of a voice session: background work (with and without an immediate reply, and with questions), and work
// that waits for speech, interrupts it or resumes it.

import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { FakeTransport } from '../support/fake-transport.ts';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const report = { script: () => say('Sales are up.') };
const working = { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } };
const asking = (question: string, config = {}) => ({
  script: steps(calls(['ask_user', { question }]), say(`${question} It is done.`)),
  config: { interactive: true, ...config },
});

describe('a task', () => {
  test(
    'acknowledges immediately and delivers its result once in a pause',
    { tags: ['B1', 'B2', 'B14'] },
    async () => {
      const { start, use, pause, speak, asked, model, state, result, environment, close } =
        voiceTalk({
          subagents: { report },
        });
      await start();
      await use('report');
      expect(model().of('tool.answer')).toEqual([
        {
          type: 'tool.answer',
          callId: 'call_1',
          output: expect.stringContaining('still_in_progress'),
        },
      ]);
      // The result has arrived, but the pause is not over.
      expect(result()).toMatchObject({ state: 'pending' });
      await environment.advance(299);
      expect(asked()).toBeNull();
      await environment.advance(1);
      expect(asked()).toContain('Sales are up.');
      await speak('By the way, sales are up.');
      expect(result()).toMatchObject({ state: 'delivered', grade: 'played', attempts: 1 });
      await pause();
      await environment.advance(3_600_000);
      expect(asked()).toBeNull();
      expect(model().of('tool.answer')).toHaveLength(1);
      expect(state().transcript.map(({ role, text }) => `${role}: ${text}`)).toEqual([
        'user: use report',
        'assistant: I am on it.',
        'assistant: By the way, sales are up.',
      ]);
      await close();
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test(
    'answers its call with the result in a pause if there is no pending message',
    { tags: ['B15'] },
    async () => {
      const { start, use, pause, speak, asked, model, result } = voiceTalk({
        subagents: { report: { ...report, pending: null } },
      });
      await start();
      await use('report');
      expect(model().of('tool.answer')).toEqual([]);
      expect(asked()).toBeNull();
      await pause();
      expect(model().of('tool.answer')).toEqual([
        { type: 'tool.answer', callId: 'call_1', output: expect.stringContaining('Sales are up.') },
      ]);
      await speak('Sales are up.');
      expect(result()).toMatchObject({ state: 'delivered' });
    },
  );

  test(
    'delivers its result after the user has spoken and the playout has ended',
    { tags: ['B56', 'B58'] },
    async () => {
      const { start, use, pause, play, asked, model, environment } = voiceTalk({
        subagents: { report },
      });
      await start();
      await use('report');
      model().speechStarted('u1');
      await environment.advance(5000);
      expect(asked()).toBeNull();
      model().speechEnded('u1', 'hello');
      await environment.settle();
      expect(asked()).toBe('reply');
      const item = model().speak('Hello to you, too.', 4000);
      await environment.advance(2000);
      await play(item, 2000);
      await environment.advance(2000);
      expect(asked()).toBeNull();
      await play(item, 4000);
      await pause();
      expect(asked()).toContain('Sales are up.');
    },
  );

  test('informs only the lead agent if it is cancelled', async () => {
    const { start, use, pause, asked, model, session } = voiceTalk({
      subagents: { work: working },
    });
    await start();
    await use('work');
    session.subagents.cancel(session.subagents.list()[0]?.id ?? '');
    await pause();
    expect(asked()).toBeNull();
    expect(
      model()
        .of('message.add')
        .map(({ text }) => text),
    ).toEqual([
      expect.stringContaining('was cancelled'),
      expect.stringContaining('"task":"work","arguments":{}'),
    ]);
  });

  test('delivers its error if it fails', { tags: ['B17'] }, async () => {
    const { start, use, pause, asked } = voiceTalk({
      subagents: { report: { script: () => ({ error: new Error('no such quarter') }) } },
    });
    await start();
    await use('report');
    await pause();
    expect(asked()).toContain('no such quarter');
  });
});

describe('two subagents that both ask', () => {
  test('ask in sequence and each receive their own answer', async () => {
    const {
      start,
      use,
      pause,
      speak,
      say: utter,
      asked,
      state,
      question,
    } = voiceTalk({
      subagents: { red: asking('Red?'), blue: asking('Blue?') },
    });
    await start();
    await use('red', 'blue');
    await pause();
    expect(asked()).toContain('Red?');
    expect(state().questions.map(({ state: now }) => now)).toEqual(['presenting', 'queued']);
    await speak('Which red?');
    await utter('a deep one');
    await pause();
    // A question is also spoken before a result that is waiting.
    expect(asked()).toContain('Blue?');
    await speak('Which blue?');
    await utter('sky blue');
    expect(question()).toMatchObject({ state: 'answered', answer: 'sky blue' });
    await pause();
    expect(asked()).toContain('Red? It is done.');
    await speak('Red is done.');
    await pause();
    expect(asked()).toContain('Blue? It is done.');
  });
});

/** Every sound from the user is an interruption at once. */
const atOnce = { falseInterruptionMs: 0 };

describe('P5: an interruption by the user', () => {
  test("stops speech immediately, keeps what was heard in the model's memory and does not cancel work", async () => {
    const { start, use, play, model, state, environment, events } = voiceTalk({
      subagents: { work: working },
      voice: atOnce,
    });
    await start();
    await use('work');
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin('Once upon a time there was a king.', 8000);
    await play(story.itemId, 3000);
    model().speechStarted('barge');
    await environment.settle();
    expect(model().of('response.cancel')).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'playout.clear')).toHaveLength(1);
    await play(story.itemId, 3100);
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId: story.itemId, playedMs: 3100 },
    ]);
    expect(state().subagents[0]?.state).toBe('running');
    const said = state().transcript.find(({ id }) => id === story.itemId);
    expect(said).toMatchObject({ text: 'Once upon a', interrupted: true, final: true });
  });

  test.each([
    ['むかしむかし、あるところに王様がいました。', 'むかしむかし'],
    ['从前有一位国王，他住在山上。', '从前有'],
    ['กาลครั้งหนึ่งมีพระราชาองค์หนึ่ง', 'กาล'],
  ])('determines which part was heard in a script without spaces: %s', async (text, heardFirst) => {
    const { start, play, model, state, environment } = voiceTalk({ voice: atOnce });
    await start();
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin(text, 8000);
    await play(story.itemId, 4000);
    model().speechStarted('barge');
    await environment.settle();
    await play(story.itemId, 4000);
    const said = state().transcript.find(({ id }) => id === story.itemId);
    expect(said?.text.startsWith(heardFirst)).toBe(true);
    expect(text.startsWith(said?.text ?? '')).toBe(true);
    expect(said?.text.length).toBeLessThan(text.length);
  });

  test('cancels only a subagent with `onBargeIn: cancel`', async () => {
    const { start, use, play, model, state, environment } = voiceTalk({
      subagents: {
        brief: { ...working, config: { ...working.config, onBargeIn: 'cancel' } },
        work: working,
      },
      voice: atOnce,
    });
    await start();
    await use('brief', 'work');
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin('Once upon a time', 8000);
    await play(story.itemId, 3000);
    model().speechStarted('barge');
    await environment.settle();
    expect(state().subagents.map((subagent) => subagent.state)).toEqual(['cancelled', 'running']);
  });

  test('does not interrupt anything while the model is silent', async () => {
    const { start, use, model, state, environment, events } = voiceTalk({
      subagents: { brief: { ...working, config: { ...working.config, onBargeIn: 'cancel' } } },
    });
    await start();
    await use('brief');
    model().speechStarted('u1');
    await environment.settle();
    expect(state().subagents[0]?.state).toBe('running');
    expect(model().of('response.cancel')).toEqual([]);
    expect(events.filter(({ type }) => type === 'playout.clear')).toEqual([]);
  });

  test('uses the last playout report of a client that stops reporting', async () => {
    const { start, play, model, environment } = voiceTalk({ voice: atOnce });
    await start();
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin('Once upon a time', 8000);
    await play(story.itemId, 3000);
    model().speechStarted('barge');
    await environment.advance(299);
    expect(model().of('playout.truncate')).toEqual([]);
    await environment.advance(1);
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId: story.itemId, playedMs: 3000 },
    ]);
  });

  test('drops the rest of the speech even if the transport cannot cancel or truncate', async () => {
    const transport = new FakeTransport({ cancelsResponses: false, truncatesAudio: false });
    const { start, play, model, environment, session } = voiceTalk({ transport });
    const heard: string[] = [];
    session.audioOut.subscribe(({ itemId }) => heard.push(itemId ?? ''));
    await start();
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin('Once upon a time', 4000);
    await play(story.itemId, 3000);
    model().speechStarted('barge');
    await environment.settle();
    model().audio.next({
      samples: new Int16Array(24_000),
      sampleRateHz: 24_000,
      itemId: story.itemId,
      responseId: story.responseId,
    });
    await environment.advance(1000);
    expect(heard).toEqual([story.itemId]);
    expect(model().of('response.cancel')).toEqual([]);
    expect(model().of('playout.truncate')).toEqual([]);
    // The next answer is requested when the model has finished.
    model().speechEnded('barge', 'stop');
    await environment.settle();
    expect(model().openRequests).toEqual([]);
    story.end();
    await environment.settle();
    expect(model().openRequests).toHaveLength(1);
  });
});

describe('P4: a delivery and its playout', () => {
  test('SPEECH-3: repeats soon after playout has stalled', async () => {
    const { start, session, pause, play, speak, model, asked, state, environment } = voiceTalk();
    await start();
    session.notifyBackground('The mail has come');
    await pause();
    await play(model().speak('There is mail.'), 300);
    expect(state().deliveries).toMatchObject([{ state: 'playing' }]);
    await environment.advance(7000);
    expect(asked()).toContain('The mail has come');
    await speak('There is mail.');
    expect(state().deliveries).toMatchObject([{ state: 'delivered', attempts: 2 }]);
  });

  test.each([
    [890, 'pending'],
    [899, 'pending'],
    [900, 'delivered'],
    [1000, 'delivered'],
  ])(
    'counts a 1000 ms result that is interrupted after %i ms as %s',
    async (playedMs, expected) => {
      const { start, use, pause, play, model, result, environment } = voiceTalk({
        subagents: { report },
        voice: atOnce,
      });
      await start();
      await use('report');
      await pause();
      const item = model().speak('Sales are up.', 1000);
      await play(item, playedMs - 50);
      model().speechStarted('barge');
      await environment.settle();
      // The position at which the client stopped.
      await play(item, playedMs);
      expect(result()).toMatchObject({ state: expected });
    },
  );

  test('does not count as heard after an abnormal end, however much of it was played', async () => {
    const { start, use, pause, play, model, result, asked, environment } = voiceTalk({
      subagents: { report },
    });
    await start();
    await use('report');
    await pause();
    const { itemId, end } = model().begin('Sales are', 1000);
    await play(itemId, 1000);
    end('failed');
    await environment.settle();
    expect(result()).toMatchObject({ state: 'pending', attempts: 1 });
    await pause();
    expect(asked()).toContain('Sales are up.');
    expect(asked()).toContain('say it again');
  });

  test('does not count an attempt during which the client has left', async () => {
    const talk = voiceTalk({ subagents: { report } });
    const { start, use, pause, play, model, result, environment } = talk;
    await start();
    await use('report');
    await pause();
    const { itemId } = model().begin('Sales are', 1000);
    await play(itemId, 500);
    expect(result()).toMatchObject({ state: 'playing', attempts: 1 });
    talk.leave?.();
    await environment.settle();
    expect(result()).toMatchObject({ state: 'pending', attempts: 0 });
  });

  test('does not count as heard if there is no audio', async () => {
    const { start, use, pause, model, result, environment } = voiceTalk({ subagents: { report } });
    await start();
    await use('report');
    await pause();
    model().begin('Sales are up.', 0).end();
    await environment.settle();
    expect(result()).toMatchObject({ state: 'pending', attempts: 1 });
  });

  test('repeats if no client reports playout and then becomes a card', async () => {
    const { start, use, pause, model, result, environment, asked, session } = voiceTalk({
      subagents: { report },
    });
    await start();
    await use('report');
    for (const attempt of [1, 2, 3]) {
      await pause();
      expect(asked()).toContain('Sales are up.');
      model().speak('Sales are up.');
      await environment.advance(15_000);
      expect(result()).toMatchObject({ attempts: attempt });
    }
    expect(result()).toMatchObject({ state: 'pending', card: true });
    await environment.advance(3_600_000);
    expect(asked()).toBeNull();
    // The user sees the card, and that is enough.
    session.shown(result()?.deliveryId ?? '');
    await environment.settle();
    expect(result()).toMatchObject({ state: 'delivered', grade: 'shown' });
  });

  test('keeps the session running if playout is never reported', async () => {
    const {
      start,
      say: utter,
      model,
      result,
      environment,
      asked,
    } = voiceTalk({
      subagents: { report },
    });
    await start();
    await utter('use report');
    model().call({ callId: 'call_1', name: 'report', arguments: '{}' });
    await environment.settle();
    model().speak('I am on it.', 1000);
    await environment.advance(5999);
    expect(asked()).toBeNull();
    for (let second = 0; second < 120 && result()?.card !== true; second += 1) {
      await environment.advance(1000);
      if (asked() !== null) model().speak('Sales are up.', 1000);
    }
    expect(result()).toMatchObject({ state: 'pending', card: true, attempts: 3 });
  });

  test.each(['speaks', 'types', 'comes back'])(
    'delivers a card again when the user %s',
    async (how) => {
      const talk = voiceTalk({ subagents: { report }, voice: { maxAttempts: 1 } });
      const {
        start,
        use,
        pause,
        speak,
        say: utter,
        model,
        result,
        asked,
        session,
        environment,
      } = talk;
      await start();
      await use('report');
      await pause();
      model().begin('Sales', 0).end('failed');
      await environment.settle();
      expect(result()).toMatchObject({ card: true });
      if (how === 'comes back') {
        talk.leave();
        await environment.settle();
        session.attach();
      } else {
        if (how === 'speaks') await utter('hello');
        else await session.sendText('hello');
        await environment.settle();
        await speak('Hello.');
      }
      await pause();
      expect(asked()).toContain('Sales are up.');
      await speak('Sales are up.');
      expect(result()).toMatchObject({ state: 'delivered' });
    },
  );
});

describe('urgent deliveries', () => {
  test('skip the wait for a pause but do not interrupt the user', { tags: ['B59'] }, async () => {
    const { start, session, asked, model, environment } = voiceTalk();
    await start();
    model().speechStarted('u1');
    session.notifyBackground('Fire!', { priority: 'urgent' });
    await environment.advance(2000);
    expect(asked()).toBeNull();
    model().speechEnded('u1', '');
    await environment.settle();
    expect(asked()).toContain('Fire!');
  });

  test(
    'wait for the end of the speech if the transport cannot stop speech',
    { tags: ['B59'] },
    async () => {
      const transport = new FakeTransport({ cancelsResponses: false });
      const { start, session, asked, model, play, environment, speak } = voiceTalk({ transport });
      await start();
      await voiceReply(model, 'tell me a story', environment);
      const story = model().begin('Once upon a time', 4000);
      await play(story.itemId, 1000);
      session.notifyBackground('Fire!', { priority: 'urgent' });
      await environment.settle();
      expect(model().of('response.cancel')).toEqual([]);
      story.end();
      await play(story.itemId, 4000);
      expect(asked()).toContain('Fire!');
      await speak('Fire!');
    },
  );

  test('do not wait for a slow tool', async () => {
    let finish: () => void = () => {};
    const {
      start,
      say: utter,
      session,
      asked,
      model,
      environment,
      speak,
      pause,
    } = voiceTalk({
      tools: [slowTool(new Promise((resolve) => (finish = () => resolve('sunny'))))],
    });
    await start();
    await utter('how is the weather?');
    model().call({ callId: 'call_1', name: 'weather', arguments: '{}' });
    await environment.settle();
    session.notifyBackground('The order was sent');
    await pause();
    expect(asked()).toBeNull();
    session.notifyBackground('Fire!', { priority: 'urgent' });
    await environment.settle();
    expect(asked()).toContain('Fire!');
    await speak('There is a fire!');
    await pause();
    expect(asked()).toBeNull();
    finish();
    await environment.settle();
    expect(asked()).toBe('reply');
    await speak('It is sunny.');
    await pause();
    expect(asked()).toContain('The order was sent');
  });

  test('resume the answer that they have interrupted', async () => {
    const { start, session, asked, model, environment, speak, say: utter } = voiceTalk();
    await start();
    await utter('what is my balance?');
    const answer = model().begin('Your', 0);
    session.notifyBackground('Fire!', { priority: 'urgent' });
    await environment.settle();
    answer.end('cancelled');
    await environment.settle();
    expect(asked()).toContain('Fire!');
    await speak('There is a fire!');
    expect(asked()).toBe('reply');
  });
});

describe('messages and utterances in a voice session', () => {
  test('reach the lead agent when typed and stop its speech', async () => {
    const { start, session, asked, model, play, environment, state } = voiceTalk();
    await start();
    await voiceReply(model, 'tell me a story', environment);
    const story = model().begin('Once upon a time', 4000);
    await play(story.itemId, 1000);
    await session.sendText('stop, please');
    await environment.settle();
    expect(model().of('message.add').at(-1)).toMatchObject({ role: 'user', text: 'stop, please' });
    expect(model().of('response.cancel')).toHaveLength(1);
    story.end('cancelled');
    await environment.settle();
    expect(asked()).toBe('reply');
    expect(state().transcript.at(-1)).toMatchObject({ role: 'user', text: 'stop, please' });
  });

  test('do not stop speech if typed while the user is speaking, and get a reply only afterwards', async () => {
    const { start, session, asked, model, environment, state } = voiceTalk();
    await start();
    model().speechStarted('u1');
    session.notifyBackground('The order was sent');
    await session.sendText('hello');
    await environment.advance(2000);
    expect(state().floor).toBe('user');
    expect(asked()).toBeNull();
    model().speechEnded('u1', 'and good morning');
    await environment.settle();
    expect(asked()).toBe('reply');
    expect(state().deliveries[0]).toMatchObject({ attempts: 0 });
  });

  test('do not stop speech if transcribed after the next utterance has started', async () => {
    const { start, session, asked, model, environment, state } = voiceTalk();
    await start();
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    model().speechStarted('u2');
    session.notifyBackground('The order was sent');
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'well',
      final: true,
    });
    await environment.advance(2000);
    expect(state().floor).toBe('user');
    expect(asked()).toBeNull();
    model().speechEnded('u2', 'what do you think?');
    await environment.settle();
    // A single reply to both.
    expect(model().openRequests).toHaveLength(1);
    expect(asked()).toBe('reply');
  });

  test(
    'answer an open question without the lead agent if typed',
    { tags: ['B51', 'B55'] },
    async () => {
      const { start, use, pause, speak, session, model, question, environment } = voiceTalk({
        subagents: { ride: asking('Red?') },
      });
      await start();
      await use('ride');
      await pause();
      await speak('Red?');
      const before = model().of('response.request').length;
      await session.sendText('a deep red');
      await environment.settle();
      expect(question()).toMatchObject({ state: 'answered', answer: 'a deep red' });
      expect(model().of('response.request')).toHaveLength(before);
      expect(
        model()
          .of('message.add')
          .filter(({ role, isNote }) => role === 'user' && !isNote),
      ).toEqual([]);
    },
  );

  test('disappear if they are empty, for example after a cough', async () => {
    const { start, say: utter, model, asked, state } = voiceTalk();
    await start();
    const id = await utter('  ');
    expect(asked()).toBeNull();
    expect(
      model()
        .of('item.delete')
        .map(({ itemId }) => itemId),
    ).toEqual([id]);
    expect(state().transcript.filter(({ final }) => final)).toEqual([]);
    expect(state().floor).toBe('nobody');
  });

  test('have no effect if they could not be transcribed', async () => {
    const { start, use, pause, asked, model, errors, environment } = voiceTalk({
      subagents: { report },
    });
    await start();
    await use('report');
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    model().events.next({
      type: 'utterance.untranscribed',
      utteranceId: 'u1',
      reason: 'too quiet',
    });
    await environment.settle();
    expect(errors).toEqual([expect.objectContaining({ where: 'transcription' })]);
    await pause();
    expect(asked()).toContain('Sales are up.');
  });

  test('hold the floor for a limited time if they never arrive', async () => {
    const { start, use, pause, asked, model, environment, state } = voiceTalk({
      subagents: { report },
    });
    await start();
    await use('report');
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    await environment.advance(4999);
    expect(state().floor).toBe('user');
    await pause();
    expect(asked()).toContain('Sales are up.');
  });

  test('do not block the reply to a tool result if they never arrive', async () => {
    let finish: () => void = () => {};
    const {
      start,
      say: utter,
      asked,
      model,
      environment,
    } = voiceTalk({
      tools: [slowTool(new Promise((resolve) => (finish = () => resolve('sunny'))))],
    });
    await start();
    await utter('how is the weather?');
    model().call({ callId: 'call_1', name: 'weather', arguments: '{}' });
    await environment.settle();
    model().speechStarted('u1');
    finish();
    await environment.settle();
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    await environment.advance(4999);
    expect(asked()).toBeNull();
    await environment.advance(1);
    expect(asked()).toBe('reply');
  });

  test(
    'TURNS-2: delay every request until their addressee is known',
    { tags: ['B65'] },
    async () => {
      let finish: () => void = () => {};
      const {
        start,
        say: utter,
        use,
        pause,
        speak,
        asked,
        model,
        question,
        environment,
      } = voiceTalk({
        tools: [slowTool(new Promise((resolve) => (finish = () => resolve('sunny'))))],
        subagents: { ride: asking('Red?') },
      });
      await start();
      await use('ride');
      await pause();
      await speak('Red?');
      await utter('what is the weather like?');
      model().call({ callId: 'call_w', name: 'weather', arguments: '{}' });
      await environment.settle();
      model().speechStarted('u1');
      model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
      // The reply about the weather would also answer this utterance.
      finish();
      await environment.settle();
      expect(asked()).toBeNull();
      model().events.next({
        type: 'utterance.transcribed',
        utteranceId: 'u1',
        text: 'a deep red',
        final: true,
      });
      await environment.settle();
      expect(question()).toMatchObject({ state: 'answered', answer: 'a deep red' });
      expect(
        model()
          .of('item.delete')
          .map(({ itemId }) => itemId),
      ).toEqual(['u1']);
      expect(asked()).toBe('reply');
    },
  );

  test(
    'appear while still partial and are then replaced by the final text',
    { tags: ['B63'] },
    async () => {
      const { start, model, state, environment } = voiceTalk();
      await start();
      model().speechStarted('u1');
      for (const text of ['book', 'book me a', 'book me a ride'])
        model().events.next({
          type: 'utterance.transcribed',
          utteranceId: 'u1',
          text,
          final: false,
        });
      await environment.settle();
      expect(state().transcript).toEqual([
        expect.objectContaining({ id: 'u1', role: 'user', text: 'book me a ride', final: false }),
      ]);
      model().speechEnded('u1', 'Book me a ride.');
      await environment.settle();
      expect(state().transcript).toEqual([
        expect.objectContaining({ id: 'u1', text: 'Book me a ride.', final: true }),
      ]);
    },
  );
});

test('leaves no timer running if it closes in mid-sentence', async () => {
  const { start, play, model, environment, session } = voiceTalk();
  await start();
  await voiceReply(model, 'tell me a story', environment);
  const story = model().begin('Once upon a time', 8000);
  await play(story.itemId, 3000);
  model().speechStarted('barge');
  await environment.settle();
  const connection = model();
  await session.close();
  await environment.settle();
  expect(connection.isClosed).toBe(true);
  expect(environment.pendingTimers).toBe(0);
  const before = connection.commands.length;
  await environment.advance(60_000);
  expect(connection.commands).toHaveLength(before);
});

/** Makes the user say something to the lead agent, which is asked to reply. */
async function voiceReply(
  model: ReturnType<typeof voiceTalk>['model'],
  text: string,
  environment: ReturnType<typeof voiceTalk>['environment'],
): Promise<void> {
  model().utterance(text);
  await environment.settle();
  expect(model().openRequests).toHaveLength(1);
}

function slowTool(result: Promise<string>) {
  return {
    name: 'weather',
    description: 'Tells the weather',
    parameters: jsonSchema<never>({ type: 'object', properties: {} }),
    execute: () => result,
  };
}
