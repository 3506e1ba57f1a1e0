import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { withInputNames, wrapSchema, wrongInputNames } from '../../../src/actors/model/schema.ts';

test('a schema is wrapped once, however often it is given', () => {
  const schema = z.object({ city: z.string() });
  expect(wrapSchema(schema, 'one')).toBe(wrapSchema(schema, 'other'));
});

test('a lazy schema is asked each time: it may be another one by then', () => {
  const cities = ['Rome'];
  const schema = () => jsonSchema({ type: 'string', enum: [...cities] });
  expect(wrapSchema(schema, 'first').jsonSchema).toMatchObject({ enum: ['Rome'] });
  cities.push('Paris');
  expect(wrapSchema(schema, 'second').jsonSchema).toMatchObject({ enum: ['Rome', 'Paris'] });
});

test('a refused value is refused again, with its path', () => {
  const schema = { type: 'object' };
  for (const where of ['here', 'there'])
    expect(() => wrapSchema(schema, where)).toThrow(`${where}: expected a zod schema`);
});

const trip = wrapSchema(
  z.object({ city: z.string(), departureDate: z.string(), seats: z.number().default(1) }),
  'trip',
);

describe('[R6] the names of the inputs', () => {
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

  test('a schema that does not say which there are takes every name', () => {
    const loose = wrapSchema(z.looseObject({ city: z.string() }), 'loose');
    expect(wrongInputNames(loose, { city: 'Rome', colour: 'red' })).toBeNull();
    expect(wrongInputNames(loose, { colour: 'red' })).toContain('"city" is missing');
    for (const schema of [z.record(z.string(), z.string()), z.string()])
      expect(wrongInputNames(wrapSchema(schema, 'any'), { colour: 'red' })).toBeNull();
    expect(wrongInputNames(jsonSchema(Promise.resolve({})), { colour: 'red' })).toBeNull();
    expect(wrongInputNames(trip, 'Rome')).toBeNull();
  });

  test('are looked at before the values, which stay the affair of the schema', async () => {
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
