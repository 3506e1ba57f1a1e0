// Bounds the output of a tool as it is kept and as the model reads it: JSON of a limited size.
//
// Invariants
//   TOOL-OUTPUT-1. The output is plain JSON, or an error that says why it is not.
//   TOOL-OUTPUT-2. An output that is too large is cut, and marked with `truncated` and `originalBytes`.

import { convertDataContentToBase64String, type JSONValue } from 'ai';
import { z } from 'zod';
import { asJson, byteLength, isLongerThan } from '../../values/json.ts';
import { head } from '../../values/clip.ts';
import type { ToolResultOutput } from './default-output.ts';

/** About 64 K tokens: more than most models should read of one call. */
export const DEFAULT_MAX_OUTPUT_BYTES = 256 * 1024;

/** Pictures and sound for the model cannot be cut, and are larger. */
const MAX_CONTENT_BYTES = 8 * 1024 * 1024;

/** Replaces an output that was too large. */
export interface Truncated {
  readonly truncated: true;
  /** Its size in UTF-8: of the text itself for a text, otherwise of its JSON. */
  readonly originalBytes: number;
  /** The beginning of the output. */
  readonly text: string;
}

export type Kept<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string };

/** Returns a tool's output as JSON of at most `maxBytes`. The message of a refusal names the problem. */
export function keepOutput(output: unknown, maxBytes: number): Kept<JSONValue> {
  if (typeof output === 'string')
    return { ok: true, value: isLongerThan(output, maxBytes) ? cut(output, maxBytes) : output };
  const json = asJson(output);
  if (!json.ok) return { ok: false, message: `returned what is not JSON: ${json.message}` };
  const { text, value } = json;
  return { ok: true, value: isLongerThan(text, maxBytes) ? cut(text, maxBytes) : value };
}

const outputSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.enum(['text', 'error-text']), value: z.string() }),
  z.looseObject({ type: z.enum(['json', 'error-json']), value: z.unknown() }),
  z.looseObject({
    type: z.literal('content'),
    value: z.array(z.looseObject({ type: z.string() })),
  }),
  z.looseObject({ type: z.literal('execution-denied'), reason: z.string().optional() }),
]);

/** Checks the result of `toModelOutput`: bytes become base64, and the size is bounded. */
export function keepModelOutput(converted: unknown, maxBytes: number): Kept<ToolResultOutput> {
  const checked = outputSchema.safeParse(converted);
  if (!checked.success)
    return {
      ok: false,
      message: `toModelOutput gave no tool result output: ${z.prettifyError(checked.error)}`,
    };
  const json = asJson(checked.data, bytesAsBase64);
  if (!json.ok)
    return { ok: false, message: `toModelOutput gave what is not JSON: ${json.message}` };
  const value = json.value as ToolResultOutput;
  if (!isLongerThan(json.text, value.type === 'content' ? MAX_CONTENT_BYTES : maxBytes))
    return { ok: true, value };
  switch (value.type) {
    case 'content':
      return {
        ok: false,
        message: `toModelOutput gave ${byteLength(json.text)} bytes of content, more than ${MAX_CONTENT_BYTES}`,
      };
    case 'execution-denied':
      return { ok: true, value: { type: 'execution-denied' } };
    case 'text':
    case 'json':
      return { ok: true, value: { type: 'json', value: cutValue(value.value, maxBytes) } };
    case 'error-text':
    case 'error-json':
      return { ok: true, value: { type: 'error-json', value: cutValue(value.value, maxBytes) } };
  }
}

function cutValue(value: JSONValue, maxBytes: number): JSONValue {
  return cut(typeof value === 'string' ? value : JSON.stringify(value), maxBytes);
}

function cut(text: string, maxBytes: number): JSONValue {
  const originalBytes = byteLength(text);
  let characters = maxBytes;
  // Quoting makes a text longer by an amount that depends on the text.
  for (;;) {
    const truncated = { truncated: true, originalBytes, text: head(text, characters) } as const;
    if (characters === 0 || !isLongerThan(JSON.stringify(truncated), maxBytes))
      return truncated satisfies Truncated;
    characters = Math.floor(characters / 2);
  }
}

function bytesAsBase64(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // The toJSON of a Buffer has converted it to an object before this is called.
  const original = this[key];
  return original instanceof Uint8Array || original instanceof ArrayBuffer
    ? convertDataContentToBase64String(original)
    : value;
}
