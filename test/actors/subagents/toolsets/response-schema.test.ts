import { describe, expect, test } from 'vitest';
import { responseSchemaOf } from '../../../../src/actors/subagents/toolsets/spawn-plan.ts';

const count = {
  type: 'object',
  properties: { count: { type: 'integer', minimum: 0 } },
  required: ['count'],
  additionalProperties: false,
};

describe('a responseSchema in JSON Schema', { tags: ['M1'] }, () => {
  test('reaches the child unchanged, and validates its answer', async () => {
    const made = responseSchemaOf(count);
    if (!made.ok) throw new Error(made.message);
    expect(made.schema.jsonSchema).toEqual(count);
    expect(await made.schema.validate?.({ count: 3 })).toEqual({
      success: true,
      value: { count: 3 },
    });
    expect(await made.schema.validate?.({ count: -1 })).toMatchObject({ success: false });
    expect(await made.schema.validate?.({})).toMatchObject({ success: false });
  });

  test.each([
    { if: { type: 'string' }, then: { minLength: 1 } },
    { not: { type: 'string' } },
    { $ref: 'https://example.org/schema.json' },
    { type: 'colour' },
  ])('fails if it cannot be checked: %j', (schema) => {
    expect(responseSchemaOf(schema)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^responseSchema: /) as string,
    });
  });
});
