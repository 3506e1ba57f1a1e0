import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { LiveServerMessage } from '@google/genai';
import {
  durationMs,
  parseServerMessage,
  type ServerMessage,
} from '../../../src/adapters/gemini-live/wire.ts';

// `never` if every field that the adapter reads exists in the official type and has a type that the adapter's schema
// accepts; otherwise the names of the fields that differ.
type Drift<Read, Official> = {
  [Key in keyof Read]-?: Key extends keyof Official
    ? NonNullable<Official[Key]> extends NonNullable<Read[Key]>
      ? never
      : NonNullable<Read[Key]> extends readonly (infer ReadEntry)[]
        ? NonNullable<Official[Key]> extends readonly (infer OfficialEntry)[]
          ? Drift<ReadEntry, OfficialEntry>
          : Key
        : NonNullable<Read[Key]> extends object
          ? Drift<NonNullable<Read[Key]>, NonNullable<Official[Key]>>
          : Key
    : Key;
}[keyof Read];

describe('the declared messages', () => {
  test('contain only fields of the official types', () => {
    expectTypeOf<Drift<ServerMessage, LiveServerMessage>>().toBeNever();
  });

  test('the drift check names a field that differs from the official type', () => {
    expectTypeOf<Drift<{ a?: { b: string } }, { a: { b: number } }>>().toEqualTypeOf<'b'>();
    expectTypeOf<Drift<{ gone: string }, { a: string }>>().toEqualTypeOf<'gone'>();
    expectTypeOf<Drift<{ a: { b: string }[] }, { a: { b: number }[] }>>().toEqualTypeOf<'b'>();
  });
});

describe('parseServerMessage', () => {
  test('reads declared fields, and drops known but unused ones', () => {
    const text = JSON.stringify({
      serverContent: {
        turnComplete: true,
        groundingMetadata: { a: 1 },
        modelTurn: { role: 'model', parts: [{ text: 'Hi', thoughtSignature: 'x' }] },
      },
    });
    expect(parseServerMessage(text)).toMatchObject({
      kind: 'read',
      unknown: [],
      message: {
        serverContent: { turnComplete: true, modelTurn: { parts: [{ text: 'Hi' }] } },
      },
    });
  });

  test('treats null as missing', () => {
    const parsed = parseServerMessage('{"serverContent":{"interrupted":null},"goAway":null}');
    expect(parsed).toMatchObject({ kind: 'read', unknown: [] });
  });

  test('names unknown fields', () => {
    const parsed = parseServerMessage('{"news":1,"serverContent":{"mood":2}}');
    expect(parsed).toMatchObject({ kind: 'read', unknown: ['news', 'serverContent.mood'] });
  });

  test('names the path of an invalid field', () => {
    const parsed = parseServerMessage('{"serverContent":{"turnComplete":"yes"}}');
    expect(parsed).toMatchObject({
      kind: 'malformed',
      message: expect.stringContaining('serverContent.turnComplete'),
    });
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(parseServerMessage(text).kind).toMatch(/read|malformed/);
      }),
    );
  });
});

test.each([
  ['9.5s', 9_500],
  ['60s', 60_000],
  ['0.0004s', 0],
  ['10', null],
  ['', null],
  [undefined, null],
])('reads the duration %j as %j ms', (text, ms) => {
  expect(durationMs(text)).toBe(ms);
});
