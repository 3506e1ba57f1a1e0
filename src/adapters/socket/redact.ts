// Takes secrets out of texts that came from outside: a provider that refuses a key
// likes to quote it.

import { secretRemover } from '../../values/secrets.ts';

/** `text` without `apiKey`, and without whatever else looks like a key. */
export function redact(text: string, apiKey = ''): string {
  return secretRemover([apiKey])(text);
}
