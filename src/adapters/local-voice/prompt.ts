// Converts the items of a conversation to the messages of a language model.
//
// A tool call may stay unanswered while the conversation continues, but a language model must see an answer
// right after each call. So an open call, or one that was answered later, is first answered with PENDING; its
// actual answer stands where it arrived, as the answer to the same call stated once more.

import type { ModelMessage, UserContent } from 'ai';
import type { Remembered, RememberedPart } from './conversation.ts';

/** Replaces unintelligible speech. */
export const INAUDIBLE = '[inaudible]';
const PENDING = 'Accepted. The result is not known yet; it will follow.';
/** A language model needs a message to answer. */
const NOTHING_SAID = '[The user has not said anything yet.]';

type Call = Extract<Remembered, { kind: 'call' }>;
type Answer = Extract<Remembered, { kind: 'answer' }>;

/** Returns the messages, once all words in them are known. */
export async function toModelMessages(items: readonly Remembered[]): Promise<ModelMessage[]> {
  const messages: ModelMessage[] = [];
  const calls = new Map<string, Call>();
  for (const [index, item] of items.entries()) {
    if (item.kind === 'call') {
      calls.set(item.callId, item);
      const output = promptAnswer(items, index)?.output ?? PENDING;
      messages.push(...callWithAnswer(item, item.callId, output));
    } else if (item.kind === 'answer') {
      const call = calls.get(item.callId);
      // The call was deleted, or the answer already stands beside it.
      if (call === undefined || promptAnswer(items, items.indexOf(call)) === item) continue;
      messages.push(...callWithAnswer(call, `${item.callId}_late`, item.output));
    } else {
      const message = await toMessage(item);
      if (message !== null) messages.push(message);
    }
  }
  return messages.length > 0 ? messages : [{ role: 'user', content: NOTHING_SAID }];
}

/** Returns the answer of a call, if only other calls and answers came between. */
function promptAnswer(items: readonly Remembered[], callIndex: number): Answer | undefined {
  const call = items[callIndex] as Call;
  for (const item of items.slice(callIndex + 1)) {
    if (item.kind === 'message') return undefined;
    if (item.kind === 'answer' && item.callId === call.callId) return item;
  }
  return undefined;
}

function callWithAnswer(call: Call, toolCallId: string, output: string): ModelMessage[] {
  const { name: toolName } = call;
  return [
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId, toolName, input: parsedArguments(call) }],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: output } },
      ],
    },
  ];
}

function parsedArguments(call: Call): unknown {
  try {
    return JSON.parse(call.arguments);
  } catch {
    return { text: call.arguments };
  }
}

async function toMessage(
  item: Extract<Remembered, { kind: 'message' }>,
): Promise<ModelMessage | null> {
  if (item.role === 'user' && item.parts.some((part) => part.type === 'image')) {
    return { role: 'user', content: await toUserContent(item.parts) };
  }
  const texts = await Promise.all(item.parts.map(textOf));
  const text = texts.filter((part) => part !== '').join('\n');
  return text === '' ? null : { role: item.role, content: text };
}

function toUserContent(parts: readonly RememberedPart[]): Promise<UserContent> {
  return Promise.all(
    parts.map(async (part) => {
      if (part.type !== 'image') return { type: 'text' as const, text: await textOf(part) };
      const mediaType = /^data:([^;,]+)/.exec(part.url)?.[1] ?? 'image/png';
      return { type: 'file' as const, mediaType, data: new URL(part.url) };
    }),
  );
}

async function textOf(part: RememberedPart): Promise<string> {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'sound':
      return (await part.words) || INAUDIBLE;
    case 'speech':
      return part.words.text().trim();
    case 'image':
      return '';
  }
}
