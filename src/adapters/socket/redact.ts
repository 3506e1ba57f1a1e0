// Takes secrets out of texts that came from outside: a provider that refuses a key
// likes to quote it.

const KEY_LIKE = /\b(?:sk|ek|rk)-[\w*.…-]{4,}/g;
const BEARER = /\bBearer\s+\S+/gi;
/** A shorter key is no secret (`local`, for a server on this machine) and may be part of a word. */
const MIN_SECRET_LENGTH = 8;

/** `text` without `apiKey`, and without whatever else looks like a key. */
export function redact(text: string, apiKey = ''): string {
  const known = apiKey.length >= MIN_SECRET_LENGTH ? text.replaceAll(apiKey, '[redacted]') : text;
  return known.replace(BEARER, 'Bearer [redacted]').replace(KEY_LIKE, '[redacted]');
}
