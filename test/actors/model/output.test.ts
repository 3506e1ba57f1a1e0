import { jsonSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkOutput, outputInstructions } from '../../../src/actors/model/output.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

const schema = z.object({ title: z.string(), pages: z.number().default(1) });

describe('checkOutput', () => {
  test.each([
    ['bare', '{"title":"A"}'],
    ['with space around', '\n  {"title":"A"}\n'],
    ['in a fence', '```json\n{"title":"A"}\n```'],
    ['in a fence on one line', '```json {"title":"A"} ```'],
    ['in a fence without a language', '```\n{"title":"A"}\n```'],
    ['in a fence of Windows', '```JSON\r\n{"title":"A"}\r\n```\r\n'],
    ['in a fence with words around', 'Here it is:\n```json\n{"title":"A"}\n```\nDone.'],
  ])('JSON %s', async (_, text) => {
    expect(await checkOutput(schema, text)).toStrictEqual({
      ok: true,
      value: { title: 'A', pages: 1 },
    });
  });

  test('treats a code fence inside JSON text as text', async () => {
    const title = '```json\n{"title":"inner"}\n```';
    const json = JSON.stringify({ title });
    for (const text of [json, `\`\`\`json\n${json}\n\`\`\``])
      expect(await checkOutput(schema, text)).toMatchObject({ value: { title } });
  });

  test.each([
    ['words', 'It is done.', 'it is not JSON'],
    ['nothing', '', 'it is not JSON'],
    ['cut JSON', '{"title":"A', 'it is not JSON'],
    ['a fence that is not closed', '```json\n{"title":"A"}', 'it is not JSON'],
    ['a broken fence', '```json\n{"title":\n```', 'it is not JSON'],
    ['another shape', '{"title":7}', 'expected string, received number'],
  ])('gives the model the reason for the refusal: %s', async (_, text, message) => {
    const checked = await checkOutput(schema, text);
    expect(checked.ok).toBe(false);
    expect(checked.ok ? {} : checked.retry).toEqual({
      says: expect.stringContaining('Answer again'),
      quotes: { reason: expect.stringContaining(message) },
    });
  });

  test('supports any tool schema, including one with asynchronous or throwing refinements', async () => {
    const never = jsonSchema(
      { type: 'object' },
      { validate: () => ({ success: false, error: new Error('never right') }) },
    );
    expect(await checkOutput(never, '{}')).toMatchObject({
      ok: false,
      reason: expect.stringContaining('never right'),
    });
    const refined = schema.refine(async ({ title }) => title !== 'taken', 'the title is taken');
    expect(await checkOutput(refined, '{"title":"free"}')).toMatchObject({ ok: true });
    expect(await checkOutput(refined, '{"title":"taken"}')).toMatchObject({
      reason: expect.stringContaining('the title is taken'),
    });
    const throwing = schema.refine(() => {
      throw new Error('database is down');
    });
    expect(await checkOutput(throwing, '{"title":"A"}')).toMatchObject({
      reason: expect.stringContaining('database is down'),
    });
  });

  test("returns the schema's result as JSON, or refuses the result if JSON cannot represent it", async () => {
    const dated = z.object({ at: z.string().transform((iso) => new Date(iso)) });
    expect(await checkOutput(dated, '{"at":"2030-01-01"}')).toStrictEqual({
      ok: true,
      value: { at: '2030-01-01T00:00:00.000Z' },
    });
    const big = z.object({ n: z.number().transform((n) => BigInt(n)) });
    expect(await checkOutput(big, '{"n":1}')).toMatchObject({ ok: false });
  });

  test('throws a ConfigurationError for a value that is not a schema', async () => {
    await expect(checkOutput({ type: 'object' }, '{}')).rejects.toThrow(ConfigurationError);
    expect(() => outputInstructions(undefined)).toThrow('outputSchema: expected a zod schema');
  });
});

test('describes the shape to the model in the instructions', () => {
  const instructions = outputInstructions(schema);
  expect(instructions).toContain('nothing but JSON');
  expect(instructions).toContain('"title":{"type":"string"}');
});
