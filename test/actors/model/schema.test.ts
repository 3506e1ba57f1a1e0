import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  objectSchema,
  validateWith,
  withInputNames,
  wrapSchema,
  wrongInputNames,
} from '../../../src/actors/model/schema.ts';
import { defineSubagent, defineTool } from '../../../src/index.ts';
import { providerRefusals } from '../../../src/testing/index.ts';

test('wraps a schema only once', () => {
  const schema = z.object({ city: z.string() });
  expect(wrapSchema(schema, 'one')).toBe(wrapSchema(schema, 'other'));
});

test('calls a lazy schema each time, because its result may change', () => {
  const cities = ['Rome'];
  const schema = () => jsonSchema({ type: 'string', enum: [...cities] });
  expect(wrapSchema(schema, 'first').jsonSchema).toMatchObject({ enum: ['Rome'] });
  cities.push('Paris');
  expect(wrapSchema(schema, 'second').jsonSchema).toMatchObject({ enum: ['Rome', 'Paris'] });
});

test('refuses an invalid schema each time, and names its path', () => {
  const schema = { type: 'object' };
  for (const where of ['here', 'there'])
    expect(() => wrapSchema(schema, where)).toThrow(`${where}: expected a zod schema`);
});

const trip = wrapSchema(
  z.object({ city: z.string(), departureDate: z.string(), seats: z.number().default(1) }),
  'trip',
);

describe('the names of the inputs', { tags: ['R6'] }, () => {
  test.each([
    [{ city: 'Rome', departureDate: '1 May' }, null],
    [{ city: 'Rome', departureDate: '1 May', seats: 2 }, null],
    [
      { city: undefined, departureDate: '1 May' },
      '"city" is missing; expected city, departureDate, seats',
    ],
    [
      { city: 'Rome', departure_dat: '1 May' },
      '"departureDate" is missing; "departure_dat" is unknown, did you mean "departureDate"?; ' +
        'expected city, departureDate, seats',
    ],
    [
      { city: 'Rome', departureDate: '1 May', colour: 'red' },
      '"colour" is unknown; expected city, departureDate, seats',
    ],
    [
      JSON.parse('{ "city": "Rome", "departureDate": "1 May", "__proto__": {} }'),
      '"__proto__" is unknown; expected city, departureDate, seats',
    ],
  ])('%j: %s', (input, wrong) => {
    expect(wrongInputNames(trip, input)).toBe(wrong);
  });

  test('include unlisted names if the schema allows them', () => {
    const loose = wrapSchema(z.looseObject({ city: z.string() }), 'loose');
    expect(wrongInputNames(loose, { city: 'Rome', colour: 'red' })).toBeNull();
    expect(wrongInputNames(loose, { colour: 'red' })).toContain('"city" is missing');
    for (const schema of [z.record(z.string(), z.string()), z.string()])
      expect(wrongInputNames(wrapSchema(schema, 'any'), { colour: 'red' })).toBeNull();
    expect(wrongInputNames(jsonSchema(Promise.resolve({})), { colour: 'red' })).toBeNull();
    expect(wrongInputNames(trip, 'Rome')).toBeNull();
  });

  test('fail before the schema checks the values', async () => {
    const strict = withInputNames(trip);
    expect(strict.jsonSchema).toBe(trip.jsonSchema);
    expect(await strict.validate?.({ town: 'Rome' })).toMatchObject({
      success: false,
      error: { code: 'INVALID_INPUT', message: expect.stringContaining('"town" is unknown') },
    });
    expect(await strict.validate?.({ city: 1, departureDate: '1 May' })).toMatchObject({
      success: false,
    });
    expect(await strict.validate?.({ city: 'Rome', departureDate: '1 May' })).toEqual({
      success: true,
      value: { city: 'Rome', departureDate: '1 May', seats: 1 },
    });
    const unchecked = withInputNames(jsonSchema({ type: 'object', required: ['a'] }));
    expect(await unchecked.validate?.({ a: 1 })).toEqual({ success: true, value: { a: 1 } });
    expect(await unchecked.validate?.({})).toMatchObject({ success: false });
  });
});

