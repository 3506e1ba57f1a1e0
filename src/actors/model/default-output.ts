// The model's view of a tool's output where the tool has no `toModelOutput`.

import type { JSONValue, ToolResultPart } from 'ai';

/** A tool's result as the model reads it. */
export type ToolResultOutput = ToolResultPart['output'];

/** Returns the default form for the model: text unchanged, anything else as JSON. */
export function defaultModelOutput(output: JSONValue): ToolResultOutput {
  return typeof output === 'string'
    ? { type: 'text', value: output }
    : { type: 'json', value: output };
}
