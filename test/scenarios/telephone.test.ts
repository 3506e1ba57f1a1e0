// A whole conversation by telephone, with the caller on a Twilio Media Stream, a voice session, and a voice model.
// Twilio's marks prove what the caller heard (P4).

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test, describe } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { acceptTwilioCall } from '../../src/adapters/twilio-media-streams/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { FakeTwilio } from '../adapters/twilio-media-streams/support/fake-twilio.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { lexicon, wordsModel } from '../support/words-model.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const report = { report: { script: steps(say('42 sales')) } };

async function onThePhone(options: VoiceTalkOptions) {
  const talk = voiceTalk(options);
  const { environment, session } = talk;
  const ring = async () => {
    const twilio = new FakeTwilio(environment);
    const accepted = acceptTwilioCall(twilio, { environment });
    twilio.start();
    const call = await accepted;
    call.connect(session);
    return { twilio, call };
  };
  const first = await ring();
  await session.start();
  await environment.settle();
  /** The caller makes the request, the subagent starts to work, and the lead agent reports that. */
  const use = async (name: string) => {
    await talk.say(`use ${name}`);
    talk.model().call({ callId: 'call_1', name, arguments: '{}' });
    await environment.settle();
    talk.model().speak('I am on it.');
    await environment.advance(1500);
  };
  return { ...talk, ...first, ring, use };
}

test("passes the caller's audio to the model at the model's rate", async () => {
  const { twilio, model } = await onThePhone({});
  for (let count = 0; count < 50; count += 1) twilio.say(1004);
  const samples = model().heard.flatMap((frame) => [...frame.samples]);
  expect(model().heard.every(({ sampleRateHz }) => sampleRateHz === 24_000)).toBe(true);
  expect(samples.length).toBeGreaterThan(23_500);
  expect(samples[12_000]).toBeGreaterThan(950);
});

describe('P4: a result', () => {
  test('counts as heard after the telephone has played it, not after it has been sent', async () => {
    const { use, model, result, environment, asked, twilio } = await onThePhone({
      subagents: report,
    });
    await use('report');
    expect(asked()).toContain('42 sales');
    model().speak('42 sales.', 2000);
    await environment.advance(1000);
    expect(result()).toMatchObject({ state: 'playing' });
    await environment.advance(1500);
    expect(result()).toMatchObject({ state: 'delivered', grade: 'played' });
    expect(twilio.heardMs).toBeGreaterThan(2900);
  });

  test('does not count as heard if the caller interrupts it, even if all marks return', async () => {
    const { use, model, result, environment, twilio, asked, events } = await onThePhone({
      subagents: report,
    });
    await use('report');
    const itemId = model().speak('42 sales.', 900);
    await environment.advance(450);
    const marks = twilio.of('mark').length;
    model().speechStarted('barge');
    // The user is heard at once, before the words are known.
    expect(twilio.sent.at(-1)).toMatchObject({ event: 'clear' });
    await environment.settle();
    expect(twilio.of('mark')).toHaveLength(marks);
    // The speech is longer than a backchannel.
    await environment.advance(2000);
    expect(model().of('playout.truncate')).toEqual([
      { type: 'playout.truncate', itemId, playedMs: 400 },
    ]);
    expect(events).toContainEqual({ type: 'speech.interrupted', itemId, playedMs: 400 });
    expect(result()).toMatchObject({ state: 'pending' });
    model().speechEnded('barge', 'wait');
    await environment.settle();
    model().speak('Sure.');
    await environment.advance(1500);
    expect(asked()).toContain('say it again');
    model().speak('42 sales.', 900);
    await environment.advance(1000);
    expect(result()).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('waits if the caller hangs up and is delivered in the next call', async () => {
    const { use, model, result, environment, twilio, call, ring, session, asked } =
      await onThePhone({ subagents: report });
    await use('report');
    model().speak('42 sales.', 2000);
    await environment.advance(500);
    twilio.stop();
    await expect(call.ended).resolves.toBe('stopped');
    expect(session.isAttached).toBe(false);
    await environment.advance(10_000);
    expect(result()).toMatchObject({ state: 'pending' });
    const second = await ring();
    await environment.advance(400);
    expect(asked()).toContain('42 sales');
    model().speak('42 sales.', 500);
    await environment.advance(600);
    expect(result()).toMatchObject({ state: 'delivered' });
    expect(second.twilio.heardMs).toBeGreaterThan(480);
  });
});

describe('a question', () => {
  const options = [
    { id: 'economy', label: 'Economy' },
    { id: 'premium', label: 'Premium' },
  ];
  const ride = {
    ride: {
      script: steps(
        calls(['ask_user', { question: 'Economy or Premium?', options }]),
        ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
      ),
      config: { interactive: true },
    },
  };

  test("accepts an option's key and stops the speech", async () => {
    const { use, model, environment, twilio, question, state } = await onThePhone({
      subagents: ride,
    });
    await use('ride');
    model().speak('Economy or Premium?', 2000);
    await environment.advance(800);
    twilio.press('2');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Premium' });
    expect(twilio.of('clear').length).toBeGreaterThan(0);
    expect(state().subagents[0]?.outcome).toMatchObject({ status: 'completed' });
  });

  test('treats other keys as typed text', async () => {
    const { use, model, environment, twilio, question, state } = await onThePhone({
      subagents: ride,
    });
    await use('ride');
    model().speak('Economy or Premium?', 2000);
    await environment.advance(2500);
    twilio.press('9');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'open', answer: null });
    expect(state().transcript.at(-1)).toMatchObject({ role: 'user', text: '9' });
  });
});

