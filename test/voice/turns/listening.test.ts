// The user's floor: how long an utterance may hold it, and what happens to the words of the utterance.

import { describe, expect, test } from 'vitest';
import type { TransportCapabilities } from '../../../src/voice/connection/transport.ts';
import { BY_ITSELF, FakeTransport } from '../../support/fake-transport.ts';
import { voiceTalk, type VoiceTalkOptions } from '../../support/voice-talk.ts';

const FRAME = { samples: new Int16Array(2400).fill(4000), sampleRateHz: 24_000 };
/** A television in the next room, at -48 dB of full scale. */
const FAR_FRAME = { samples: new Int16Array(2400).fill(130), sampleRateHz: 24_000 };

async function talkWith(
  capabilities: Partial<TransportCapabilities> = {},
  options: VoiceTalkOptions = {},
) {
  const talk = voiceTalk({
    ...options,
    transport: new FakeTransport(capabilities),
    voice: { maxUtteranceMs: 20_000 },
  });
  await talk.start();
  return {
    ...talk,
    /** Makes the microphone send audio for `ms` milliseconds. */
    async hums(ms: number, frame = FRAME) {
      for (let passed = 0; passed < ms; passed += 100) {
        talk.session.audioIn.next(frame);
        await talk.environment.advance(100);
      }
    },
    partly(utteranceId: string, text: string) {
      const words = { type: 'utterance.transcribed', utteranceId, text } as const;
      talk.model().events.next({ ...words, final: false });
    },
    said: () =>
      talk
        .state()
        .transcript.filter(({ role, final }) => role === 'user' && final)
        .map(({ text }) => text),
  };
}

describe.each([
  ['a model that is asked', {}],
  ['a model that answers by itself', BY_ITSELF],
] as const)('an utterance that does not end: %s', (_name, capabilities) => {
  test('LISTEN-1: ends on a transport that can end utterances, and its text is counted once', async () => {
    const { model, hums, said, state, environment } = await talkWith({
      ...capabilities,
      endsUtterances: true,
    });
    model().speechStarted('u1');
    await hums(19_000);
    expect(state().floor).toBe('user');
    expect(model().of('utterance.end')).toEqual([]);
    await hums(1500);
    expect(model().of('utterance.end')).toEqual([{ type: 'utterance.end', utteranceId: 'u1' }]);
    expect(said()).toEqual(['so far']);
    // Further words from the provider for the same utterance add nothing.
    model().speechEnded('u1', 'so far, and the rest');
    await environment.settle();
    expect(said()).toEqual(['so far']);
    expect(state().floor).not.toBe('user');
  });

  test('LISTEN-1: ends at the usual transcript timeout if the transport does not answer', async () => {
    const { model, hums, state, environment } = await talkWith({
      ...capabilities,
      endsUtterances: true,
    });
    model().saidSoFar = null;
    model().speechStarted('u1');
    await hums(20_500);
    await environment.advance(5000);
    expect(state().floor).not.toBe('user');
  });

  test('LISTEN-1: contains the text known so far on a transport that cannot end utterances', async () => {
    const { model, hums, partly, said, state, environment } = await talkWith(capabilities);
    model().speechStarted('u1');
    partly('u1', 'and now the weather');
    await hums(20_500);
    expect(said()).toEqual(['and now the weather']);
    expect(state().floor).not.toBe('user');
    model().speechEnded('u1', 'and now the weather in the north');
    await environment.settle();
    expect(said()).toEqual(['and now the weather']);
  });

  test('LISTEN-1: contains text that arrives at the end if none was known', async () => {
    const { model, hums, said, state, environment } = await talkWith(capabilities);
    model().speechStarted('u1');
    await hums(20_500);
    expect(said()).toEqual([]);
    expect(state().floor).not.toBe('user');
    model().speechEnded('u1', 'book me a ride');
    await environment.settle();
    expect(said()).toEqual(['book me a ride']);
  });
});

test('LISTEN-1: leaves the floor with a user who speaks for 45 s and delays all deliveries meanwhile', async () => {
  const { model, environment, session, state, asked, start } = voiceTalk({
    transport: new FakeTransport({ endsUtterances: true }),
  });
  await start();
  model().speechStarted('u1');
  session.notifyBackground('The report is done.');
  for (let passed = 0; passed < 45_000; passed += 100) {
    session.audioIn.next(FRAME);
    await environment.advance(100);
  }
  expect(state().floor).toBe('user');
  expect(asked()).toBeNull();
});

