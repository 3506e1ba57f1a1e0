// What a secret looks like in a text, and how it is taken out of it.

/** A shorter one is no secret (`local`, the key of a server on this machine) and may be part of a word. */
const SHORTEST_SECRET = 8;

/**
 * SHAPES-1. What credentials look like, by prefix, length and alphabet. What people say has no such shape:
 * "basic economy" and "the bearer of bad news" stay.
 */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  // After the scheme of a header: any after its name, else what has letters and digits, or is long.
  /(?<=\bauthorization\\*["']?\s{0,9}[:=]\s{0,9}\\*["']?(?:bearer|basic|token)\s{1,9})[^\s"'\\,]+/gi,
  /(?<=\bbearer\s{1,9})(?:(?=[\w.~+/-]*\d)(?=[\w.~+/-]*[a-z])[\w.~+/-]{8,}|[\w.~+/-]{24,})=*/gi,
  // Parts with dots between them, as of a signed token: `Bearer abc.def`. Words have a space after a dot.
  /(?<=\bBearer\s{1,9})[\w~+/-]{3,}(?:\.[\w~+/-]{3,})+=*/g,
  /(?<=\b[Bb]asic\s{1,9})(?=[\w+/]*\d)(?=[\w+/]*[A-Z])(?=[\w+/]*[a-z])[\w+/]{8,}={0,2}/g,
  // OpenAI, Anthropic, Stripe; also as an error message shows them (`sk-ab***yz`).
  /\b(?:sk|ek|rk)-[\w*.…-]{4,}/g,
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
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  // In a URL: of a user, and by the name of a parameter.
  /(?<=:\/\/[^\s/:@]{0,64}:)[^\s/@]+(?=@)/g,
  /(?<=[?&](?:access_?token|api[_-]?key|auth|key|password|pwd|secret|sig|signature|token)=)[^&\s"'#\\]{6,}/gi,
  // By its name in a text, such as JSON within JSON: a value with a digit.
  /(?<=(?:api[_-]?key|password|passwd|pwd|secret|token)\\*["']?\s{0,9}[:=]\s{0,9}\\*["']?)(?=[^\s"'\\,;}&]*\d)[^\s"'\\,;}&]{6,}/gi,
];

/** The last words of names of properties that hold a credential: `openaiApiKey`, `x-api-key`, `DB_PASSWORD`. */
const SECRET_TAIL =
  /(?:^|_)(?:(?:api|access|secret|private|signing|encryption)_?key|password|passwd|pwd|passphrase|secret|(?:access|refresh|session|id|auth|api|bearer|bot|client|ephemeral)_?token)$|api_?key$/;

/** Is it the name of a property that holds a credential, in camel, snake or kebab case? */
export function endsAsSecret(name: string): boolean {
  if (name.length > 100) return false;
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1_$2').replaceAll('-', '_');
  return SECRET_TAIL.test(words.toLowerCase());
}

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
    ...SHAPES,
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