describe('a question to a caller who speaks and presses keys', () => {
  const options = [
    { id: 'nine', label: 'Monday at 9:30' },
    { id: 'four', label: 'Monday at 16:00' },
    { id: 'fri', label: 'Friday at 16:00' },
  ];
  const dentist = {
    script: steps(
      calls(['ask_user', { question: 'Monday at 9:30, at 16:00, or Friday at 16:00?', options }]),
      ({ results }) => say(`Got ${JSON.stringify(results[0])}`),
    ),
    config: { interactive: true },
  };
  const ran: string[] = [];
  const payer = {
    script: steps(calls(['pay_invoice', {}]), say('Done.')),
    config: {
      tools: { pay_invoice: simpleTool(() => ran.push('paid'), { needsApproval: true }) },
    },
  };

  test('accepts a spoken time of day that matches an option', async () => {
    const { use, model, environment, question } = await onThePhone({ subagents: { dentist } });
    await use('dentist');
    model().speak('Monday at 9:30, at 16:00, or Friday at 16:00?', 3000);
    await environment.advance(2500);
    model().speechStarted('over');
    await environment.advance(600);
    model().speechEnded('over', 'monday at four in the afternoon');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Monday at 16:00' });
  });

  test('P3: remains open after an answer that matches two options until a key selects one', async () => {
    const { use, model, environment, twilio, question } = await onThePhone({
      subagents: { dentist },
    });
    await use('dentist');
    model().speak('Monday at 9:30, at 16:00, or Friday at 16:00?', 3000);
    await environment.advance(3500);
    model().utterance('at four');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'open', answer: null });
    twilio.press('3');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Friday at 16:00' });
  });

  test('P3, KEYPAD-1: accepts only a simple yes as consent, not a key or a qualified yes', async () => {
    const { use, model, environment, twilio, question } = await onThePhone({
      subagents: { payer },
      agent: { language: 'de' },
    });
    await use('payer');
    model().speak('Darf ich die Rechnung bezahlen?', 1500);
    await environment.advance(2000);
    twilio.press('1');
    twilio.press('#');
    await environment.settle();
    model().utterance('ja wenn sie stimmt');
    await environment.settle();
    expect([ran, question()]).toMatchObject([[], { answer: null }]);
    model().utterance('ja bezahl sie');
    await environment.settle();
    expect(ran).toEqual(['paid']);
  });
});

