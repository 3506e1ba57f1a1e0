// A JSON Schema that a model wrote, as the schema of a result: the child is told exactly
// these words, and what it answers is checked against them.

import { jsonSchema, type JSONSchema7, type Schema } from 'ai';
import { z } from 'zod';
import { messageOf } from '../../../values/errors.ts';

export type ResponseSchema =
  | { readonly ok: true; readonly schema: Schema }
  /** Written for the model that wants it. */
  | { readonly ok: false; readonly message: string };

/** What cannot be checked (`if`, `not`, a `$ref` to elsewhere, …) is refused here, not believed later. */
export function responseSchemaOf(raw: Readonly<Record<string, unknown>>): ResponseSchema {
  let checker: z.ZodType;
  try {
    checker = z.fromJSONSchema(raw);
  } catch (error) {
    return { ok: false, message: `responseSchema: ${messageOf(error)}` };
  }
  const schema = jsonSchema(raw as JSONSchema7, {
    validate(value) {
      const checked = checker.safeParse(value);
      return checked.success
        ? { success: true, value: checked.data }
        : { success: false, error: checked.error };
    },
  });
  return { ok: true, schema };
}
