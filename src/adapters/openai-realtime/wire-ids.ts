// Ids of items that we name. The server refuses item ids of more than 32 characters;
// the ids of a session may be longer, so those are shortened, always in the same way.

import { createHash } from 'node:crypto';

const MAX_ID_LENGTH = 32;

/** The id itself if the wire takes it, else a short one that stands for it. */
export function toWireId(id: string): string {
  if (id.length <= MAX_ID_LENGTH) return id;
  return `item_${createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, MAX_ID_LENGTH - 5)}`;
}
