// The conversation as the messages of a text model (AI SDK).
//
// Invariants
//   M1. Every tool call is followed by its result before anyone else speaks: the SDK
//       refuses a history in which one is missing. A call in flight gets a placeholder
//       that says so, or is left out.
//   M2. A failed call keeps its error.
//   M3. What is still being said is not in it.
//   M4. The arguments of a call are an object, whatever the model wrote.

import type { ModelMessage } from 'ai';
import { asArguments } from '../ai/json.ts';
import {
  isMessage,
  messageText,
  type ConversationItem,
  type ToolCallItem,
  type ToolResultItem,
} from './items.ts';

export interface ModelMessageOptions {
  /**
   * How notes of the runtime are put. Many providers refuse a system message in
   * mid-conversation, and the SDK wants `allowSystemInMessages` for it.
   * @defaultValue 'user': a user message `[SYSTEM: …]`
   */
  readonly systemAs?: 'user' | 'system';
  /**
   * What becomes of calls without a result.
   * @defaultValue 'pending': they are answered by a placeholder
   */
  readonly openCalls?: 'pending' | 'omit';
}

const defaultPendingText = 'Still running. There is no result yet.';

type ToolPart = Extract<
  Extract<ModelMessage, { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>;

export function toModelMessages(
  items: readonly ConversationItem[],
  preamble: readonly string[],
  { systemAs = 'user', openCalls = 'pending' }: ModelMessageOptions = {},
): ModelMessage[] {
  const results = new Map<string, ToolResultItem>();
  for (const item of items) if (item.role === 'tool_result') results.set(item.callId, item);

  const messages: ModelMessage[] = [];
  let texts: string[] = [];
  let calls: ToolCallItem[] = [];

  const note = (text: string): void => {
    messages.push(
      systemAs === 'system'
        ? { role: 'system', content: text }
        : { role: 'user', content: asNote(text) },
    );
  };
  const endStep = (): void => {
    if (texts.length + calls.length > 0) {
      messages.push({
        role: 'assistant',
        content: [
          ...texts.map((text) => ({ type: 'text' as const, text })),
          ...calls.map(({ callId, toolName, args }) => ({
            type: 'tool-call' as const,
            toolCallId: callId,
            toolName,
            input: asArguments(args),
          })),
        ],
      });
    }
    if (calls.length > 0) {
      messages.push({
        role: 'tool',
        content: calls.map((call) => toolPart(call, results.get(call.callId))),
      });
    }
    texts = [];
    calls = [];
  };

  for (const text of preamble) note(text);
  for (const item of items) {
    if (item.role === 'tool_call') {
      if (openCalls === 'omit' && !results.has(item.callId)) continue;
      calls.push(item);
    } else if (item.role === 'tool_result') {
      // The result itself was put after its call; the model's step ended here.
      if (calls.some(({ callId }) => callId === item.callId)) endStep();
    } else if (item.role === 'transfer') {
      endStep();
      note(transferText(item));
    } else if (isMessage(item) && !item.partial && item.text.trim() !== '') {
      // Text that follows a call belongs to the next step.
      if (item.role !== 'assistant' || calls.length > 0) endStep();
      if (item.role === 'assistant') texts.push(messageText(item));
      else if (item.role === 'user') messages.push({ role: 'user', content: messageText(item) });
      else note(messageText(item));
    }
  }
  endStep();
  return messages;
}

/** Notes of the runtime stand in brackets, so that they cannot be taken for the user's words. */
function asNote(text: string): string {
  return text.startsWith('[SYSTEM') ? text : `[SYSTEM: ${text}]`;
}

/** How a change of the lead agent is told to a model. */
export function transferText({ from, to }: { readonly from: string; readonly to: string }): string {
  return `The conversation was handed from ${from} to ${to}.`;
}

/** What a model is told first: what was summarised, and what is simply gone. */
export function preambleOf(summary: string | null, evicted: number): readonly string[] {
  const lines: string[] = [];
  if (summary !== null) lines.push(`[Context summary]: ${summary}`);
  if (evicted > 0) lines.push(`${evicted} earlier items of this conversation are not included.`);
  return lines;
}

function toolPart(call: ToolCallItem, result: ToolResultItem | undefined): ToolPart {
  const { callId: toolCallId, toolName } = call;
  return { type: 'tool-result', toolCallId, toolName, output: outputOf(call, result) };
}

function outputOf(call: ToolCallItem, result: ToolResultItem | undefined): ToolPart['output'] {
  if (!result) return { type: 'text', value: call.pendingText ?? defaultPendingText };
  const { output } = result;
  if (output.type === 'error') return { type: 'error-text', value: output.message };
  const { value, failed = false } = output;
  if (typeof value === 'string') return { type: failed ? 'error-text' : 'text', value };
  return { type: failed ? 'error-json' : 'json', value };
}
