// Ids of items that the client names. The server refuses item ids of more than 32 characters; longer ids of
// the session are shortened, always in the same way.

import { createHash } from 'node:crypto';

const MAX_ID_LENGTH = 32;

/** Returns the id itself if the wire accepts it, otherwise a short replacement. */
export function toWireId(id: string): string {
  if (id.length <= MAX_ID_LENGTH) return id;
  return `item_${createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, MAX_ID_LENGTH - 5)}`;
}
