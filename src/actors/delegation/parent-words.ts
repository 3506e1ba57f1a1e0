// The words in which the runtime passes on what one subagent says to another: quoted as
// data, so that nobody speaks in the runtime's name.

import { fenced } from '../session/prompts.ts';
import type { SubagentRecord } from './family.ts';
import type { PendingInput } from './service-types.ts';

/** To the parent, when it does not wait for the asker. */
export function requestMessage(
  { id, name }: { readonly id: string; readonly name: string },
  { requestId, question, context }: PendingInput,
): string {
  const more = context === undefined ? '' : ` Context: ${fenced(context)}.`;
  return (
    `[SUBAGENT REQUEST from ${fenced(name)} (subagentId ${id}): ` +
    `${fenced(question)}${more} To answer, send it a message with inResponseTo "${requestId}".]`
  );
}

/** From somebody who is not above the reader. */
export function peerMessage({ id, place }: SubagentRecord, content: string): string {
  return `[MESSAGE from the subagent ${fenced(place.definition.name)} (subagentId ${id}): ${fenced(content)}]`;
}
