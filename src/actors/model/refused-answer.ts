// The message that tells a model why its answer was not accepted: written where answers are checked, and read where a
// run that ends without an accepted one says why. Without `ai` and `zod`, which the log of a subagent must not reach.

const REFUSED = 'Your answer was not accepted: ';

export function refusedAnswer(reason: string): string {
  return `${REFUSED}${reason}\nAnswer again, with nothing but JSON of the agreed shape.`;
}

/** Returns the reason in such a message; null for any other message. */
export function refusalIn(message: unknown): string | null {
  if (typeof message !== 'string' || !message.startsWith(REFUSED)) return null;
  return message.slice(REFUSED.length, message.lastIndexOf('\n'));
}
