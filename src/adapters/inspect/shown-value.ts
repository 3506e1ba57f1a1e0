// Converts any value to plain data that may be shown in the inspector. The data has a limited size, and its texts are
// redacted. The conversion works from the top down and stops when the size limit is reached, so a large value costs no
// more than its visible part.
//
// Redaction uses an allow-list. The texts of the user and the model are always hidden. Values that distinguish states,
// events and actors are shown.
//
// Invariants
//   SHOWN-VALUE-1. The result is JSON: no cycles, no functions, no objects with behaviour.
//   SHOWN-VALUE-2. Parts that do not fit are omitted and marked: `[truncated …]`.
//   SHOWN-VALUE-3. Only plain objects, lists, maps and sets are traversed. For any other object (a socket, a
//       controller, audio), only the kind is shown, and no getter is called.
//   REDACT-1. A text is shown only if its key is known (ids, `type`, `status` …) and the text looks like a name: ASCII
//       without spaces, at most 64 characters.
//   REDACT-2. Within a payload (tool arguments, messages, results …), no value is shown, not even numbers and ids,
//       because the meaning of its keys is unknown.
//   REDACT-3. A key is shown only if it looks like a name.
//   REDACT-4. Values that look like credentials (values/secrets.ts) are never shown.

import { secretRemover } from '../../values/secrets.ts';

/** The number of bytes that are left in a message for all its values. */
export interface Budget {
  bytesLeft: number;
}

const MAX_DEPTH = 10;
const MAX_TEXT_LENGTH = 2_000;
/** The size of the quotes, the colon and the comma. */
const PUNCTUATION_BYTES = 4;
/** The size of an escape such as `\u001f`. */
const MAX_BYTES_OF_CHAR = 6;

type Fields = Readonly<Record<string, unknown>>;

interface Walk {
  readonly redact: Redact;
  readonly budget: Budget;
  readonly path: string[];
  /** This value's ancestors. */
  readonly above: object[];
}

/** Returns the part of a value that may be shown. `section` names the part of the message; see `Redact`. */
export function shownValue(
  value: unknown,
  section: string,
  redact: Redact,
  budget: Budget,
): unknown {
  return walk(value, { redact, budget, path: [section], above: [] });
}

function walk(value: unknown, at: Walk): unknown {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return shownLeaf(value, at);
    case 'function':
      return record({ type: value.name }, at);
    case 'object':
      if (value === null) return spend(null, 4, at);
      return at.above.includes(value) ? spend('[circular]', 10, at) : inside(value, at);
    case 'undefined':
    case 'symbol':
      return undefined;
  }
}

function shownLeaf(value: Leaf, at: Walk): unknown {
  const shown = at.redact(value, at.path);
  if (typeof shown === 'number' || typeof shown === 'boolean') return spend(shown, 25, at);
  const text = typeof shown === 'object' ? '[redacted]' : String(shown);
  const room = Math.max(0, Math.floor(at.budget.bytesLeft / MAX_BYTES_OF_CHAR));
  const length = Math.min(MAX_TEXT_LENGTH, room);
  const cut =
    text.length > length
      ? `${text.slice(0, length)}[truncated ${text.length - length} chars]`
      : text;
  return spend(cut, jsonBytesOf(cut), at);
}

function inside(value: object, at: Walk): unknown {
  if (at.above.length >= MAX_DEPTH) return spend('[truncated: too deep]', 24, at);
  at.above.push(value);
  const shown = structure(value, at);
  at.above.pop();
  return shown;
}

function structure(value: object, at: Walk): unknown {
  if (Array.isArray(value)) return list(value, at);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    return record('_nodes' in value ? snapshotFields(value) : (value as Fields), at);
  }
  if (value instanceof Set) return list([...value], at);
  if (value instanceof Map) return record(mapFields(value), at);
  if (value instanceof Error) return record(errorFields(value), at);
  if (value instanceof Date) return shownLeaf(dateText(value), at);
  if (isActorRef(value)) return record({ xstate$$type: 1, id: value.id }, at);
  return spend(kindOf(value), 40, at);
}

function list(items: readonly unknown[], at: Walk): unknown[] {
  const shown: unknown[] = [];
  for (const item of items) {
    if (at.budget.bytesLeft <= 0) {
      shown.push(`[truncated: ${items.length - shown.length} more]`);
      break;
    }
    shown.push(walk(item, at) ?? null);
  }
  return shown;
}

function record(fields: Fields, at: Walk): object {
  const shown: Record<string, unknown> = {};
  const keys = Object.keys(fields);
  for (let index = 0; index < keys.length; index += 1) {
    if (at.budget.bytesLeft <= 0) {
      shown['[truncated]'] = `${keys.length - index} more`;
      break;
    }
    const key = keys[index] as string;
    const name = at.redact === redactNothing ? key.slice(0, MAX_TEXT_LENGTH) : redactKey(key);
    at.budget.bytesLeft -= jsonBytesOf(name);
    at.path.push(key);
    const item = walk(fields[key], at);
    at.path.pop();
    if (item === undefined) continue;
    // Two hidden or cut keys must not collide, and `__proto__` must not become a property name.
    shown[name === key && key !== '__proto__' ? name : `${name} (${index})`] = item;
  }
  return shown;
}

