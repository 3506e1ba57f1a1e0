// Reads an AI SDK prompt as a conversation: what each speaker said, the runtime's notices, the tool calls and their
// results.

import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import { readTask, type ReadTask } from 'offstage/testing';
import { notesIn, readAssignment, readNotice, type Notice } from './notices.ts';

export interface ToolCallEntry {
  readonly kind: 'call';
  /** The prompt repeats the call so that its late result has a place; the tool was not called again. */
  readonly isRestated: boolean;
  readonly callId: string;
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ToolResultEntry {
  readonly kind: 'result';
  readonly callId: string;
  readonly toolName: string;
  /** The output of the tool, parsed if it is JSON text. */
  readonly output: unknown;
  /** Why the call failed. */
  readonly error: string | null;
  /** The user did not approve the call. */
  readonly isDenied?: boolean;
}

export type Entry =
  | { readonly kind: 'user'; readonly text: string }
  | { readonly kind: 'assistant'; readonly text: string }
  | { readonly kind: 'notice'; readonly notice: Notice }
  | ToolCallEntry
  | ToolResultEntry;

export interface Conversation {
  /** The system prompt. */
  readonly instructions: string;
  /** The notice to say, if the instructions are for a single response. */
  readonly assignment: Notice | null;
  /** The task of a subagent; null if the prompt is not a subagent's. */
  readonly task: ReadTask | null;
  /** The later messages, oldest first; empty texts are omitted. */
  readonly entries: readonly Entry[];
}

export function readConversation(prompt: LanguageModelV4Prompt): Conversation {
  const entries: Entry[] = [];
  const notes = notesIn(prompt.flatMap(textsOf));
  let instructions = '';
  prompt.forEach((message, index) => {
    if (message.role === 'system') {
      // Instructions for a single response are also a note.
      if (index === 0) instructions = message.content;
      const notice = readNotice(message.content, notes);
      if (notice) entries.push({ kind: 'notice', notice });
      return;
    }
    for (const part of message.content) {
      if (part.type === 'text') {
        const text = part.text.trim();
        if (text === '') continue;
        const notice = message.role === 'user' ? readNotice(text, notes) : null;
        if (notice) entries.push({ kind: 'notice', notice });
        else entries.push({ kind: message.role === 'user' ? 'user' : 'assistant', text });
      } else if (part.type === 'tool-call') {
        const { toolCallId: callId, toolName } = part;
        const isRestated = entries.some(
          (entry) => entry.kind === 'call' && callId.startsWith(`${entry.callId}_`),
        );
        const input = asRecord(fromJson(part.input));
        entries.push({ kind: 'call', callId, toolName, input, isRestated });
      } else if (part.type === 'tool-result') {
        const { toolCallId: callId, toolName } = part;
        entries.push({ kind: 'result', callId, toolName, ...readOutput(part.output) });
      }
    }
  });
  return {
    instructions,
    assignment: readAssignment(instructions, notes),
    task: readTask(prompt),
    entries,
  };
}

/** The texts that were written for the model: messages other than its own, and results of its calls. */
function textsOf(message: LanguageModelV4Prompt[number]): readonly string[] {
  if (message.role === 'system') return [message.content];
  if (message.role === 'assistant') return [];
  return message.content.flatMap((part) => {
    if (part.type === 'text') return [part.text];
    return part.type === 'tool-result' && part.output.type === 'text' ? [part.output.value] : [];
  });
}

function readOutput(output: LanguageModelV4ToolResultOutput): {
  readonly output: unknown;
  readonly error: string | null;
  readonly isDenied?: boolean;
} {
  switch (output.type) {
    case 'text':
    case 'json': {
      const value = fromJson(output.value);
      const error = asRecord(value)['error'];
      return { output: value, error: error === undefined ? null : textOf(error) };
    }
    case 'error-text':
    case 'error-json':
      return { output: null, error: textOf(fromJson(output.value)) };
    case 'execution-denied':
      return { output: null, error: output.reason ?? 'That was not allowed.', isDenied: true };
    case 'content': {
      const texts = output.value.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      return { output: texts.join(' '), error: null };
    }
  }
}

/** The text that stands for the result of a running call. */
const placeholder = /\b(?:result is not known yet|no result yet)\b/;

export function isPlaceholder({ output }: ToolResultEntry): boolean {
  return typeof output === 'string' && placeholder.test(output);
}

/** The parsed value of JSON text; anything else is returned unchanged. */
function fromJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{["]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

/** The fields of an object; an empty object for any other value. */
export function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

/** A value as text: the string itself, its message or summary, or its JSON. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value.replace(/^(?:[A-Z]\w*)?Error: /, '');
  const fields = asRecord(value);
  for (const name of ['message', 'text', 'summary', 'result', 'error']) {
    if (typeof fields[name] === 'string') return textOf(fields[name]);
  }
  return value === null || value === undefined ? '' : JSON.stringify(value);
}
