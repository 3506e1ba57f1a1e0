// Base64 for all JavaScript hosts. Node's `Buffer` is more than ten times as fast for an audio frame, so these
// functions use it where it exists.
//
// BASE64-1. `fromBase64(toBase64(bytes))` returns the same bytes.
// BASE64-2. `fromBase64` also accepts the URL-safe alphabet and text without padding.
// BASE64-3. Every host returns the same bytes and rejects the same inputs.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PAD = 61;
/** Marks a non-base64 character. No digit has this bit set, so the bit survives a bitwise OR with digits. */
const NO_DIGIT = 64;

const codes = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));
const digits = new Uint8Array(256).fill(NO_DIGIT);
codes.forEach((code, digit) => {
  digits[code] = digit;
});
digits['-'.charCodeAt(0)] = 62;
digits['_'.charCodeAt(0)] = 63;

const native = globalThis.process?.getBuiltinModule?.('node:buffer')?.Buffer;

/** Encodes the bytes as padded base64. */
export function toBase64(bytes: Uint8Array): string {
  if (native) return native.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  const text = new Uint8Array(4 * Math.ceil(bytes.length / 3));
  let to = 0;
  for (let from = 0; from < bytes.length; from += 3) {
    // A byte beyond the end counts as 0.
    const three = (at(bytes, from) << 16) | (at(bytes, from + 1) << 8) | at(bytes, from + 2);
    text[to++] = at(codes, three >> 18);
    text[to++] = at(codes, (three >> 12) & 63);
    text[to++] = at(codes, (three >> 6) & 63);
    text[to++] = at(codes, three & 63);
  }
  const missing = text.length === 0 ? 0 : (3 - (bytes.length % 3)) % 3;
  text.fill(PAD, text.length - missing);
  return new TextDecoder().decode(text);
}

/** Returns the number of bytes that the text encodes, based only on its length and padding. */
export function base64ByteLength(text: string): number {
  return Math.floor((digitsIn(text) * 3) / 4);
}

/** Decodes base64; returns null if the text contains a character that is not a base64 digit. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  const length = digitsIn(text);
  // A single leftover digit cannot encode a byte, so the text is incomplete.
  if (length % 4 === 1) return null;
  const bytes = new Uint8Array(base64ByteLength(text));
  if (native) {
    // Node.js skips invalid characters, and then writes fewer bytes.
    const written = native.from(bytes.buffer).write(text, 'base64');
    return written === bytes.length ? bytes : null;
  }
  // Each non-ASCII character becomes several bytes, none of which is a digit.
  const characters = new TextEncoder().encode(text.slice(0, length));
  if (characters.length !== length) return null;
  let all = 0;
  let to = 0;
  for (let from = 0; from < length; from += 4) {
    const a = at(digits, at(characters, from));
    const b = at(digits, at(characters, from + 1));
    const c = from + 2 < length ? at(digits, at(characters, from + 2)) : 0;
    const d = from + 3 < length ? at(digits, at(characters, from + 3)) : 0;
    all |= a | b | c | d;
    // Writes beyond the end of the array have no effect.
    bytes[to++] = (a << 2) | (b >> 4);
    bytes[to++] = (b << 4) | (c >> 2);
    bytes[to++] = (c << 6) | d;
  }
  return all < NO_DIGIT ? bytes : null;
}

function digitsIn(text: string): number {
  if (text.charCodeAt(text.length - 1) !== PAD) return text.length;
  return text.charCodeAt(text.length - 2) === PAD ? text.length - 2 : text.length - 1;
}

/** Returns the byte at this index, or 0 beyond the end. */
function at(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}
