import { Subject } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import {
  acceptTwilioCall,
  type CallSession,
  type TwilioCall,
  type TwilioCallOptions,
} from '../../../src/adapters/twilio-media-streams/index.ts';
import {
  CapacityError,
  ConfigurationError,
  ProtocolError,
  ProviderError,
} from '../../../src/values/errors.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { FakeTwilio } from './support/fake-twilio.ts';

/** A session that only records its input. */
class Listener implements CallSession {
  readonly heard: AudioFrame[] = [];
  readonly reports: unknown[] = [];
  readonly said: string[] = [];
  readonly audioOut = new Subject<AudioFrame>();
  readonly events = new Subject<{ type: string }>();
  readonly audioIn = { next: (frame: AudioFrame) => void this.heard.push(frame) };
  readonly playout = { next: (report: unknown) => void this.reports.push(report) };
  readonly questions = [
    { requestId: 'req_1', kind: 'question', state: 'open', options: [{ id: 'a' }, { id: 'b' }] },
  ];
  readonly store = { getSnapshot: () => ({ context: { questions: this.questions } }) };
  attached = 0;
  attach(): () => void {
    this.attached += 1;
    return () => {
      this.attached -= 1;
    };
  }
  sendText(text: string): Promise<void> {
    this.said.push(text);
    return text === '0' ? Promise.reject(new Error('not now')) : Promise.resolve();
  }
  answer(requestId: string, { optionId }: { optionId: string }): Promise<unknown> {
    this.said.push(`${requestId}: ${optionId}`);
    return Promise.resolve();
  }
}

function ring(options: Partial<TwilioCallOptions> = {}) {
  const environment = simulatedEnvironment();
  const twilio = new FakeTwilio(environment);
  const errors: Error[] = [];
  const accepted = acceptTwilioCall(twilio, {
    environment,
    onError: (error) => errors.push(error as Error),
    ...options,
  });
  // A test that does not use this promise must not fail because of it.
  accepted.catch(() => {});
  return { environment, twilio, errors, accepted };
}

async function inCall(options: Partial<TwilioCallOptions> = {}) {
  const { accepted, ...rest } = ring(options);
  rest.twilio.start({ who: 'Ann' });
  const call = await accepted;
  const session = new Listener();
  const ends: string[] = [];
  void call.ended.then((reason) => ends.push(reason));
  const connect = (): TwilioCall => {
    call.connect(session);
    return call;
  };
  return { ...rest, call, session, connect, ends };
}

const frame = (ms: number, itemId = 'item_1'): AudioFrame => ({
  samples: new Int16Array(24 * ms).fill(3000),
  sampleRateHz: 24_000,
  itemId,
  responseId: 'resp_1',
});

describe('the start of a call', () => {
  test('accepts a session whose first attempt to attach failed', async () => {
    const { call, session, twilio, environment } = await inCall();
    const attach = vi.spyOn(session, 'attach').mockImplementationOnce(() => {
      throw new CapacityError('MAILBOX_FULL', '10,000 events wait');
    });
    expect(() => call.connect(session)).toThrow('10,000 events wait');
    call.connect(session);
    expect(attach).toHaveBeenCalledTimes(2);
    session.audioOut.next(frame(200));
    await environment.advance(300);
    expect(twilio.heard.length).toBeGreaterThan(0);
  });

  test('provides ids and parameters from Twilio', async () => {
    const { call } = await inCall();
    expect(call).toMatchObject({
      callSid: 'CA1',
      streamSid: 'MZ1',
      accountSid: 'AC1',
      customParameters: { who: 'Ann' },
    });
  });

  test.each([
    ['no JSON', 'hello'],
    ['no message', '[]'],
    ['a message before its start', JSON.stringify({ event: 'stop', streamSid: 'MZ1' })],
    [
      'another sound than μ-law',
      JSON.stringify({
        event: 'start',
        streamSid: 'MZ1',
        start: {
          accountSid: 'AC1',
          callSid: 'CA1',
          mediaFormat: { encoding: 'audio/l16', sampleRate: 16_000, channels: 1 },
        },
      }),
    ],
  ])('fails with %s', async (_what, text) => {
    const { twilio, accepted } = ring();
    twilio.tellRaw(text);
    await expect(accepted).rejects.toThrow(ProtocolError);
    expect(twilio.closedWith).toEqual({ code: 1008, reason: 'refused' });
  });

  test('fails for binary data and for an oversized message', async () => {
    for (const [text, isBinary] of [
      ['{}', true],
      [`"${'x'.repeat(70_000)}"`, false],
    ] as const) {
      const { twilio, accepted } = ring();
      twilio.tellRaw(text, isBinary);
      await expect(accepted).rejects.toThrow(/Expected text of at most 65536 characters, got /);
    }
  });

  test('fails when the start message is late or the socket closes', async () => {
    const late = ring({ startTimeoutMs: 500 });
    late.twilio.tellRaw(JSON.stringify({ event: 'connected' }));
    await late.environment.advance(500);
    await expect(late.accepted).rejects.toMatchObject({ code: 'START_TIMEOUT' });
    expect(late.twilio.closedWith?.code).toBe(1008);

    const gone = ring();
    gone.twilio.vanish();
    await expect(gone.accepted).rejects.toThrow(ProviderError);
    await expect(gone.accepted).rejects.toMatchObject({ code: 'CALL_LOST' });
    expect(gone.environment.pendingTimers).toBe(0);
  });

  test('refuses invalid options', () => {
    const { environment, twilio } = ring();
    expect(() => acceptTwilioCall(twilio, { environment, maxAheadMs: 0 })).toThrow(
      ConfigurationError,
    );
    expect(() => acceptTwilioCall(twilio, {} as TwilioCallOptions)).toThrow(/environment/);
  });
});

