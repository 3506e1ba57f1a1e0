// Cuts texts that are too long and marks the cut for the reader; indents texts from outside.

/**
 * Returns `text`, or if it is too long, its first `maxChars` characters and a marker that states how many characters
 * are missing. A text that would not become shorter is returned whole.
 */
export function clip(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const kept = head(text, maxChars);
  const marked = `${kept} ${cutMark(text.length - kept.length)}`;
  return marked.length < text.length ? marked : text;
}

/** Returns the first `maxChars` characters, without splitting a surrogate pair. */
export function head(text: string, maxChars: number): string {
  const last = text.charCodeAt(maxChars - 1);
  const splitsPair = text.length > maxChars && last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? maxChars - 1 : maxChars);
}

/** Returns the marker for this number of removed characters. */
export function cutMark(chars: number): string {
  return `[… ${chars} more characters]`;
}

/**
 * Indents all lines except the first of a text from outside, so that no line can be mistaken for a heading, another
 * speaker or another entry.
 */
export function indented(text: string): string {
  return text.trim().replace(/\r?\n|\r|[\u2028\u2029]/g, '\n  ');
}
