// Describes a problem in a client event in the same way as the real server. Source: captures of
// api.openai.com/v1/realtime, 2026-09.

import type { z } from 'zod';
import { Refusal } from './wire-events.ts';

/** Returns the first problem. `value`: the validated value. `root`: its name in messages. */
export function refusalOf(error: z.ZodError, value: unknown, root = ''): Refusal {
  const [issue] = error.issues;
  if (issue === undefined) return new Refusal('invalid_event', 'Invalid event.');
  const param = nameOf(root, issue.path);
  if (issue.code === 'unrecognized_keys') {
    const unknown = nameOf(root, [...issue.path, issue.keys[0] ?? '']);
    return new Refusal('unknown_parameter', `Unknown parameter: '${unknown}'.`, unknown);
  }
  const received = valueAt(value, issue.path);
  if (received === undefined) {
    return new Refusal(
      'missing_required_parameter',
      `Missing required parameter: '${param}'.`,
      param,
    );
  }
  if (issue.code === 'invalid_type') {
    const message = `Invalid type for '${param}': expected ${issue.expected}, but got ${typeOf(received)} instead.`;
    return new Refusal('invalid_type', message, param);
  }
  if (issue.code === 'too_big' && typeof received === 'string') {
    const message = `Invalid '${param}': string too long. Expected a string with maximum length ${issue.maximum}, but got a string with length ${received.length} instead.`;
    return new Refusal('string_above_max_length', message, param);
  }
  return new Refusal('invalid_value', `Invalid value for '${param}': ${issue.message}.`, param);
}

function nameOf(root: string, path: readonly PropertyKey[]): string {
  let name = root;
  for (const key of path) {
    if (typeof key === 'number') name += `[${key}]`;
    else name += name === '' ? String(key) : `.${String(key)}`;
  }
  return name;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Record<PropertyKey, unknown>)[key];
  }
  return found;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