test('LISTEN-1: ends when the microphone is switched off', async () => {
  const { model, hums, environment, said, state } = await talkWith({ endsUtterances: true });
  model().speechStarted('u1');
  await hums(1000);
  await environment.advance(1800);
  expect(state().floor).toBe('user');
  await environment.advance(200);
  expect(said()).toEqual(['so far']);
  expect(state().floor).not.toBe('user');
});

test('LISTEN-1: ends when the client is away for more than 5 s', async () => {
  const { model, hums, environment, said, leave, state } = await talkWith({ endsUtterances: true });
  model().speechStarted('u1');
  await hums(1000);
  leave();
  await environment.advance(4800);
  expect(said()).toEqual([]);
  await environment.advance(300);
  expect(model().of('utterance.end')).toHaveLength(1);
  expect(said()).toEqual(['so far']);
  expect(state().floor).not.toBe('user');
});

test('LISTEN-1: continues if its client is away for only 1.5 s', async () => {
  const { model, hums, environment, said, leave, session, state } = await talkWith({
    endsUtterances: true,
  });
  model().speechStarted('u1');
  await hums(1000);
  leave();
  await environment.advance(1500);
  session.attach();
  await hums(3000);
  expect(state().floor).toBe('user');
  expect(model().of('utterance.end')).toEqual([]);
  model().speechEnded('u1', 'Can you check me a report?');
  await environment.settle();
  expect(said()).toEqual(['Can you check me a report?']);
});

describe('LISTEN-2: a television', () => {
  async function withTelevision() {
    const talk = await talkWith({ endsUtterances: true });
    talk.model().saidSoFar = '';
    talk.model().speechStarted('tv1');
    await talk.hums(20_500);
    return talk;
  }

  test('gets the floor only once and does not prevent deliveries', async () => {
    const { model, hums, session, state, asked } = await withTelevision();
    model().speechStarted('tv2');
    session.notifyBackground('The report is done.');
    await hums(1000);
    expect(state().floor).not.toBe('user');
    expect(asked()).toContain('The report is done.');
    const { itemId, end } = model().begin('The report is done.', 2000);
    // The noise does not interrupt the lead agent either.
    model().speechEnded('tv2', '');
    model().speechStarted('tv3');
    await hums(2000);
    end();
    session.playout.next({ itemId, playedMs: 2000 });
    await hums(100);
    expect(state().deliveries.at(-1)?.state).toBe('delivered');
  });

  test('counts as background even if the transport splits its speech', async () => {
    const { model, hums, state } = await talkWith({ endsUtterances: true });
    for (const id of ['tv1', 'tv2', 'tv3', 'tv4']) {
      model().speechStarted(id);
      expect(state().floor).toBe('user');
      await hums(5000);
      model().speechEnded(id, 'and now the weather');
    }
    model().speechStarted('tv5');
    await hums(500);
    expect(state().floor).not.toBe('user');
  });

  test('gets the floor only once even if the transport ends its utterance just before the limit', async () => {
    const { model, hums, state } = await talkWith({ endsUtterances: true });
    model().speechStarted('tv1');
    await hums(19_500);
    model().speechEnded('tv1', 'and now the weather');
    model().speechStarted('tv2');
    await hums(500);
    expect(model().of('utterance.end')).toEqual([]);
    expect(state().floor).not.toBe('user');
  });

  test('holds the floor for five seconds if it is distant and then counts as background', async () => {
    const { model, hums, state, session, asked } = await talkWith({ endsUtterances: true });
    model().saidSoFar = '';
    model().speechStarted('tv1');
    session.notifyBackground('The report is done.');
    await hums(4500, FAR_FRAME);
    expect(state().floor).toBe('user');
    await hums(1500, FAR_FRAME);
    expect(asked()).toContain('The report is done.');
  });

  test("gets one answer if it is distant, and does not mask the user's speech", async () => {
    const { model, hums, said, events } = await talkWith({ endsUtterances: true });
    const reasons = () =>
      events.flatMap((event) => (event.type === 'utterance.routed' ? [event.reason] : []));
    model().saidSoFar = 'good evening';
    model().speechStarted('tv1');
    await hums(6000, FAR_FRAME);
    model().speechStarted('tv2');
    await hums(4000, FAR_FRAME);
    model().speechEnded('tv2', 'and here is the news');
    await hums(100, FAR_FRAME);
    model().speechStarted('u1');
    await hums(1000);
    model().speechEnded('u1', 'a ride to the airport');
    await hums(100, FAR_FRAME);
    expect(said()).toEqual(['good evening', 'a ride to the airport']);
    expect(reasons()).toEqual([null, 'background', null]);
  });

  test('returns the floor to a user who speaks louder', async () => {
    const { model, hums, state } = await talkWith({ endsUtterances: true });
    model().speechStarted('u1');
    await hums(1000, FAR_FRAME);
    await hums(500);
    await hums(5000, FAR_FRAME);
    expect(state().floor).toBe('user');
  });

  test('does not block an utterance that the user says over it', async () => {
    const { model, hums, said } = await withTelevision();
    model().speechStarted('tv2');
    await hums(500);
    model().speechEnded('tv2', 'turn that down, and book me a ride');
    await hums(100);
    expect(said()).toEqual(['turn that down, and book me a ride']);
  });

  test('no longer blocks the floor after a quiet period', async () => {
    const { model, hums, state } = await withTelevision();
    model().speechStarted('tv2');
    await hums(500);
    model().speechEnded('tv2', '');
    await hums(3100);
    model().speechStarted('u1');
    await hums(100);
    expect(state().floor).toBe('user');
  });

  test('remains background for as long as it continues, even in pieces', async () => {
    const { model, hums, state } = await withTelevision();
    for (const id of ['tv2', 'tv3', 'tv4']) {
      model().speechStarted(id);
      await hums(2500);
      expect(state().floor).not.toBe('user');
      model().speechEnded(id, '');
      await hums(1000);
    }
  });

  test('counts as unknown on a new connection', async () => {
    const { model, hums, state } = await withTelevision();
    model().drop();
    await hums(2000);
    // The provider may reuse ids on a new connection.
    model().speechStarted('tv1');
    await hums(100);
    expect(state().floor).toBe('user');
    model().speechEnded('tv1', '');
    await hums(100);
    expect(state().floor).not.toBe('user');
  });
});