describe('TWILIO-CALL-3: the caller’s audio', () => {
  test('reaches the session, even if the caller spoke before the session connected', async () => {
    const { twilio, session, connect } = await inCall();
    twilio.say(8);
    twilio.say(16);
    connect();
    twilio.say(24);
    expect(
      session.heard.map(({ samples, sampleRateHz }) => [samples[0], samples.length, sampleRateHz]),
    ).toEqual([
      [8, 160, 8000],
      [16, 160, 8000],
      [24, 160, 8000],
    ]);
  });

  test('keeps only the most recent part until a session connects', async () => {
    const { twilio, session, connect } = await inCall({ keptAudioMs: 40 });
    for (const value of [100, 204, 308]) twilio.say(value);
    connect();
    expect(session.heard).toHaveLength(2);
  });

  test("excludes the session's own audio", async () => {
    const { twilio, session, connect } = await inCall();
    connect();
    twilio.say(100, 'outbound');
    expect(session.heard).toEqual([]);
  });
});

describe('the session’s audio', () => {
  test('reaches the caller, and reports its playout', async () => {
    const { environment, twilio, session, connect } = await inCall();
    connect();
    session.audioOut.next(frame(300));
    await environment.advance(250);
    expect(session.reports).toEqual([
      { itemId: 'item_1', playedMs: 100 },
      { itemId: 'item_1', playedMs: 200 },
    ]);
    await environment.advance(100);
    // The filter holds the last 4 ms.
    expect(session.reports.at(-1)).toMatchObject({ itemId: 'item_1' });
    expect(twilio.heardMs).toBeGreaterThan(290);
    expect(twilio.of('media').every(({ streamSid }) => streamSid === 'MZ1')).toBe(true);
  });

  test('stops immediately when cleared, and does not count the unplayed part as heard', async () => {
    const { environment, twilio, session, connect } = await inCall();
    connect();
    session.audioOut.next(frame(2000));
    await environment.advance(450);
    session.events.next({ type: 'playout.clear' });
    expect(twilio.sent.at(-1)).toMatchObject({ event: 'clear', streamSid: 'MZ1' });
    await environment.advance(2000);
    expect(twilio.heardMs).toBe(450);
    expect(session.reports.at(-1)).toEqual({ itemId: 'item_1', playedMs: 400 });
    // The marks that came back with the clear caused no further report.
    expect(session.reports).toHaveLength(5);
  });

  test('loses its end when the queue is full, and reports an error', async () => {
    const { session, connect, errors } = await inCall({ maxQueuedMs: 1000 });
    connect();
    session.audioOut.next(frame(5000));
    expect(errors).toMatchObject([{ code: 'QUEUE_FULL' }]);
  });
});

describe('keys', () => {
  test('answer the open question, or else count as typed text', async () => {
    const { twilio, session, connect, environment, errors } = await inCall();
    twilio.press('1');
    connect();
    twilio.press('2');
    session.questions.pop();
    twilio.press('4', '7', '#');
    twilio.press('0', '#');
    await environment.settle();
    expect(session.said).toEqual(['req_1: b', '47', '0']);
    expect(errors).toMatchObject([{ message: 'not now' }]);
  });
});

