import fc from 'fast-check';
import type { RealtimeSessionCreateResponse } from 'openai/resources/realtime/client-secrets';
import type {
  RealtimeConversationItemFunctionCall,
  RealtimeServerEvent,
} from 'openai/resources/realtime/realtime';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { parseServerEvent, type ServerEvent } from '../../../src/adapters/openai-realtime/wire.ts';
import type { Drift } from '../socket/drift.ts';

type DriftOf<Type extends ServerEvent['type']> = Drift<
  Extract<ServerEvent, { type: Type }>,
  Extract<RealtimeServerEvent, { type: Type }>
>;

describe('the declared events', () => {
  test('contain only fields of the official types', () => {
    expectTypeOf<
      { [Type in Exclude<ServerEvent['type'], 'session.updated'>]: DriftOf<Type> }[Exclude<
        ServerEvent['type'],
        'session.updated'
      >]
    >().toBeNever();
    // The event has the type of a request; the server's answer has a different type.
    expectTypeOf<
      Drift<
        // Only `localVoice` sends `extensions`.
        Omit<
          NonNullable<Extract<ServerEvent, { type: 'session.updated' }>['session']>,
          'extensions'
        >,
        RealtimeSessionCreateResponse
      >
    >().toBeNever();
    expectTypeOf<
      Drift<
        Extract<ServerEvent, { type: 'response.output_item.done' }>['item'],
        RealtimeConversationItemFunctionCall
      >
    >().toBeNever();
  });

  test('the drift check names a field that differs from the official type', () => {
    expectTypeOf<Drift<{ a?: { b: string } }, { a: { b: number } }>>().toEqualTypeOf<'b'>();
    expectTypeOf<Drift<{ gone: string }, { a: string }>>().toEqualTypeOf<'gone'>();
  });
});

describe('parseServerEvent', () => {
  test('reads declared fields, and drops all others', () => {
    const text = JSON.stringify({
      type: 'input_audio_buffer.speech_started',
      event_id: 'e',
      item_id: 'item_1',
      audio_start_ms: 120,
      invented: true,
    });
    expect(parseServerEvent(text)).toEqual({
      kind: 'read',
      event: { type: 'input_audio_buffer.speech_started', item_id: 'item_1', audio_start_ms: 120 },
    });
  });

  test('treats null as missing for an optional field', () => {
    for (const response of [{ id: 'r' }, { id: 'r', status: null, metadata: null }]) {
      const text = JSON.stringify({ type: 'response.done', response });
      expect(parseServerEvent(text)).toMatchObject({ kind: 'read' });
    }
  });

  test('recognises events that it ignores', () => {
    const text = '{"type":"response.output_audio.done","item_id":7}';
    expect(parseServerEvent(text)).toEqual({ kind: 'ignored', type: 'response.output_audio.done' });
  });

  test.each(['response.sung', 'toString', '__proto__', 'constructor'])(
    'marks %s as unknown',
    (type) => {
      expect(parseServerEvent(JSON.stringify({ type }))).toMatchObject({ kind: 'unknown', type });
    },
  );

  test.each([
    ['not json', 'Expected JSON'],
    ['', 'Expected JSON'],
    ['null', 'Expected an object with a `type`'],
    ['[]', 'Expected an object with a `type`'],
    ['"error"', 'Expected an object with a `type`'],
    ['{"type":7}', 'Expected an object with a `type`'],
    ['{"type":"response.done"}', 'Malformed response.done: response'],
    ['{"type":"error","error":"no"}', 'Malformed error: error'],
    [
      '{"type":"input_audio_buffer.speech_started","item_id":"i","audio_start_ms":"soon"}',
      'Malformed input_audio_buffer.speech_started: audio_start_ms',
    ],
  ])('marks %s as malformed', (text, message) => {
    const parsed = parseServerEvent(text);
    expect(parsed).toMatchObject({ kind: 'malformed' });
    expect(parsed.kind === 'malformed' && parsed.message).toContain(message);
  });

  test('never throws, whatever the JSON contains', () => {
    const types = fc.constantFrom('error', 'response.done', 'response.output_audio.delta', 'odd');
    const event = fc
      .tuple(types, fc.dictionary(fc.string(), fc.jsonValue()))
      .map(([type, fields]) => ({ ...fields, type }));
    fc.assert(
      fc.property(fc.oneof(event, fc.jsonValue()), (value) => {
        expect(parseServerEvent(JSON.stringify(value)).kind).toMatch(
          /^(read|ignored|unknown|malformed)$/,
        );
      }),
    );
  });
});
