// Reads the user's text from a chat's request, and refuses requests that a session cannot fulfil (CHAT-TRANSPORT-1,
// CHAT-TRANSPORT-2).

import { ConfigurationError } from '../values/errors.ts';
import { shown } from '../values/plain-checks.ts';
import type { SessionMessage } from './chat-messages.ts';

/** A request from `useChat`. It comes from this process or the network and is not validated. */
export interface ChatRequest {
  readonly trigger?: unknown;
  readonly messages?: unknown;
  /** Contains only the last message, as in the AI SDK's recipe for long chats, which sends no `trigger`. */
  readonly message?: unknown;
  readonly messageId?: unknown;
}

/** Returns the text that a chat sends (CHAT-TRANSPORT-1, CHAT-TRANSPORT-2). */
export function wordsOf({ trigger, messages, message, messageId }: ChatRequest): {
  readonly text: string;
  readonly id: string;
} {
  if (trigger === 'regenerate-message')
    throw invalid('the session owns the conversation: nothing is said again', trigger);
  if (trigger !== 'submit-message' && !(trigger === undefined && message !== undefined))
    throw invalid('expected the `trigger` "submit-message", as `useChat` sends it', trigger);
  if (messageId !== undefined)
    throw invalid('the session owns the conversation: a message is not changed', messageId);
  const last: unknown = message ?? (Array.isArray(messages) ? messages.at(-1) : undefined);
  const { id = '', role, parts } = (last ?? {}) as Partial<SessionMessage>;
  if (role !== 'user' || !Array.isArray(parts))
    throw invalid('expected a last message of the role "user", with parts', last);
  const strange = parts.find((part) => part?.type !== 'text' || typeof part.text !== 'string');
  if (strange !== undefined) throw invalid('expected parts of the type "text" only', strange);
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
  if (text.trim() === '') throw invalid('expected words', text);
  return { text, id };
}

function invalid(expected: string, value: unknown): ConfigurationError {
  return new ConfigurationError(
    'INVALID_MESSAGE',
    `Message of a chat: ${expected}, got ${shown(value)}`,
  );
}