describe('TWILIO-CALL-1: the end of a call', () => {
  test.each([
    ['stopped', 1000, ({ twilio }: Ringing) => twilio.stop()],
    ['closed', null, ({ twilio }: Ringing) => twilio.vanish()],
    ['hung_up', 1000, ({ call }: Ringing) => call.hangUp()],
    ['hung_up', 1000, ({ session }: Ringing) => session.events.complete()],
  ] as const)('causes one report: %s (%s)', async (reason, code, end) => {
    const ringing = await inCall();
    const { environment, twilio, session, connect, ends, call } = ringing;
    connect();
    expect(session.attached).toBe(1);
    end(ringing);
    twilio.stop();
    call.hangUp();
    await environment.settle();
    expect(ends).toEqual([reason]);
    expect(session.attached).toBe(0);
    expect(twilio.closedWith?.code ?? null).toBe(code);
    expect(environment.pendingTimers).toBe(0);
    // Audio is not passed on in either direction.
    const before = twilio.sent.length;
    session.audioOut.next(frame(100));
    session.events.next({ type: 'playout.clear' });
    twilio.say(1);
    expect(twilio.sent).toHaveLength(before);
    expect(session.heard).toEqual([]);
  });

  test('occurs when Twilio is silent for too long', async () => {
    const { environment, twilio, ends, connect } = await inCall({ silenceTimeoutMs: 1000 });
    connect();
    await environment.advance(900);
    twilio.say(1);
    await environment.advance(1000);
    expect(ends).toEqual([]);
    await environment.advance(200);
    expect(ends).toEqual(['lost']);
  });

  test('does not attach a session that connects later', async () => {
    const { twilio, session, connect } = await inCall();
    twilio.stop();
    connect();
    expect(session.attached).toBe(0);
  });

  test('refuses a second session for the same call', async () => {
    const { connect, call } = await inCall();
    connect();
    expect(() => call.connect(new Listener())).toThrow(ConfigurationError);
  });
});

type Ringing = Awaited<ReturnType<typeof inCall>>;

describe('TWILIO-CALL-2: unexpected messages', () => {
  test('cause one error each, and have no other effect', async () => {
    const { twilio, session, connect, errors } = await inCall();
    connect();
    const mark = { mark: { name: 'played:1' } };
    twilio.tellRaw(JSON.stringify({ event: 'mark', streamSid: 'MZ2', ...mark }));
    twilio.tell('media', { media: { payload: 'not base64!' } });
    twilio.tell('dtmf', { dtmf: { digit: 'oops' } });
    twilio.start();
    twilio.tellRaw('{');
    expect(errors.map(({ constructor }) => constructor)).toEqual(
      Array.from({ length: 5 }, () => ProtocolError),
    );
    expect(session.heard).toEqual([]);
    expect(session.said).toEqual([]);
    twilio.say(100);
    expect(session.heard).toHaveLength(1);
  });

  test('do not cause an error if Twilio adds a type', async () => {
    const { twilio, errors } = await inCall();
    twilio.tell('weather', { weather: 'fine' });
    expect(errors).toEqual([]);
  });

  test('end the call when there are too many', async () => {
    const { twilio, environment, ends, errors } = await inCall();
    for (let count = 0; count < 50; count += 1) twilio.tellRaw('{');
    await environment.settle();
    expect(ends).toEqual(['refused']);
    expect(twilio.closedWith?.code).toBe(1008);
    expect(errors).toHaveLength(11);
  });

  test('include a reported socket error', async () => {
    const { twilio, errors } = await inCall();
    twilio.fail(new Error('Max payload size exceeded'));
    expect(errors).toMatchObject([{ message: 'Max payload size exceeded' }]);
  });
});

describe('TWILIO-CALL-4: a socket of another package', () => {
  const failed = new Error('not this socket');
  const ways = {
    throws: (): never => {
      throw failed;
    },
    rejects: () => Promise.reject(failed) as never,
  };

  test.each(['throws', 'rejects'] as const)(
    'cannot become a call when its `on` %s',
    async (way) => {
      const environment = simulatedEnvironment();
      const twilio = new FakeTwilio(environment);
      twilio.on = ways[way];
      const accepted = acceptTwilioCall(twilio, { environment });
      await expect(accepted).rejects.toThrow(ProviderError);
      await expect(accepted).rejects.toMatchObject({ code: 'CALL_LOST', cause: failed });
      expect(twilio.closedWith).toEqual({ code: 1008, reason: 'refused' });
    },
  );

  test.each(['throws', 'rejects'] as const)(
    'causes only reported errors when its `send` %s',
    async (way) => {
      const { connect, session, twilio, environment, errors, ends } = await inCall();
      twilio.send = ways[way];
      connect();
      session.audioOut.next(frame(40));
      await environment.advance(100);
      expect(errors.length).toBeGreaterThan(0);
      expect(new Set(errors)).toEqual(new Set([failed]));
      expect(ends).toEqual([]);
    },
  );

  test.each(['throws', 'rejects'] as const)('ends the call even if its `close` %s', async (way) => {
    const { connect, session, twilio, environment, errors, ends } = await inCall();
    twilio.close = ways[way];
    connect().hangUp();
    await environment.settle();
    expect(errors).toEqual([failed]);
    expect(ends).toEqual(['hung_up']);
    expect(session.attached).toBe(0);
  });

  test.each(['throws', 'rejects'] as const)('survives an `onError` that %s', async (way) => {
    const { twilio, session, connect, environment } = await inCall({ onError: ways[way] });
    connect();
    twilio.tellRaw('{');
    await environment.settle();
    twilio.say(100);
    expect(session.heard).toHaveLength(1);
  });
});
