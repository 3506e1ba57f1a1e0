// What the wire has no message for, as text: words of the system, for which there is no
// role, and tool calls of another connection, whose ids this one does not know. Pure.

import type { Turn } from './wire/index.ts';

/** What the model reads when it shall speak and there is nothing else to tell it. */
export const YOUR_TURN = '[SYSTEM: It is your turn: speak to the user now.]';

/** A session marks its notes; what it asks for is its own words. */
export function systemText(text: string): string {
  return text.startsWith('[') ? text : `[SYSTEM: ${text}]`;
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
  readonly told?: string;
}): Turn {
  const { callId, name, arguments: args, told } = call;
  const quoted = JSON.stringify({ callId, tool: name, arguments: args });
  return messageTurn('user', told ?? `[SYSTEM: You have made this call before.]\n${quoted}`);
}

/** The answer to it. */
export function answerTurn(
  name: string | undefined,
  {
    callId,
    output,
    told,
  }: { readonly callId: string; readonly output: string; readonly told?: string },
): Turn {
  const quoted = JSON.stringify({ callId, ...(name !== undefined && { tool: name }), output });
  return messageTurn(
    'user',
    told ?? `[SYSTEM: The result of a call that you made before.]\n${quoted}`,
  );
}

/** All that is said in these turns. */
export function textOf(turns: readonly Turn[]): readonly string[] {
  return turns.flatMap(({ parts }) => parts.flatMap((part) => ('text' in part ? [part.text] : [])));
}
