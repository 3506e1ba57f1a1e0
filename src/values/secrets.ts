// Finds credentials in texts by their shape and by property names, and removes them.
//
// Invariants
//   SHAPES-1. A credential has a shape: a prefix, a length and an alphabet. Speech has none of these, so "basic
//             economy" and "the bearer of bad news" are left alone (`test/support/innocent-speech.ts`).
//   SHAPES-2. A credential is found in every escaped form: JSON's `\u0041` or `\/`, at any depth of JSON within JSON,
//             and a URL's `%2F`.
//   SHAPES-3. Property names match in any case style: camel, snake, kebab, dotted, and with acronyms (`DBPassword`).
//   SHAPES-4. The running time grows linearly with the length of the text. If a pattern may fail, it matches the whole
//             run of characters, and then `is` judges the run. Otherwise, the expression would scan the rest of the run
//             from every position in it.

/** Shorter values stay: `local`, the key of a server on this machine, is not a secret and may be part of a word. */
const SHORTEST_SECRET = 8;

/**
 * A pattern with conditions. `needs`: the pattern is tried only on texts that contain one of these lower-case strings,
 * because its lookbehind would otherwise run at each character. `is`: a match is a credential only if this function
 * returns true.
 */
interface Shape {
  readonly pattern: RegExp;
  readonly needs?: readonly string[];
  readonly is?: (found: readonly string[]) => boolean;
}

