import type { ServerEvent as OfficialEvent } from 'openai/resources/live/live';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { parseServerEvent, type ServerEvent } from '../../../src/adapters/openai-live/wire.ts';
import type { Drift } from '../socket/drift.ts';

type DriftOf<Type extends ServerEvent['type']> = Drift<
  Extract<ServerEvent, { type: Type }>,
  Extract<OfficialEvent, { type: Type }>
>;

test('the declared events contain only fields of the official types', () => {
  expectTypeOf<{ [Type in ServerEvent['type']]: DriftOf<Type> }[ServerEvent['type']]>().toBeNever();
});

describe('parseServerEvent', () => {
  test('reads declared fields, and drops all others', () => {
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

  test('recognises events that it ignores', () => {
    const text = '{"type":"response.event","event":"whatever shape"}';
    expect(parseServerEvent(text)).toEqual({ kind: 'ignored', type: 'response.event' });
  });

  test.each(['session.sung', 'toString', '__proto__', 'constructor'])(
    'marks a type as unknown: %s',
    (type) => {
      const raw: unknown = JSON.parse(`{"type":"${type}"}`);
      expect(parseServerEvent(JSON.stringify(raw))).toEqual({ kind: 'unknown', type, raw });
    },
  );

  test.each(['', 'null', '[]', '7', '{"type":7}', '{'])(
    'marks text that is not an event as malformed: %s',
    (text) => {
      expect(parseServerEvent(text)).toMatchObject({ kind: 'malformed' });
    },
  );

  test('reads an error without a code or an event', () => {
    const text = '{"type":"error","error":{"type":"server_error","code":null,"message":"Oh."}}';
    expect(parseServerEvent(text)).toMatchObject({ kind: 'read' });
  });
});
