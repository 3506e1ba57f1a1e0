// Reads the parts of a model call that the API rules check: its messages as a provider's package writes them, calls and
// their results, the content of an earlier answer, and tool schemas.
//
// Does not: know which calls an API refuses (`provider-rules.ts`).

import type { CallOptions, Content } from './scripted-steps.ts';

/** The part of a model call that the rules check, in AI SDK terms. */
export type RuledCall = Pick<CallOptions, 'prompt' | 'tools'>;

/** The earlier answers of the same model, by the id of each call. */
export type EarlierAnswers = ReadonlyMap<string, readonly Content[]>;

type Message = RuledCall['prompt'][number];
type Assistant = Extract<Message, { role: 'assistant' }>;
type CallPart = Extract<Assistant['content'][number], { type: 'tool-call' }>;
/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

export function when(isRefused: boolean, words: string): string | null {
  return isRefused ? words : null;
}

/** Returns the messages that the API receives as its conversation. The API receives system messages separately. */
export function turnsOf(prompt: RuledCall['prompt']) {
  return prompt.filter((message) => message.role !== 'system');
}

export function lateSystem(prompt: RuledCall['prompt']): boolean {
  const first = prompt.findIndex(({ role }) => role !== 'system');
  return first >= 0 && prompt.slice(first).some(({ role }) => role === 'system');
}

/** Returns the calls to the runtime's tools. The provider answers calls to its own tools. */
export function callsIn(message: Message): readonly CallPart[] {
  if (message.role !== 'assistant') return [];
  return message.content.flatMap((part) =>
    part.type === 'tool-call' && part.providerExecuted !== true ? [part] : [],
  );
}

export function resultIdsIn(message: Message): readonly string[] {
  if (message.role !== 'tool') return [];
  return message.content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []));
}

/** Returns the prompt with adjacent tool messages joined. With `all`, adjacent assistant messages are joined too. */
export function joined(prompt: RuledCall['prompt'], all = false): RuledCall['prompt'] {
  const messages: Message[] = [];
  for (const message of prompt) {
    const last = messages.at(-1);
    if (last?.role === 'tool' && message.role === 'tool')
      messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else if (all && last?.role === 'assistant' && message.role === 'assistant')
      messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else messages.push(message);
  }
  return messages;
}

/** Returns the conversation as Anthropic's package writes it. */
export function forAnthropic(prompt: RuledCall['prompt']): RuledCall['prompt'] {
  return joined(
    turnsOf(prompt).filter((message) => !saysOnly(message, '')),
    true,
  );
}

/** Returns the prompt as the Bedrock package writes it: without tools, it drops calls and results with a warning. */
export function forBedrock({ prompt, tools = [] }: RuledCall): RuledCall['prompt'] {
  const written = prompt.flatMap((message): Message[] => {
    if (tools.length > 0 || message.role === 'system' || message.role === 'user') return [message];
    if (message.role === 'tool') return [];
    return [{ ...message, content: message.content.filter(({ type }) => type !== 'tool-call') }];
  });
  return joined(
    written.filter((message) => !saysOnly(message, ' ')),
    true,
  );
}

/**
 * Returns whether an assistant message has neither text nor calls. `blank`: a space, if white space does not count as
 * text.
 */
function saysOnly(message: Message, blank: '' | ' '): boolean {
  return (
    message.role === 'assistant' &&
    message.content.every(
      (part) => part.type === 'text' && (blank === ' ' ? part.text.trim() : part.text) === '',
    )
  );
}

/** Returns the first assistant message whose calls are not answered in the next `within` messages. */
export function unanswered(prompt: RuledCall['prompt'], within = 1) {
  for (const [index, message] of prompt.entries()) {
    const answered = new Set(prompt.slice(index + 1, index + 1 + within).flatMap(resultIdsIn));
    const open = callsIn(message).filter(({ toolCallId }) => !answered.has(toolCallId));
    if (open.length > 0)
      return {
        at: placeOf(prompt, index),
        ids: open.map(({ toolCallId }) => toolCallId).join(', '),
      };
  }
  return null;
}