/** SHAPES-1 */
const SHAPES: readonly (RegExp | Shape)[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  // The value after an authentication scheme: any value if `authorization` precedes it; otherwise a value with letters
  // and digits, or a long value that is not a plain word.
  {
    pattern:
      /(?<=\bauthorization\\*["']?\s{0,9}[:=]\s{0,9}\\*["']?(?:bearer|basic|token)\s{1,9})[^\s"'\\,]+/gi,
    needs: ['authorization'],
  },
  {
    pattern: /(?<=\bbearer\s{1,9})(?=[\w.~+/-]*\d)(?=[\w.~+/-]*[a-z])[\w.~+/-]{8,}=*/gi,
    needs: ['bearer'],
  },
  { pattern: /(?<=\bBearer\s{1,9})[\w.~+/-]{24,}=*/g, needs: ['bearer'] },
  {
    pattern: /(?<=\b(?:bearer|BEARER)\s{1,9})(?=[\w.~+/-]*[a-z][A-Z])[\w.~+/-]{24,}=*/g,
    needs: ['bearer'],
  },
  // Parts joined by dots, as in a signed token: `Bearer abc.def`. In prose, a dot is followed by a space.
  { pattern: /(?<=\bBearer\s{1,9})[\w~+/-]{3,}(?:\.[\w~+/-]{3,})+=*/g, needs: ['bearer'] },
  {
    pattern: /(?<=\bbasic\s{1,9})[\w+/-]{6,}={0,2}/gi,
    needs: ['basic'],
    is: ([found]) => isUserAndPassword(found),
  },
  // OpenAI, Anthropic, Stripe; also in the masked form used in error messages (`sk-ab***yz`).
  {
    pattern: /\b(?:sk|ek|rk)-[\w*.…-]{4,}/g,
    is: ([found = '']) =>
      /[\dA-Z*…]|\b(?:sk|ek|rk)-(?:(?:proj|ant|svcacct|admin)-[\w-]{4}|[\w-]{16})/.test(found),
  },
  /\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}/g,
  /\bek_[A-Za-z0-9_-]{8,}/g,
  // Google
  /\bAIza[\w-]{30,}/g,
  /\bauth_tokens\/[\w-]{8,}/g,
  /\bya29\.[\w-]{16,}/g,
  // GitHub, GitLab, npm, Hugging Face
  /\bgh[pousr]_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bglpat-[\w-]{16,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g,
  /\bhf_[A-Za-z0-9]{20,}/g,
  // AWS
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  // Slack
  /\bxox[abeoprs]-[\w-]{10,}/g,
  /\bxapp-[\w-]{10,}/g,
  // Groq, xAI, Twilio, SendGrid, webhooks
  /\bgsk_[A-Za-z0-9]{16,}/g,
  /\bxai-[A-Za-z0-9]{16,}/g,
  /\bSK[0-9a-f]{32}\b/g,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  /\bwhsec_[\w+/-]{8,}={0,2}/g,
  // A JSON Web Token
  { pattern: /\beyJ[\w.-]{8,}/g, is: ([found]) => hasWebToken(found) },
  // In a URL: a user's password, and parameters with these names.
  { pattern: /(?<=:\/\/[^\s/:@?#]{0,64}:)[^\s/@?#]+(?=@)/g, needs: ['://'] },
  { pattern: /(?<=:\/\/)(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{20,}(?=@)/gi, needs: ['://'] },
  {
    pattern:
      /(?<=[?&](?:access_?token|api[_-]?key|password|passwd|pwd|secret|signature)=)[^&\s"'#\\]{6,}/gi,
    needs: ['='],
  },
  // These names also occur with innocent values: `?key=restaurants`, `&token=nextpage`.
  {
    pattern:
      /(?<=[?&](?:auth|key|sig|token)=)(?:(?=[^&\s"'#\\]*\d)[^&\s"'#\\]{6,}|[^&\s"'#\\]{24,})/gi,
    needs: ['='],
  },
  // The value after a secret's name: a value with a digit or, in a line of an environment file, any value.
  {
    pattern:
      /(?=[^\s"'\\,;}&])(?<=(?:api[_-]?key|password|passwd|pwd|secret|token|passwort|kennwort|contraseña|mot de passe)\\*["']?\s{0,9}[:=]\s{0,9}\\*["']?)[^\s"'\\,;}&]{6,}/gi,
    needs: [':', '='],
    is: ([found = '']) => /\d/.test(found),
  },
  {
    pattern:
      /(?<=\b(?:[A-Z][A-Z\d]*_)*(?:API_?KEY|ACCESS_KEY|SECRET_KEY|PASSWORD|PASSWD|SECRET|TOKEN)=["']?)[^\s"'\\]{4,}/g,
    needs: ['='],
  },
  // A JSON property within a text: any value. Both quotes are preceded by the same number of backslashes.
  {
    pattern:
      /(?<=(?<!\\)\2"([\w.-]{0,80}(?:key|password|passwd|pwd|passphrase|secret|token|authorization|cookie|credentials))\2"\s{0,9}:\s{0,9}(\\*)")(?:(?!(?<!\\)\2").){1,4000}/gis,
    needs: ['"'],
    is: ([, name = '']) => isSecretName(name),
  },
];

/** The property names that `redactingJournal` treats as secrets. */
export const SECRET_NAMES: readonly string[] = [
  'accessToken',
  'apiKey',
  'authorization',
  'clientSecret',
  'cookie',
  'credentials',
  'passphrase',
  'password',
  'passwd',
  'privateKey',
  'pwd',
  'refreshToken',
  'secret',
  'secretKey',
  'sessionToken',
  'setCookie',
  'token',
];

/** Builds one expression for all names, because it is tested against every property of every event. */
export function nameMatcher(names: readonly string[]): (name: string) => boolean {
  if (names.length === 0) return () => false;
  const loose = names.map((name) =>
    Array.from(name.replace(/[_-]/g, ''), (letter) => letter.replace(/\W/, String.raw`\$&`)).join(
      '[_-]?',
    ),
  );
  const any = new RegExp(`^(?:${loose.join('|')})$`, 'i');
  return (name) => any.test(name);
}

const listed = nameMatcher(SECRET_NAMES);

/** Returns whether the property's name is one of `SECRET_NAMES` or ends like the name of a credential. */
export function isSecretName(name: string): boolean {
  return listed(name) || endsAsSecret(name);
}

/** The last words in the names of credentials: `openaiApiKey`, `x-api-key`, `DB_PASSWORD`. */
const SECRET_TAIL =
  /(?:^|_)(?:(?:api|access|secret|private|signing|encryption)_?key|password|passwd|pwd|passphrase|secret|(?:access|refresh|session|id|auth|api|bearer|bot|client|ephemeral)_?token)$|api_?key$/;

/** Returns whether the name, in camel, snake or kebab case, ends like the name of a credential. */
function endsAsSecret(name: string): boolean {
  if (name.length > 100) return false;
  const words = name
    .replace(/([a-z\d])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3_$2')
    .replace(/[-.:\s]/g, '_');
  return SECRET_TAIL.test(words.toLowerCase());
}

export const REDACTED = '[redacted]';

/** Removes secrets from a text. */
export type TakeOut = (text: string) => string;

/**
 * Returns a function that removes every occurrence of these secrets and everything that looks like a key. Secrets with
 * fewer than eight characters are left in the text.
 */
export function secretRemover(
  secrets: readonly (string | RegExp)[],
  replacement: string = REDACTED,
): TakeOut {
  const texts = secrets.filter((secret) => typeof secret === 'string');
  const known = texts
    .filter(({ length }) => length >= SHORTEST_SECRET)
    // Also covers the secret in JSON escapes, and in JSON within JSON.
    .flatMap((secret) => [secret, quoted(secret), quoted(quoted(secret))])
    .flatMap(inPieces)
    // Longer secrets come first: removing a shorter secret that is part of a longer one would leave the rest of the
    // longer one in the text.
    .toSorted((a, b) => b.length - a.length);
  const shapes: readonly Shape[] = [
    ...Array.from(new Set(known), (secret) => ({ pattern: exactly(secret) })),
    ...secrets.filter((secret) => secret instanceof RegExp).map((pattern) => ({ pattern })),
    ...SHAPES.map((shape) => (shape instanceof RegExp ? { pattern: shape } : shape)),
  ].map((shape) => ({ ...shape, pattern: everywhere(shape.pattern) }));
  return (text) => {
    const plain = unescaped(text);
    let clean = plain ? without(text, plain, shapes, replacement) : text;
    for (const { pattern, is } of tried(shapes, clean))
      // A function is used because `$&` has a special meaning in a replacement string.
      clean = clean.replace(pattern, (...found: readonly string[]) =>
        !is || is(found) ? replacement : (found[0] ?? ''),
      );
    return clean;
  };
}

/** The maximum length of a text that is searched for as one pattern: engines reject patterns of 100,000 characters. */
const MAX_PATTERN_CHARS = 4096;

/** Splits a secret into pieces of similar length, each of which is removed separately. */
function inPieces(secret: string): readonly string[] {
  const count = Math.ceil(secret.length / MAX_PATTERN_CHARS);
  const size = Math.ceil(secret.length / count);
  return Array.from({ length: count }, (_, index) =>
    secret.slice(index * size, (index + 1) * size),
  );
}

/** A text without its escapes. `at`: the index of each character, and of the end, in the escaped text. */
interface Plain {
  readonly text: string;
  readonly at: readonly number[];
}

/**
 * The escapes of JSON, at any depth, and of URLs. They cover the characters that occur in credentials and their names,
 * and white space, whose escape letter would otherwise become part of the credential that follows (`\nghp_…`).
 */
const ESCAPE = /(?<!\\)\\+(?:u00([2-7][\da-f])|([/bfnrt]))|%([2-7][\da-f])/gi;

/** The number of times that a text is unescaped, to handle escapes within escapes such as `%252F` and `%5Cu0041`. */
const ESCAPED_TIMES = 3;

/** SHAPES-2. Removes the escapes from a text; null if it contains none. */
function unescaped(text: string): Plain | null {
  let plain = unescapedOnce(text);
  for (let times = 1; plain && times < ESCAPED_TIMES; times += 1) {
    const next = unescapedOnce(plain.text);
    if (!next) break;
    const { at } = plain;
    plain = { text: next.text, at: next.at.map((place) => at[place] ?? 0) };
  }
  return plain;
}

function unescapedOnce(text: string): Plain | null {
  if (text.search(ESCAPE) < 0) return null;
  const at: number[] = [];
  let plain = '';
  let from = 0;
  const keep = (to: number): void => {
    plain += text.slice(from, to);
    for (; from < to; from += 1) at.push(from);
  };
  for (const { index, 0: escape, 1: json, 2: sign, 3: url } of text.matchAll(ESCAPE)) {
    keep(index);
    const code = json ?? url;
    if (code === undefined) plain += sign === '/' ? '/' : ' ';
    else plain += String.fromCharCode(Number.parseInt(code, 16));
    at.push(index);
    from = index + escape.length;
  }
  keep(text.length);
  at.push(text.length);
  return { text: plain, at };
}

/** Removes the secrets that appear in the unescaped form of the text. */
function without(
  text: string,
  plain: Plain,
  shapes: readonly Shape[],
  replacement: string,
): string {
  const ranges: { from: number; to: number }[] = [];
  for (const { pattern, is } of tried(shapes, plain.text))
    for (const found of plain.text.matchAll(pattern))
      if (found[0] !== '' && (!is || is(found)))
        ranges.push({
          from: plain.at[found.index] ?? 0,
          to: plain.at[found.index + found[0].length] ?? text.length,
        });
  let clean = '';
  let end = 0;
  for (const { from, to } of ranges.toSorted((a, b) => a.from - b.from)) {
    if (from >= end) clean += text.slice(end, from) + replacement;
    end = Math.max(end, to);
  }
  return clean + text.slice(end);
}

function tried(shapes: readonly Shape[], text: string): readonly Shape[] {
  const lower = text.toLowerCase();
  return shapes.filter(({ needs }) => !needs || needs.some((need) => lower.includes(need)));
}

/** Returns the text as JSON writes it between quotes. */
function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Returns whether the dot-separated parts of the text contain a JSON Web Token. */
function hasWebToken(text = ''): boolean {
  const parts = text.split('.');
  return parts.some(
    (part, index) =>
      /\beyJ[\w-]{8}/.test(part) &&
      (parts[index + 1]?.length ?? 0) >= 8 &&
      index + 2 < parts.length,
  );
}

/** Returns whether the text is `user:password` in base64. */
function isUserAndPassword(text: string | undefined): boolean {
  try {
    const plain = atob((text ?? '').replaceAll('-', '+').replaceAll('_', '/'));
    return plain.includes(':') && /^[\x20-\x7E]*$/.test(plain);
  } catch {
    return false;
  }
}

function exactly(text: string): RegExp {
  return new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`), 'g');
}

function everywhere({ source, flags }: RegExp): RegExp {
  // A sticky expression would only match at the start.
  return new RegExp(source, `${flags.replace(/[gy]/g, '')}g`);
}