describe('the schema of arguments', () => {
  const circle = z.object({ kind: z.literal('circle'), radius: z.number() });
  const square = z.object({ kind: z.literal('square'), side: z.number(), tilt: z.number() });

  test.each<[string, unknown, object]>([
    [
      'a discriminated union has the properties of all its objects',
      z.discriminatedUnion('kind', [circle, square]),
      {
        type: 'object',
        properties: {
          kind: {
            anyOf: [
              { type: 'string', const: 'circle' },
              { type: 'string', const: 'square' },
            ],
          },
          radius: { type: 'number' },
          side: { type: 'number' },
          tilt: { type: 'number' },
        },
        required: ['kind'],
      },
    ],
    [
      'a union requires what all its objects require',
      z.union([z.object({ a: z.string(), b: z.string() }), z.object({ b: z.string() })]),
      { properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['b'] },
    ],
    [
      'an object that may be null is the object',
      z.object({ a: z.string() }).nullable(),
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    ],
    [
      'choices beside the properties of an MCP tool are left to the server',
      jsonSchema({
        type: 'object',
        properties: { id: { type: 'string' }, url: { type: 'string' } },
        oneOf: [{ required: ['id'] }, { required: ['url'] }],
      }),
      { type: 'object', properties: { id: {}, url: {} }, required: [] },
    ],
    [
      'parts of one object are all required',
      jsonSchema({
        allOf: [
          { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
          { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] },
        ],
      }),
      { properties: { a: {}, b: {} }, required: ['a', 'b'] },
    ],
    [
      'a reference at the root is resolved',
      jsonSchema({
        $ref: '#/definitions/At',
        definitions: { At: { type: 'object', properties: { at: { type: 'string' } } } },
      }),
      { type: 'object', properties: { at: { type: 'string' } } },
    ],
    ['anything is any object', z.any(), { type: 'object', properties: {} }],
    ['a record is an object', z.record(z.string(), z.number()), { properties: {} }],
    ['an object without properties has none', jsonSchema({ type: 'object' }), { properties: {} }],
    [
      'a tuple is a list of as many',
      z.object({ at: z.tuple([z.number(), z.string()]) }),
      {
        properties: {
          at: {
            type: 'array',
            items: { anyOf: [{ type: 'number' }, { type: 'string' }] },
            minItems: 2,
            maxItems: 2,
          },
        },
      },
    ],
    [
      'a tuple with a rest has no most',
      z.object({ at: z.tuple([z.number()], z.string()) }),
      { properties: { at: { items: { anyOf: [{ type: 'number' }, { type: 'string' }] } } } },
    ],
    [
      'a list without items holds anything, in a property of any name',
      jsonSchema({ type: 'object', properties: { default: { type: 'array' } } }),
      { properties: { default: { type: 'array', items: {} } } },
    ],
    [
      'an object that contains itself stays so',
      z.object({
        name: z.string(),
        get parts() {
          return z.array(z.object({ name: z.string() }));
        },
      }),
      { properties: { parts: { type: 'array' } } },
    ],
    [
      'transformations and preprocessing are told by their input',
      z.preprocess((value) => value, z.object({ at: z.string().transform(Number) })),
      { properties: { at: { type: 'string' } } },
    ],
  ])('%s', async (_, schema, told) => {
    const inputSchema = await objectSchema(schema, 'tool "look"').jsonSchema;
    expect(inputSchema).toMatchObject({ type: 'object', ...told });
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }];
    const tools = [{ type: 'function' as const, name: 'look', inputSchema }];
    expect(providerRefusals({ prompt, tools })).toEqual([]);
  });

  test('stays unchanged if every API accepts it, and is otherwise converted once', () => {
    const plain = z.object({ at: z.array(z.string()), by: z.union([z.string(), z.number()]) });
    expect(objectSchema(plain, 'a')).toBe(wrapSchema(plain, 'a'));
    const union = z.union([circle, square]);
    expect(objectSchema(union, 'a')).toBe(objectSchema(union, 'b'));
  });

  test('validates with the original schema', async () => {
    const schema = objectSchema(z.discriminatedUnion('kind', [circle, square]), 'a');
    expect(await validateWith(schema, { kind: 'circle', radius: 1 })).toMatchObject({ ok: true });
    expect(await validateWith(schema, { kind: 'square', radius: 1 })).toMatchObject({ ok: false });
  });

  const refused: readonly (readonly [string, unknown, RegExp])[] = [
    [
      'a text',
      z.string(),
      /expected the schema of an object, got "string"\. .*put it into a property/,
    ],
    ['a union with a text', z.union([circle, z.string()]), /got \$schema, anyOf/],
    ['nothing', z.never(), /expected the schema of an object/],
    ['a list', z.array(z.string()), /got "array"/],
    ['a date', z.object({ on: z.date() }), /Date cannot be represented/],
    [
      'a reference to itself',
      jsonSchema({ $ref: '#/definitions/A', definitions: { A: { $ref: '#/definitions/A' } } }),
      /expected the schema of an object/,
    ],
  ];

  test.each(refused)('fails when it is defined: %s', (_, schema, why) => {
    const parameters = schema as z.ZodType;
    const error = expect.objectContaining({
      code: 'INVALID_SCHEMA',
      message: expect.stringMatching(why),
    });
    expect(() =>
      defineTool({ name: 'look', description: 'Looks', parameters, execute: () => 1 }),
    ).toThrow(error);
    const tools = { look: { description: 'Looks', inputSchema: parameters, execute: () => 1 } };
    expect(() => defineSubagent({ name: 'one', instructions: 'Look.', tools })).toThrow(error);
  });
});