describe('spoken consent from a caller', () => {
  /** Starts a call in which a subagent wants to pay the same bill twice and the caller has heard its question. */
  async function asked(options: Partial<VoiceTalkOptions> = {}) {
    const paid: string[] = [];
    const pay = simpleTool(() => paid.push('paid'), { needsApproval: true });
    const payer = {
      script: steps(calls(['pay', { bill: 7 }]), calls(['pay', { bill: 7 }]), say('It is over.')),
      config: { tools: { pay } },
    };
    const talk = await onThePhone({ subagents: { payer }, ...options });
    const { use, model, environment, question } = talk;
    /** The voice model asks the requested question, and the telephone plays it to the end. */
    const hears = async (words: string) => {
      await environment.advance(1500);
      model().speak(words, 1500);
      await environment.advance(2500);
    };
    const says = async (words: string) => {
      model().utterance(words);
      await environment.settle();
    };
    await use('payer');
    await hears('May I pay the bill?');
    expect(question()).toMatchObject({ state: 'open' });
    return { ...talk, paid, hears, says };
  }

  test('runs the call after a yes, and asks about the next one', async () => {
    const { says, hears, paid, state } = await asked();
    await says('Yes, please.');
    expect(paid).toEqual(['paid']);
    await hears('May I pay the bill?');
    expect(state().questions.map((one) => one.state)).toEqual(['answered', 'open']);
  });

  test('runs nothing after a no', async () => {
    const { says, paid, state, environment } = await asked();
    await says('No.');
    await environment.advance(2000);
    expect(paid).toEqual([]);
    expect(state().questions[0]).toMatchObject({ state: 'answered', answer: 'No.' });
  });

  test('P3: accepts "don\'t ask again" only after the caller has heard the read-back and said yes again', async () => {
    const { says, hears, paid, state, twilio, environment, ...talk } = await asked();
    await says("Yes, and don't ask me again.");
    expect(paid).toEqual([]);
    // The caller has not heard any of it yet.
    await says('Yes.');
    expect(paid).toEqual([]);
    await environment.advance(1500);
    expect(talk.asked()).toContain('exactly this again without asking');
    const heardBefore = twilio.heardMs;
    await hears('To be sure: may I pay it, and again without asking?');
    expect(twilio.heardMs).toBeGreaterThan(heardBefore + 1400);
    await says('Yes.');
    expect(paid).toEqual(['paid', 'paid']);
    expect(state().questions).toHaveLength(1);
  });

  test('reads back a yes in Portuguese, and then runs the call', async () => {
    const consentModel = wordsModel(lexicon({ yes: ['sim'], no: ['não'] })).model;
    const { says, hears, paid } = await asked({ agent: { language: 'pt' }, consentModel });
    await says('sim');
    expect(paid).toEqual([]);
    await hears('Só para confirmar: posso pagar a conta?');
    await says('sim');
    expect(paid).toEqual(['paid']);
  });

  test('runs nothing after a no in Portuguese', async () => {
    const consentModel = wordsModel(lexicon({ yes: ['sim'], no: ['não'] })).model;
    const { says, paid, state } = await asked({ agent: { language: 'pt' }, consentModel });
    await says('não');
    expect(paid).toEqual([]);
    expect(state().questions[0]).toMatchObject({ state: 'answered', answer: 'não' });
  });
});

test('ends the call when the session ends', async () => {
  const { session, environment, twilio, call } = await onThePhone({});
  const closed = session.close();
  await environment.advance(60_000);
  await closed;
  await expect(call.ended).resolves.toBe('hung_up');
  expect(twilio.closedWith).toEqual({ code: 1000, reason: 'hung_up' });
});

test('connects a call from Twilio to a session over a real socket', async () => {
  const talk = voiceTalk({ environment: nodeEnvironment() });
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: 65_536 });
  await once(server, 'listening');
  const arrived = new Promise<string>((resolve) => {
    server.on('connection', (socket) => {
      void acceptTwilioCall(socket, { environment: nodeEnvironment() }).then(async (call) => {
        call.connect(talk.session);
        await talk.session.start();
        resolve(call.callSid);
        await call.ended;
        await talk.session.close();
      });
    });
  });
  const { port } = server.address() as AddressInfo;
  const phone = new WebSocket(`ws://127.0.0.1:${port}/call`);
  const received: { event: string; mark?: { name: string } }[] = [];
  phone.on('message', (data: Buffer) => received.push(JSON.parse(data.toString())));
  await once(phone, 'open');
  const tell = (event: string, content: object = {}): void =>
    phone.send(JSON.stringify({ event, streamSid: 'MZ1', ...content }));
  tell('connected');
  tell('start', {
    start: {
      accountSid: 'AC1',
      callSid: 'CA1',
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
    },
  });
  expect(await arrived).toBe('CA1');
  tell('media', { media: { payload: Buffer.alloc(160, 0xff).toString('base64') } });
  await expect.poll(() => talk.model().heard.length).toBeGreaterThan(0);
  talk.model().beginByItself('Hello.', 250);
  await expect.poll(() => received.filter(({ event }) => event === 'mark')).toHaveLength(3);
  expect(received.filter(({ event }) => event === 'media')).toHaveLength(3);
  tell('stop');
  await once(phone, 'close');
  await expect.poll(() => talk.session.isAttached).toBe(false);
  await new Promise((resolve) => server.close(resolve));
});
