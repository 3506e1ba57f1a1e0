import { describe, expect, test } from 'vitest';
import { startHarness, textOnly } from './support/harness.ts';

describe('the session', () => {
  test("starts with the protocol's defaults", async () => {
    const { connect } = await startHarness();
    const client = await connect();
    expect(client.events[0]).toMatchObject({
      type: 'session.created',
      session: {
        object: 'realtime.session',
        type: 'realtime',
        model: 'local-voice',
        output_modalities: ['audio'],
        tools: [],
        tool_choice: 'auto',
        max_output_tokens: 'inf',
        audio: {
          input: {
            format: { type: 'audio/pcm', rate: 24_000 },
            transcription: null,
            turn_detection: {
              type: 'server_vad',
              threshold: 0.5,
              prefix_padding_ms: 300,
              silence_duration_ms: 500,
              create_response: true,
              interrupt_response: true,
            },
          },
          output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'slt', speed: 1 },
        },
      },
    });
    expect(client.events[0]?.['session'].id).toMatch(/^sess_/);
  });

  test('changes only the fields that an update contains, at any depth', async () => {
    const { connect } = await startHarness();
    const client = await connect();
    const update = async (session: Record<string, unknown>) => {
      client.send({ type: 'session.update', session: { type: 'realtime', ...session } });
      return (await client.next('session.updated'))['session'];
    };
    const first = await update({
      instructions: 'Be kind.',
      tools: [{ type: 'function', name: 'f' }],
      audio: { input: { turn_detection: { type: 'server_vad', threshold: 0.7 } } },
    });
    const second = await update({
      audio: {
        input: {
          transcription: { model: 'whisper-1' },
          turn_detection: { type: 'server_vad', create_response: false },
        },
      },
    });
    expect(second).toEqual({
      ...first,
      audio: {
        ...first.audio,
        input: {
          ...first.audio.input,
          transcription: { model: 'whisper-1', language: null, prompt: null },
          turn_detection: { ...first.audio.input.turn_detection, create_response: false },
        },
      },
    });
    expect(second).toMatchObject({
      instructions: 'Be kind.',
      tools: [{ name: 'f' }],
      audio: { input: { turn_detection: { threshold: 0.7, interrupt_response: true } } },
    });
    const third = await update({
      instructions: '',
      tools: [],
      audio: { input: { transcription: null, turn_detection: null } },
    });
    expect(third).toMatchObject({
      instructions: '',
      tools: [],
      audio: { input: { transcription: null, turn_detection: null } },
    });
  });

  test.each([
    ['an unknown field', { bogus_field: 1 }, 'unknown_parameter', 'session.bogus_field'],
    [
      'an unknown field deep inside',
      { audio: { input: { gain: 2 } } },
      'unknown_parameter',
      'session.audio.input.gain',
    ],
    ['both modalities', { output_modalities: ['audio', 'text'] }, 'invalid_value', null],
    ['a wrong type', { instructions: 7 }, 'invalid_type', 'session.instructions'],
    [
      'another rate',
      { audio: { input: { format: { type: 'audio/pcm', rate: 16_000 } } } },
      'invalid_value',
      'session.audio.input.format.rate',
    ],
    ['a transcription session', { type: 'transcription' }, 'invalid_value', 'session.type'],
    [
      'a speed out of range',
      { audio: { output: { speed: 3 } } },
      'invalid_value',
      'session.audio.output.speed',
    ],
    ['an MCP tool', { tools: [{ type: 'mcp', server_label: 'x' }] }, 'invalid_value', null],
  ])('refuses a whole update that contains %s', async (_name, patch, code, param) => {
    const { connect } = await startHarness();
    const client = await connect();
    client.send({
      type: 'session.update',
      event_id: 'mine',
      session: { type: 'realtime', max_output_tokens: 7, ...patch },
    });
    const { error } = await client.next('error');
    expect(error).toMatchObject({ type: 'invalid_request_error', code, event_id: 'mine' });
    if (param !== null) expect(error.param).toBe(param);
    client.send({ type: 'session.update', session: { type: 'realtime' } });
    expect((await client.next('session.updated'))['session'].max_output_tokens).toBe('inf');
  });

  test('keeps its voice after the first audio', async () => {
    const { connect } = await startHarness({ answers: [['Hi.']] });
    const client = await connect();
    const choose = (voice: string): void =>
      client.send({
        type: 'session.update',
        session: { type: 'realtime', audio: { output: { voice } } },
      });
    choose('rms');
    await client.next('session.updated');
    client.send({ type: 'response.create' });
    await client.next('response.done');
    choose('slt');
    expect((await client.next('error'))['error'].code).toBe('cannot_update_voice');
    choose('rms');
    await client.next('session.updated');
  });
});

describe('REALTIME-SESSION-1: messages that are not events', () => {
  test.each([
    ['an unknown type', '{"type":"ping","event_id":"e"}', 'invalid_value', 'e'],
    ['no type', '{"event_id":"e"}', 'missing_required_parameter', 'e'],
    ['a type that is no text', '{"type":7,"event_id":"e"}', 'invalid_value', 'e'],
    ['a name of Object', '{"type":"toString","event_id":"e"}', 'invalid_value', 'e'],
    ['no JSON', 'not json', 'invalid_json', null],
    ['an array', '[1]', 'invalid_event', null],
    ['null', 'null', 'invalid_event', null],
    ['nothing', '', 'invalid_json', null],
    ['WebRTC only', '{"type":"output_audio_buffer.clear","event_id":"e"}', 'invalid_value', 'e'],
    [
      'a long id',
      `{"type":"response.cancel","event_id":"${'x'.repeat(600)}"}`,
      'string_above_max_length',
      'x'.repeat(600),
    ],
  ])('get an error for %s, and the session continues', async (_name, text, code, eventId) => {
    const { connect } = await startHarness({ answers: [['ok']] });
    const client = await connect();
    client.socket.send(text);
    expect((await client.next('error'))['error']).toMatchObject({
      type: 'invalid_request_error',
      code,
      event_id: eventId,
    });
    client.send(textOnly);
    client.send({ type: 'response.create' });
    expect((await client.next('response.done'))['response'].status).toBe('completed');
  });

  test('cause an error if they are binary frames', async () => {
    const { connect } = await startHarness();
    const client = await connect();
    client.socket.send(Buffer.alloc(64));
    expect((await client.next('error'))['error'].code).toBe('invalid_event');
    await client.fence();
  });
});
