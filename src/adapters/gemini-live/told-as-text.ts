// What the wire has no message for, as text: words of the system, for which there is no
// role, and tool calls of another connection, whose ids this one does not know. Pure.

import type { Turn } from './wire/index.ts';

/** What the model reads when it shall speak and there is nothing else to tell it. */
export const YOUR_TURN = '[SYSTEM: It is your turn: speak to the user now.]';

export function systemText(text: string): string {
  return text.startsWith('[') && text.endsWith(']') ? text : `[SYSTEM: ${text}]`;
}

/** A message of the conversation. */
export function messageTurn(role: 'system' | 'user' | 'assistant', text: string): Turn {
  return {
    role: role === 'assistant' ? 'model' : 'user',
    parts: [{ text: role === 'system' ? systemText(text) : text }],
  };
}

/** A call that the model made before this connection. */
export function callTurn(call: {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
}): Turn {
  const { callId, name, arguments: args } = call;
  return messageTurn(
    'system',
    `You have called \`${name}\` (${callId}) with ${args}. Do not call it again: its result follows when it is there.`,
  );
}

/** The answer to it. */
export function answerTurn(callId: string, name: string | undefined, output: string): Turn {
  const called = name === undefined ? 'your call' : `your call of \`${name}\``;
  return messageTurn('system', `The result of ${called} (${callId}): ${output}`);
}

/** All that is said in these turns. */
export function textOf(turns: readonly Turn[]): readonly string[] {
  return turns.flatMap(({ parts }) => parts.flatMap((part) => ('text' in part ? [part.text] : [])));
}
