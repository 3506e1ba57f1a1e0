import { jsonSchema } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { wrapSchema } from '../../../src/actors/model/schema.ts';

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
