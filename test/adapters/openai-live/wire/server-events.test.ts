import type { ServerEvent as OfficialEvent } from 'openai/resources/live/live';
import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  parseServerEvent,
  type ServerEvent,
} from '../../../../src/adapters/openai-live/wire/index.ts';

// `never` when each field that we read is in the official type and has a type that our schema
// accepts; else the names of the fields that drifted.
type KeyOf<Union> = Union extends unknown ? keyof Union : never;
type ValueOf<Union, Key> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : never
  : never;
type Drift<Read, Official> = {
  [Key in keyof Read]-?: Key extends KeyOf<Official>
    ? NonNullable<ValueOf<Official, Key>> extends NonNullable<Read[Key]>
      ? never
      : NonNullable<Read[Key]> extends object
        ? Drift<NonNullable<Read[Key]>, NonNullable<ValueOf<Official, Key>>>
        : Key
    : Key;
}[keyof Read];
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
