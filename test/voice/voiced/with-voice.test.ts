// A model that writes text, which a separate voice speaks: what is heard, shown and remembered.

import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/values/errors.ts';
import {
  scriptedVoice,
  simulatedEnvironment,
  type ScriptedVoiceOptions,
} from '../../../src/testing/index.ts';
import { frameDurationMs, type AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import type { Voice } from '../../../src/voice/speech/voice.ts';
import type {
  TransportCapabilities,
  TransportEvent,
} from '../../../src/voice/connection/transport.ts';
import { withVoice, type WithVoiceOptions } from '../../../src/voice/voiced/with-voice.ts';
import { FakeTransport } from '../../support/fake-transport.ts';

const WRITES = { output: 'text', truncatesAudio: false } as const;

type Of<Type extends TransportEvent['type']> = Extract<TransportEvent, { type: Type }>;

interface StageOptions extends Partial<Omit<WithVoiceOptions, 'voice'>> {
  readonly can?: Partial<TransportCapabilities>;
  readonly script?: Partial<ScriptedVoiceOptions>;
  readonly voice?: Voice;
}

function stage({ can, script, voice: own, ...options }: StageOptions = {}) {
  const environment = simulatedEnvironment();
  const voice = scriptedVoice({ environment, msPerCharacter: 100, ...script });
  const inner = new FakeTransport({ ...WRITES, ...can });
  inner.autoReady = false;
  const transport = withVoice(inner, { voice: own ?? voice, ...options });
  const connection = transport.connect({ instructions: '', tools: [] }, { environment });
  const events: TransportEvent[] = [];
  const frames: AudioFrame[] = [];
  connection.audio.subscribe((frame) => frames.push(frame));
  connection.events.subscribe((event) => events.push(event));
  const model = inner.current;
  const say = (event: TransportEvent): void => model.events.next(event);
  return {
    environment,
    voice,
    transport,
    connection,
    events,
    frames,
    model,
    begin: (responseId = 'r1', responseKey: string | null = 'k1') =>
      say({ type: 'response.started', responseId, responseKey }),
    write: (text: string, final = false, itemId = 'i1', responseId = 'r1') =>
      say({ type: 'assistant.transcribed', itemId, responseId, text, final }),
    end: (
      status: Of<'response.ended'>['status'] = 'completed',
      responseId = 'r1',
      responseKey: string | null = 'k1',
    ) => say({ type: 'response.ended', responseId, responseKey, status, reason: null, audio: [] }),
    of: <Type extends TransportEvent['type']>(type: Type): Of<Type>[] =>
      events.filter((event): event is Of<Type> => event.type === type),
    soundMs: () => frames.reduce((sum, frame) => sum + frameDurationMs(frame), 0),
    shown: (itemId = 'i1') => {
      let text = '';
      for (const event of events)
        if (event.type === 'assistant.transcribed' && event.itemId === itemId)
          text = event.final ? event.text : text + event.text;
      return text;
    },
    /** The commands that the model has received, except for requests. */
    told: () => model.commands.filter(({ type }) => type !== 'response.request'),
  };
}

describe("the model's spoken text", () => {
  test('SPOKEN-RESPONSE-1: plays sentence by sentence and ends after the last audio', async () => {
    const { environment, begin, write, end, voice, frames, events, soundMs, of } = stage({
      script: { latencyMs: 200 },
    });
    begin();
    write('One. Tw');
    await environment.settle();
    expect(voice.said).toEqual(['One.']);
    write('o. ');
    write('One. Two. ', true);
    end();
    await environment.advance(199);
    expect(frames).toEqual([]);
    await environment.advance(1);
    expect(soundMs()).toBe(400);
    expect(of('response.ended')).toEqual([]);
    await environment.advance(200);
    expect(soundMs()).toBe(800);
    expect(frames.every(({ itemId, responseId }) => itemId === 'i1' && responseId === 'r1')).toBe(
      true,
    );
    expect(events.at(-1)).toEqual({
      type: 'response.ended',
      responseId: 'r1',
      responseKey: 'k1',
      status: 'completed',
      reason: null,
      audio: [{ itemId: 'i1', durationMs: 800 }],
    });
    expect(of('response.ended')).toHaveLength(1);
  });

  test('SPOKEN-RESPONSE-3: appears along with its audio, and ends with the spoken text as transcript', async () => {
    const { environment, begin, write, end, shown, of } = stage({ script: { latencyMs: 100 } });
    begin();
    write('One. Two. ', true);
    await environment.settle();
    expect(shown()).toBe('');
    await environment.advance(100);
    expect(shown()).toBe('One. ');
    await environment.advance(100);
    expect(shown()).toBe('One. Two. ');
    end();
    await environment.settle();
    expect(of('assistant.transcribed').filter(({ final }) => final)).toHaveLength(1);
    expect(shown()).toBe('One. Two. ');
  });

  test("SPOKEN-RESPONSE-3: appears along with a streaming voice's audio as it arrives", async () => {
    let more: () => void = () => {};
    const samples = new Int16Array(24_000);
    const voice: Voice = {
      async *synthesize() {
        yield { samples, sampleRateHz: 24_000 };
        await new Promise<void>((resolve) => (more = resolve));
        yield { samples, sampleRateHz: 24_000 };
      },
    };
    const { environment, begin, write, shown, soundMs } = stage({ voice });
    begin();
    write('One two three four five six seven eight nine ten. ', true);
    await environment.settle();
    expect(soundMs()).toBe(1000);
    expect(shown()).not.toBe('');
    expect(shown()).not.toContain('ten');
    more();
    await environment.settle();
    expect(soundMs()).toBe(2000);
    expect(shown()).toContain('ten. ');
  });

  test('SPOKEN-RESPONSE-4: delays synthesis until shortly before the audio can be heard', async () => {
    const { environment, begin, write, voice } = stage({ maxAheadMs: 1000 });
    begin();
    // Each sentence is 2 s long.
    write('This one is the one. That one is another. And then the last. ', true);
    await environment.settle();
    expect(voice.said).toHaveLength(1);
    await environment.advance(999);
    expect(voice.said).toHaveLength(1);
    await environment.advance(1);
    expect(voice.said).toHaveLength(2);
    await environment.advance(2000);
    expect(voice.said).toHaveLength(3);
  });

  test('SPOKEN-RESPONSE-4: delays synthesis even if the voice is slower than its playback', async () => {
    const { environment, begin, write, voice } = stage({
      maxAheadMs: 1000,
      script: { latencyMs: 5000 },
    });
    begin();
    // Each sentence is 2 s long.
    write('This one is the one. That one is another. And then the last. ', true);
    await environment.advance(6000);
    expect(voice.said).toHaveLength(2);
    // The second sentence becomes audible 5 s later, long after the first one has ended.
    await environment.advance(5999);
    expect(voice.said).toHaveLength(2);
    await environment.advance(1);
    expect(voice.said).toHaveLength(3);
  });

  test('VOICED-CONNECTION-1: plays in the order in which the model started its responses', async () => {
    const { environment, begin, write, end, frames, of } = stage({
      script: { latencyMs: 500 },
      can: { responds: 'by_itself' },
    });
    begin('r1', null);
    write('One. And another one. ', true);
    end('completed', 'r1', null);
    begin('r2', null);
    write('Two.', true, 'i2', 'r2');
    end('completed', 'r2', null);
    await environment.advance(2000);
    const order = frames.map(({ responseId }) => responseId);
    expect([...new Set(order)]).toEqual(['r1', 'r2']);
    expect(order.lastIndexOf('r1')).toBeLessThan(order.indexOf('r2'));
    expect(of('response.ended').map(({ responseId }) => responseId)).toEqual(['r1', 'r2']);
  });

  test("converts any voice's rate to one rate and omits Markdown syntax", async () => {
    const texts: string[] = [];
    const voice: Voice = {
      synthesize: async ({ text }) => {
        texts.push(text);
        return { samples: new Int16Array(22_050), sampleRateHz: 22_050 };
      },
    };
    const { environment, begin, write, frames, soundMs, shown } = stage({
      voice,
      sampleRateHz: 16_000,
    });
    begin();
    write('**Two** of `them`, see [this](https://x.y). \n---\n', true);
    await environment.advance(1000);
    expect(texts).toEqual(['Two of them , see this.']);
    expect(new Set(frames.map(({ sampleRateHz }) => sampleRateHz))).toEqual(new Set([16_000]));
    expect(soundMs()).toBeCloseTo(1000, 0);
    expect(shown()).toContain('---');
  });

  test('ends a response without text as soon as the model ends it', async () => {
    const { environment, begin, end, events, model } = stage();
    begin();
    model.events.next({
      type: 'tool.called',
      callId: 'c1',
      name: 'look',
      arguments: '{}',
      responseId: 'r1',
    });
    end();
    await environment.settle();
    expect(events.map(({ type }) => type)).toEqual([
      'response.started',
      'tool.called',
      'response.ended',
    ]);
  });
});

describe('an interrupted response', () => {
  test('SPOKEN-RESPONSE-2: aborts the synthesis, and cancels the model if it is still writing', async () => {
    const { environment, connection, begin, write, end, voice, frames, of, model } = stage({
      script: { latencyMs: 500 },
    });
    begin();
    write('One. Two. ');
    await environment.advance(100);
    connection.send({ type: 'response.cancel' });
    write('Three. ');
    await environment.advance(1000);
    expect(frames).toEqual([]);
    expect(voice.said).toEqual(['One.']);
    expect(voice.aborted).toEqual(['One.']);
    expect(model.of('response.cancel')).toHaveLength(1);
    expect(of('response.ended')).toEqual([]);
    // The model had already completed the response, so the cancellation comes too late for it.
    end('completed');
    await environment.settle();
    expect(of('response.ended').map(({ status }) => status)).toEqual(['cancelled']);
    write('Four. ', true);
    await environment.settle();
    expect(of('assistant.transcribed')).toEqual([]);
  });

  test('SPOKEN-RESPONSE-2: ends on its own if the model has already finished', async () => {
    const { environment, connection, begin, write, end, of, soundMs, model } = stage({
      script: { latencyMs: 500 },
    });
    begin();
    write('One. Two. ', true);
    end();
    await environment.advance(500);
    connection.send({ type: 'response.cancel' });
    // The end is not emitted synchronously inside the caller's `send`.
    expect(of('response.ended')).toEqual([]);
    await environment.settle();
    expect(of('response.ended')).toMatchObject([
      { status: 'cancelled', audio: [{ itemId: 'i1', durationMs: 400 }] },
    ]);
    expect(of('assistant.transcribed').at(-1)).toMatchObject({ text: 'One. ', final: true });
    expect(model.of('response.cancel')).toEqual([]);
    await environment.advance(5000);
    expect(soundMs()).toBe(400);
    expect(environment.pendingTimers).toBe(0);
  });

  test('SPOKEN-RESPONSE-2: ends even if the voice ignores its signal', async () => {
    const voice: Voice = { synthesize: () => new Promise(() => {}) };
    const { environment, connection, begin, write, end, of } = stage({ voice });
    begin();
    write('One. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'response.cancel' });
    await environment.settle();
    expect(of('response.ended').map(({ status }) => status)).toEqual(['cancelled']);
  });

  test.each(['cancelled', 'failed'] as const)(
    'SPOKEN-RESPONSE-2: drops the sentence not yet synthesized when the model ends with %s',
    async (status) => {
      const { environment, begin, write, end, voice, of } = stage({ script: { latencyMs: 500 } });
      begin();
      write('One. Two. Three. ');
      await environment.advance(500);
      end(status);
      await environment.advance(5000);
      expect(voice.said).toEqual(['One.', 'Two.']);
      expect(of('response.ended')).toMatchObject([
        { status, audio: [{ itemId: 'i1', durationMs: 400 }] },
      ]);
    },
  );

  test('VOICED-CONNECTION-2: remains unspoken if it is cancelled before the model starts', async () => {
    const { environment, connection, begin, write, end, voice, of, model } = stage();
    connection.send({ type: 'response.request', responseKey: 'k1' });
    connection.send({ type: 'response.cancel' });
    expect(model.of('response.cancel')).toHaveLength(1);
    begin();
    write('One. ', true);
    end('completed');
    await environment.settle();
    expect(voice.said).toEqual([]);
    expect(of('response.ended').map(({ status }) => status)).toEqual(['cancelled']);
    // The cancellation does not apply to later requests.
    connection.send({ type: 'response.request', responseKey: 'k2' });
    begin('r2', 'k2');
    write('Two. ', true, 'i2', 'r2');
    await environment.settle();
    expect(voice.said).toEqual(['Two.']);
  });

  test('sends nothing more after the connection is lost', async () => {
    const { environment, begin, write, events, frames, model } = stage({
      script: { latencyMs: 100 },
    });
    begin();
    write('One. ', true);
    await environment.settle();
    model.drop();
    await environment.advance(1000);
    expect(events.at(-1)?.type).toBe('transport.closed');
    expect(frames).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  });

  test('sends nothing more after a close', async () => {
    const { environment, connection, begin, write, frames } = stage({ script: { latencyMs: 100 } });
    begin();
    write('One. ', true);
    await environment.settle();
    await connection.close();
    await environment.advance(1000);
    expect(frames).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('a voice that fails', () => {
  test('VOICED-CONNECTION-3: reports the failure once and fails the response', async () => {
    const { environment, begin, write, end, voice, of, events, model } = stage();
    voice.fail(5);
    begin();
    write('One. Two. ');
    await environment.settle();
    expect(of('transport.error')).toMatchObject([
      { code: 'VOICE_FAILED', responseKey: null, message: /told to fail/ },
    ]);
    // The model is instructed to stop.
    expect(model.of('response.cancel')).toHaveLength(1);
    expect(of('response.ended')).toEqual([]);
    end('cancelled');
    await environment.settle();
    expect(events.at(-1)).toMatchObject({ type: 'response.ended', status: 'failed', audio: [] });
    expect(of('transport.error')).toHaveLength(1);
  });

  test('VOICED-CONNECTION-3: reports INVALID_AUDIO for a frame that is not audio', async () => {
    const voice = {
      synthesize: async () => ({ samples: new Float32Array(1), sampleRateHz: 24_000 }),
    };
    const { environment, begin, write, end, of } = stage({ voice: voice as unknown as Voice });
    begin();
    write('One. ', true);
    end();
    await environment.settle();
    expect(of('transport.error')).toMatchObject([{ code: 'INVALID_AUDIO' }]);
    expect(of('response.ended')).toMatchObject([{ status: 'failed' }]);
  });
});

describe("the model's memory", () => {
  test('VOICED-MEMORY-1: replaces a message in place with the part that was heard', async () => {
    const { environment, connection, begin, write, end, told } = stage();
    begin();
    write('One. Two and three. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'playout.truncate', itemId: 'i1', playedMs: 900 });
    expect(told()).toEqual([
      {
        type: 'message.add',
        itemId: 'i1.1',
        role: 'assistant',
        text: 'One. Two',
        afterItemId: 'i1',
      },
      { type: 'item.delete', itemId: 'i1' },
    ]);
    // The position of the cut never moves backwards.
    connection.send({ type: 'playout.truncate', itemId: 'i1', playedMs: 2000 });
    expect(told()).toHaveLength(2);
    connection.send({ type: 'playout.truncate', itemId: 'i1', playedMs: 0 });
    expect(told().slice(2)).toEqual([{ type: 'item.delete', itemId: 'i1.1' }]);
  });

  test('VOICED-MEMORY-1: remains unchanged if everything was heard', async () => {
    const { environment, connection, begin, write, end, told } = stage();
    begin();
    write('One. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'playout.truncate', itemId: 'i1', playedMs: 400 });
    expect(told()).toEqual([]);
  });

  test('VOICED-MEMORY-1: loses its unspoken text when a response is cut off', async () => {
    const { environment, connection, begin, write, end, told } = stage({
      script: { latencyMs: 500 },
    });
    begin();
    write('One. Two. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'response.cancel' });
    await environment.settle();
    expect(told()).toEqual([{ type: 'item.delete', itemId: 'i1' }]);
  });

  test('VOICED-MEMORY-1: ignores truncation of an out-of-band response', async () => {
    const { environment, connection, begin, write, end, told } = stage();
    connection.send({ type: 'response.request', responseKey: 'k1', outOfBand: true });
    begin();
    write('One. Two. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'playout.truncate', itemId: 'i1', playedMs: 100 });
    expect(told()).toEqual([]);
  });

  test('VOICED-MEMORY-2: notes which text was not spoken if items cannot be deleted', async () => {
    const { environment, transport, connection, begin, write, end, told } = stage({
      can: { deletesItems: false },
      script: { latencyMs: 500 },
    });
    expect(transport.capabilities.truncatesAudio).toBe(false);
    begin();
    write('One. Two. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'response.cancel' });
    await environment.settle();
    expect(told()).toMatchObject([
      { type: 'message.add', role: 'user', text: expect.stringContaining('was not played') },
    ]);
  });

  test('VOICED-MEMORY-2: does not receive a note about an out-of-band response', async () => {
    const { environment, connection, begin, write, end, told } = stage({
      can: { deletesItems: false },
      script: { latencyMs: 500 },
    });
    connection.send({ type: 'response.request', responseKey: 'k1', outOfBand: true });
    begin();
    write('One. Two. ', true);
    end();
    await environment.settle();
    connection.send({ type: 'response.cancel' });
    await environment.settle();
    expect(told()).toEqual([]);
  });
});

describe('construction', () => {
  test("adopts the transport's capabilities except those that concern its output", () => {
    const { transport } = stage({ can: { resumes: true }, sampleRateHz: 16_000 });
    expect(transport.capabilities).toMatchObject({
      output: 'audio',
      outputSampleRateHz: 16_000,
      truncatesAudio: true,
      resumes: true,
    });
    expect(transport.name).toBe('fake+voice');
  });

  const voice: Voice = { synthesize: () => new Promise(() => {}) };
  test.each([
    ['a model that speaks', new FakeTransport(), { voice }, 'TEXT_OUTPUT_NEEDED', /`fake`/],
    ['no voice', new FakeTransport(WRITES), {}, 'INVALID_OPTION', /`voice`.*synthesize/s],
    [
      'a rate that cannot be',
      new FakeTransport(WRITES),
      { voice, sampleRateHz: 1 },
      'INVALID_OPTION',
      /8000 to 48000/,
    ],
    [
      'an unknown option',
      new FakeTransport(WRITES),
      { voice, pitch: 1 },
      'INVALID_OPTION',
      /pitch/,
    ],
  ])('%s is refused', (_name, transport, options, code, message) => {
    const make = () => withVoice(transport, options as WithVoiceOptions);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ code }));
  });
});