describe('INTERRUPTIONS-6: a greeting that a sound interrupts', () => {
  async function greeted() {
    const talk = await talkWith({ endsUtterances: true }, { greeting: 'Greet the user.' });
    const { model, hums, environment, play } = talk;
    const greet = async () => {
      const { itemId, end } = model().begin('Hello! I can book you a ride or a table.', 8000);
      end();
      await environment.settle();
      await play(itemId, 1000);
    };
    /** There is sound over the lead agent's speech until the session or the transport ends it. */
    const sounds = async (id: string, ms: number, text: string, frame = FAR_FRAME) => {
      model().saidSoFar = text;
      model().speechStarted(id);
      await hums(ms, frame);
      model().speechEnded(id, text);
      await hums(100, frame);
    };
    const replies = () => model().of('response.request').length;
    await greet();
    return { ...talk, greet, sounds, replies };
  }

  test.each([
    ['a noise without words', '', FRAME],
    ['a voice far away', 'Good evening, and here is the news.', FAR_FRAME],
  ])('plays again once after %s', async (_name, text, frame) => {
    const { greet, sounds, said, replies } = await greeted();
    const before = replies();
    await sounds('tv1', 3000, text, frame);
    expect(said()).toEqual([]);
    expect(replies()).toBe(before + 1);
    await greet();
    await sounds('tv2', 3000, '', frame);
    expect(replies()).toBe(before + 1);
  });

  test('resumes after a short distant word', async () => {
    const { sounds, said, replies, events } = await greeted();
    const before = replies();
    await sounds('tv1', 800, 'And now the weather.');
    expect(said()).toEqual([]);
    expect(replies()).toBe(before);
    expect(events.filter(({ type }) => type === 'speech.resumed')).toHaveLength(1);
  });

  test('stops for the user and leads to an answer', async () => {
    const { sounds, said } = await greeted();
    await sounds('u1', 1000, 'A ride to the airport.', FRAME);
    expect(said()).toEqual(['A ride to the airport.']);
  });
});
