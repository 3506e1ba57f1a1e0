// Redacts the values in a message by an allow-list. Texts of users and models are hidden without a list of
// their places; values that distinguish states, events and actors are shown.
//
// Invariants
//   REDACT-1. A text is shown only if its key is one of the known ones (ids, `type`, `status` …)
//       and it looks like a name: ASCII without spaces, at most 64 characters.
//   REDACT-2. Within a payload (tool arguments, messages, results …) no value is shown, including numbers and
//       ids: its keys and their meaning are foreign.
//   REDACT-3. A key is shown only if it looks like a name.
//   REDACT-4. Values with the shape of a credential (values/secrets.ts) are never shown.

import { secretRemover } from '../../values/secrets.ts';

const withoutSecrets = secretRemover([]);

/** A value with nothing inside it. */
export type Leaf = string | number | bigint | boolean;

/**
 * Decides the shown value of a leaf. `path` names its place: first the part of the message (`context`,
 * `event`, `input`, `output`, `error`, `meta` or `params`), then the keys that lead to it; the items of a
 * list have the path of the list.
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

/** Ids that reveal the user's choice. */
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

/** The default: hides texts of users and models, by REDACT-1 and REDACT-2. */
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

/** Redacts a key by REDACT-3. */
export function redactKey(key: string): string {
  return NAME.test(key) && withoutSecrets(key) === key ? key : hidden(key);
}

function isShownKey(key: string): boolean {
  return SHOWN_KEYS.has(key) || (ID_KEY.test(key) && !ANSWER_KEYS.has(key));
}

function hidden(text: string): string {
  return `[redacted ${text.length} chars]`;
}