function spend<T>(shown: T, bytes: number, { budget }: Walk): T {
  budget.bytesLeft -= bytes + PUNCTUATION_BYTES;
  return shown;
}

/** Returns an upper bound for the text's size in JSON, in bytes. */
function jsonBytesOf(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || (code >= 0xd8_00 && code <= 0xdf_ff)) bytes += MAX_BYTES_OF_CHAR;
    else if (code === 0x22 || code === 0x5c) bytes += 2;
    else if (code < 0x80) bytes += 1;
    else bytes += code < 0x8_00 ? 2 : 3;
  }
  return bytes;
}

function mapFields(map: ReadonlyMap<unknown, unknown>): Fields {
  return Object.fromEntries([...map].map(([key, item]) => [keyOf(key), item]));
}

function keyOf(key: unknown): string {
  return typeof key === 'string' || typeof key === 'number' ? String(key) : kindOf(key);
}

/** Omits the stack, because it contains file names and its first line repeats the message. */
function errorFields(error: Error): Fields {
  const { name, message, code, cause } = error as Error & { code?: unknown };
  return { type: name, code, message, cause };
}

function dateText(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'Invalid Date' : date.toISOString();
}

/** Recognises an actor reference in a context or event. */
function isActorRef(value: object): value is { readonly id: string } {
  return 'getSnapshot' in value && isOwnText(value, 'id') && isOwnText(value, 'sessionId');
}

function isOwnText(value: object, key: string): boolean {
  return typeof Object.getOwnPropertyDescriptor(value, key)?.value === 'string';
}

/** Omits the machine that is part of another machine's snapshot. */
function snapshotFields(snapshot: Fields): Fields {
  const { status, value, context, output, error } = snapshot;
  return { status, value, context, output, error };
}

function kindOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `[${typeof value}]`;
  const maker = (Object.getPrototypeOf(value) as { constructor?: unknown } | null)?.constructor;
  const kind = typeof maker === 'function' && maker.name !== '' ? maker.name : 'object';
  return ArrayBuffer.isView(value) ? `[${kind}, ${value.byteLength} bytes]` : `[${kind}]`;
}

const withoutSecrets = secretRemover([]);

/** A value without children. */
export type Leaf = string | number | bigint | boolean;

/**
 * Decides how a leaf value is shown. `path`: the location of the value. It consists of the message part (`context`,
 * `event`, `input`, `output`, `error`, `meta` or `params`), followed by the value's keys. List items have the path of
 * their list.
 */
export type Redact = (leaf: Leaf, path: readonly string[]) => Leaf;

const SHOWN_KEYS = new Set([
  'type',
  'kind',
  'status',
  'state',
  'code',
  'channel',
  'priority',
  'phase',
  'grade',
  'role',
  'mode',
  'end',
  'event',
  'execution',
  'lifetime',
  'finishReason',
  'toolName',
  'src',
  'owner',
  'queue',
]);

/** `id`, `callId`, `deliveryIds` … */
const ID_KEY = /^ids?$|[a-z\d]Ids?$/;

/** Ids that reveal what the user has chosen. */
const ANSWER_KEYS = new Set(['optionId', 'optionIds', 'answerId']);

const PAYLOAD_KEYS = new Set([
  'answer',
  'answers',
  'args',
  'arguments',
  'artifacts',
  'body',
  'content',
  'data',
  'description',
  'facts',
  'headers',
  'history',
  'input',
  'instructions',
  'label',
  'memory',
  'message',
  'messages',
  'metadata',
  'options',
  'output',
  'parameters',
  'partial',
  'parts',
  'payload',
  'prompt',
  'question',
  'response',
  'responses',
  'result',
  'results',
  'text',
  'toolLedger',
  'transcript',
  'transcripts',
  'value',
]);

const NAME = /^[\w.:/@#$+-]{1,64}$/;

/** The default: hides the texts of the user and the model according to REDACT-1 and REDACT-2. */
export const redactWords: Redact = (leaf, path) => {
  const isPayload = path[0] === 'output' || path.some((key, at) => at > 0 && PAYLOAD_KEYS.has(key));
  if (typeof leaf !== 'string') return isPayload ? `[redacted ${typeof leaf}]` : leaf;
  if (leaf === '') return leaf;
  const isName = NAME.test(leaf) && withoutSecrets(leaf) === leaf;
  if (!isPayload && isName && isShownKey(path.at(-1) ?? '')) return leaf;
  return hidden(leaf);
};

/** Shows everything. */
export const redactNothing: Redact = (leaf) => leaf;

/** Redacts a key according to REDACT-3. */
export function redactKey(key: string): string {
  return NAME.test(key) && withoutSecrets(key) === key ? key : hidden(key);
}

function isShownKey(key: string): boolean {
  return SHOWN_KEYS.has(key) || (ID_KEY.test(key) && !ANSWER_KEYS.has(key));
}

function hidden(text: string): string {
  return `[redacted ${text.length} chars]`;
}
