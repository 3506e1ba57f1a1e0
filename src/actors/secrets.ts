// What a secret looks like in a text, and how it is taken out of it.

/** A shorter one is no secret (`local`, the key of a server on this machine) and may be part of a word. */
const SHORTEST_SECRET = 8;

/** Keys of the usual providers, and what follows `Bearer`. */
const KEY_LIKE = /\b(?:sk|ek|rk)-[\w*.…-]{4,}/g;
const AFTER_BEARER = /(?<=\bBearer\s{1,9})\S+/gi;

export const REDACTED = '[redacted]';

/** Takes secrets out of a text. */
export type TakeOut = (text: string) => string;

/**
 * Takes out these, wherever they occur, and all that looks like a key. Texts of less than eight
 * characters are left.
 */
export function secretRemover(
  secrets: readonly (string | RegExp)[],
  replacement: string = REDACTED,
): TakeOut {
  const texts = secrets.filter((secret) => typeof secret === 'string');
  // One that is part of another one comes after it, or would leave the rest of it.
  const known = texts
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .toSorted((a, b) => b.length - a.length);
  const patterns = [
    ...secrets.filter((secret) => secret instanceof RegExp).map(everywhere),
    AFTER_BEARER,
    KEY_LIKE,
  ];
  // As a function: `$&` in a text means something.
  const replace = (): string => replacement;
  return (text) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, replace);
    for (const pattern of patterns) clean = clean.replace(pattern, replace);
    return clean;
  };
}

function everywhere({ source, flags }: RegExp): RegExp {
  // A sticky one would look at the beginning only.
  return new RegExp(source, `${flags.replace(/[gy]/g, '')}g`);
}