/** Returns the first result whose call is not in the preceding `within` messages. */
export function orphanResult(prompt: RuledCall['prompt'], within = 1) {
  for (const [index, message] of prompt.entries()) {
    const before = prompt.slice(Math.max(0, index - within), index);
    const called = new Set(before.flatMap(callsIn).map(({ toolCallId }) => toolCallId));
    const id = resultIdsIn(message).find((one) => !called.has(one));
    if (id !== undefined) return { at: placeOf(prompt, index), id };
  }
  return null;
}

/** Returns the index that a message has in the conversation without system messages. */
function placeOf(prompt: RuledCall['prompt'], index: number): number {
  return turnsOf(prompt.slice(0, index)).length;
}

export function findCall(prompt: RuledCall['prompt'], isWanted: (part: CallPart) => boolean) {
  for (const [at, message] of turnsOf(prompt).entries())
    for (const [index, part] of callsIn(message).entries())
      if (isWanted(part)) return { at, index, part };
  return null;
}

/** Returns the second call that has this id. */
export function findSecondCall(prompt: RuledCall['prompt'], id: string | undefined) {
  let seen = 0;
  return findCall(prompt, ({ toolCallId }) => toolCallId === id && (seen += 1) === 2);
}

export function firstTwice(names: readonly string[]): string | undefined {
  return names.find((name, index) => names.indexOf(name) < index);
}

export function isReasoning({ type }: Content): boolean {
  return type === 'reasoning';
}

/**
 * Returns whether this call contains the provider's state for all calls in its answer. The first call contains it, and
 * the other calls must directly follow.
 */
export function isSignedCall(part: Content): boolean {
  return part.type === 'tool-call' && part.providerMetadata !== undefined;
}

/**
 * Returns the first call whose message lacks a part of the original answer, or contains a part without the model's
 * `providerMetadata`.
 */
export function lostState(
  prompt: RuledCall['prompt'],
  earlier: EarlierAnswers,
  isKept: (part: Content) => boolean,
) {
  for (const [at, message] of turnsOf(prompt).entries())
    for (const { toolCallId: id, toolName: name } of callsIn(message)) {
      const answer = earlier.get(id) ?? [];
      const isWhole = answer.every(
        (part) => !isKept(part) || message.content.some((kept) => isSame(kept, part)),
      );
      if (!isWhole) return { at, id, name };
    }
  return null;
}

type Part = Exclude<Message['content'], string>[number];

function isSame(kept: Part | string, part: Content): boolean {
  if (typeof kept === 'string' || kept.type !== part.type) return false;
  const wanted = 'providerMetadata' in part ? part.providerMetadata : undefined;
  if (wanted && JSON.stringify(kept.providerOptions) !== JSON.stringify(wanted)) return false;
  if (kept.type === 'reasoning' && part.type === 'reasoning') return kept.text === part.text;
  if (kept.type === 'tool-call' && part.type === 'tool-call')
    return kept.toolCallId === part.toolCallId;
  return true;
}

export function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Tool = NonNullable<RuledCall['tools']>[number];

export function ofTools(
  tools: RuledCall['tools'],
  refusal: (tool: Tool, at: number) => string | false,
): string | null {
  for (const [at, tool] of (tools ?? []).entries()) {
    const words = refusal(tool, at);
    if (words !== false) return words;
  }
  return null;
}

export function ofSchemas(
  tools: RuledCall['tools'],
  refusal: (schema: Schema, name: string, at: number) => string | null,
): string | null {
  return ofTools(tools, (tool, at) =>
    tool.type === 'function' && isObject(tool.inputSchema)
      ? (refusal(tool.inputSchema, tool.name, at) ?? false)
      : false,
  );
}

/** Finds the first matching schema within this one. Returns it with the keys that lead to it. */
export function inSchema(
  schema: Schema,
  matches: (schema: Schema) => boolean,
  path: readonly string[] = [],
): { readonly schema: Schema; readonly path: readonly string[] } | null {
  if (matches(schema)) return { schema, path };
  for (const [key, value] of Object.entries(schema)) {
    // The values of these keywords are data.
    if (key === 'enum' || key === 'const' || key === 'default' || key === 'examples') continue;
    for (const [index, inner] of Array.isArray(value) ? value.entries() : [['', value] as const]) {
      if (!isObject(inner)) continue;
      const at = index === '' ? [key] : [key, String(index)];
      const found = inSchema(inner, matches, [...path, ...at]);
      if (found) return found;
    }
  }
  return null;
}
