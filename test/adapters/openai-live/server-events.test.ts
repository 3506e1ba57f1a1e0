import type { ServerEvent as OfficialEvent } from 'openai/resources/live/live';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { parseServerEvent, type ServerEvent } from '../../../src/adapters/openai-live/wire.ts';
import type { Drift } from '../socket/drift.ts';

type DriftOf<Type extends ServerEvent['type']> = Drift<
  Extract<ServerEvent, { type: Type }>,
  Extract<OfficialEvent, { type: Type }>
>;

test('drift: each field that we read is a field of the official type', () => {
  expectTypeOf<{ [Type in ServerEvent['type']]: DriftOf<Type> }[ServerEvent['type']]>().toBeNever();
});

describe('parseServerEvent', () => {
  test('reads what we read, and drops other fields', () => {
    const text = JSON.stringify({
      type: 'session.delegation.created',
      event_id: 'e',
      offset_ms: 4600,
      delegation: { id: 'item_1', type: 'delegation', target: 'client' },
    });
    expect(parseServerEvent(text)).toEqual({
      kind: 'read',
      event: {
        type: 'session.delegation.created',
        delegation: { id: 'item_1', target: 'client' },
      },
    });
  });

  test('knows what it ignores', () => {
    const text = '{"type":"response.event","event":"whatever shape"}';
    expect(parseServerEvent(text)).toEqual({ kind: 'ignored', type: 'response.event' });
  });

  test.each(['session.sung', 'toString', '__proto__', 'constructor'])(
    'a type that it does not know: %s',
    (type) => {
      const raw: unknown = JSON.parse(`{"type":"${type}"}`);
      expect(parseServerEvent(JSON.stringify(raw))).toEqual({ kind: 'unknown', type, raw });
    },
  );

  test.each(['', 'null', '[]', '7', '{"type":7}', '{'])('no event: %s', (text) => {
    expect(parseServerEvent(text)).toMatchObject({ kind: 'malformed' });
  });

  test('an error without a code or an event', () => {
    const text = '{"type":"error","error":{"type":"server_error","code":null,"message":"Oh."}}';
    expect(parseServerEvent(text)).toMatchObject({ kind: 'read' });
  });
});
