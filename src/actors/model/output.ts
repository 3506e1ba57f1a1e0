// Checks a subagent's output: its last answer must be JSON that matches the output schema. The instructions describe
// the schema. An answer that does not match is returned to the model with the reason.

import type { JSONValue, LanguageModel, Schema } from 'ai';
import { messageOf } from '../../values/errors.ts';
import { asJson, isJson, isTooDeep, TOO_DEEP } from '../../values/json.ts';
import { clip } from '../../values/clip.ts';
import type { Note } from '../notes/note.ts';
import { knownJsonSchema, validateWith, wrapSchema } from './schema.ts';
import { structuredFor, type Structured } from './model.ts';
import { refusedAnswer } from './refused-answer.ts';

export type CheckedOutput =
  | { readonly ok: true; readonly value: JSONValue }
  /** The problem with an answer, and the note that asks the model to try again. */
  | { readonly ok: false; readonly reason: string; readonly retry: Note };

const MAX_REASON_CHARACTERS = 4000;

function outputSchemaOf(schema: unknown): Schema {
  return wrapSchema(schema, 'outputSchema');
}

/**
 * Returns the format of the provider's structured output for the schema; null if the format can only be described in
 * the instructions.
 * @throws {ConfigurationError} INVALID_SCHEMA if the schema cannot be described to a model.
 */
export function structuredOutput(
  model: LanguageModel,
  schema: unknown,
  report: (error: unknown) => void,
): Structured | null {
  return structuredFor(model, outputSchemaOf(schema), report);
}

/**
 * Returns the text to add to the instructions, which describes the expected JSON. With `toolName`, the JSON is that
 * tool's `result` argument.
 * @throws {ConfigurationError} INVALID_SCHEMA if the schema cannot be described to a model.
 */
export function outputInstructions(schema: unknown, toolName?: string): string {
  const known = knownJsonSchema(outputSchemaOf(schema));
  const shape = known
    ? `that fits this JSON Schema:\n${JSON.stringify(known)}`
    : 'of the agreed shape';
  return toolName === undefined
    ? `When you are done, answer with nothing but JSON ${shape}`
    : `When you are done, call ${toolName}; its \`result\` is JSON ${shape}`;
}

/**
 * Parses the model's last text as JSON and validates it; the JSON may be inside a Markdown fence. Returns the output of
 * the schema as JSON. Asynchronous refinements are permitted.
 * @throws {ConfigurationError} INVALID_SCHEMA if the schema cannot be described to a model.
 */
export async function checkOutput(schema: unknown, text: string): Promise<CheckedOutput> {
  const parsed = parseAnswer(text);
  return parsed.ok
    ? checkResult(schema, parsed.value)
    : retry(`it is not JSON (${parsed.message})`);
}

/**
 * Validates a value that is already parsed, like `checkOutput`.
 * @throws {ConfigurationError} INVALID_SCHEMA if the schema cannot be described to a model.
 */
export async function checkResult(schema: unknown, value: unknown): Promise<CheckedOutput> {
  if (isTooDeep(value)) return retry(TOO_DEEP);
  const validated = await validateWith(outputSchemaOf(schema), value);
  if (!validated.ok) return retry(messageOf(validated.error.cause ?? validated.error));
  if (isJson(validated.value)) return { ok: true, value: validated.value };
  const json = asJson(validated.value);
  return json.ok ? { ok: true, value: json.value } : retry(json.message);
}

type Parsed =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

function parseAnswer(text: string): Parsed {
  const whole = parse(text);
  if (whole.ok) return whole;
  const fenced = insideFence(text);
  return fenced === null ? whole : parse(fenced);
}

/** Returns the text between the first fence and the last one, because the JSON itself may contain fences. */
function insideFence(text: string): string | null {
  const opening = /```(?:json)?/i.exec(text);
  if (!opening) return null;
  const start = opening.index + opening[0].length;
  const end = text.lastIndexOf('```');
  return end < start ? null : text.slice(start, end);
}

function parse(text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

function retry(reason: string): CheckedOutput {
  const clipped = clip(reason, MAX_REASON_CHARACTERS);
  return {
    ok: false,
    reason: clipped,
    retry: refusedAnswer(clipped),
  };
}
