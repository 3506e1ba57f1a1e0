// Removes secrets from external texts, because a provider that rejects a key often quotes it.

import { secretRemover } from '../../values/secrets.ts';

/** Returns `text` without `apiKey` and without other texts that look like a key. */
export function redact(text: string, apiKey = ''): string {
  return secretRemover([apiKey])(text);
}
