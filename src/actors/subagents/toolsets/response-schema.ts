// Uses a JSON Schema of a model as the schema of a result: the child is told exactly this schema, and its
// answer is checked against it.

import { jsonSchema, type JSONSchema7, type Schema } from 'ai';
import { z } from 'zod';
import { messageOf } from '../../../values/errors.ts';

export type ResponseSchema =
  | { readonly ok: true; readonly schema: Schema }
  /** The message for the model that wrote the schema. */
  | { readonly ok: false; readonly message: string };

/** Refuses keywords that cannot be checked (`if`, `not`, an external `$ref`, …) instead of ignoring them. */
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
